import { timingSafeEqual } from 'node:crypto'
import { bearerOf, type JoiningRight, joiningRights } from '../../bootstrap/joining-rights.ts'
import { signatureFacts } from '../../bootstrap/signature-facts.ts'
import { type BootstrapToken, formatToken } from '../../bootstrap/token.ts'
import { absentToken, checkToken, type Recognition } from '../../bootstrap/token-check.ts'
import type { TokenCheck } from '../../bootstrap/token-report.ts'
import {
  readTokenSecret,
  type SecretObject,
  secretPrefix,
  signingTokens,
  tokenOfSecret,
} from '../../bootstrap/token-secret.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Clock } from '../../system/clock.ts'
import { clusterInfoOf, tokenSecrets } from '../bootstrap/objects.ts'

/** Opens the same API server for the bearer of a token. */
export type OpenAs = (cluster: Cluster, bearerToken: string) => Cluster

/** Checks whether a node can join with a token. `given` is the complete token, if it is known. */
export async function checkTokenOn(
  cluster: Cluster,
  { id, given }: { readonly id: string; readonly given: BootstrapToken | undefined },
  { clock, openAs }: { readonly clock: Clock; readonly openAs: OpenAs },
): Promise<TokenCheck> {
  const secret = (await cluster.objects.get({ ...tokenSecrets, name: secretPrefix + id })) as
    | SecretObject
    | undefined
  if (secret === undefined) return absentToken(id)
  const facts = readTokenSecret(secret, clock())
  const token = tokenOfSecret(secret)
  const bearer = given ?? token
  const [signature, recognition, rights] = await Promise.all([
    signatureOf(cluster, secret, clock()),
    bearer === undefined
      ? { as: 'unknown' as const, why: 'its Secret has no token' }
      : recognitionOf(openAs(cluster, formatToken(bearer))),
    rightsOf(cluster, joiningRights(bearerOf(id, facts.groups))),
  ])
  const isTheSame = given && token && areSame(given.secret, token.secret)
  return checkToken({ facts, isTheSame, signature, recognition, rights })
}

function areSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

async function signatureOf(cluster: Cluster, secret: SecretObject, now: Date) {
  try {
    const { info } = await clusterInfoOf(cluster)
    const [state] = signatureFacts({ ...info, signatures: info.signatures }, signingTokens([secret], now))
    return state?.state ?? 'missing'
  } catch (error) {
    if (error instanceof KcertError && error.code === 'KCERT_API_NOT_FOUND') return 'no-cluster-info'
    throw error
  }
}

async function recognitionOf(bearer: Cluster): Promise<Recognition> {
  try {
    const who = await bearer.access.whoAmI()
    if (who === undefined) return { as: 'unknown', why: 'the API server has no SelfSubjectReview' }
    return { as: 'authenticated', username: who.username, groups: who.groups }
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    if (error.code === 'KCERT_API_UNAUTHORIZED') return { as: 'rejected' }
    return { as: 'unknown', why: error.message }
  } finally {
    bearer.close()
  }
}

/** Returns for each permission whether it is granted completely; undefined if checking is forbidden. */
export async function rightsOf(
  { access }: Cluster,
  rights: readonly JoiningRight[],
): Promise<{ right: JoiningRight; allowed: boolean | undefined }[]> {
  return Promise.all(
    rights.map(async (right) => {
      const { user, groups } = right.subject
      const answers = await Promise.all(
        right.attributes.map(({ subresource = '', ...rest }) =>
          access.isAllowed({ user, groups, extra: {}, resource: { version: 'v1', subresource, ...rest } }),
        ),
      )
      const allowed = answers.includes(false) ? false : answers.includes(undefined) ? undefined : true
      return { right, allowed }
    }),
  )
}
