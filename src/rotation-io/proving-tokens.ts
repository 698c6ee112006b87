import { setTimeout as pause } from 'node:timers/promises'
import { resources } from '../cluster/kinds.ts'
import type { ApiObject } from '../cluster/malformed.ts'
import { metadataOf } from '../cluster/objects.ts'
import { isObject } from '../errors/is-object.ts'
import { wordsOf } from '../errors/kcert-error.ts'
import type { ProbeSubject } from '../rotation/action.ts'
import type { ProbeAnswer } from '../rotation/ports.ts'
import { isOfPod } from '../rotation/service-account-key/tokens.ts'
import { nodeOfProcess } from '../rotation/snapshot.ts'
import { numberIn } from '../site/etcd-metrics.ts'
import { tokensOn } from '../site/service-account-keys.ts'
import { nodeNamed, type Site } from '../site/site.ts'
import { readServiceAccountToken } from '../x509/service-account-token.ts'
import { isTokenSecret, tokenSecret } from './object-patching.ts'
import type { Parts } from './parts.ts'

// What proves a rotation of the service account key. kcert requests tokens for itself. They stay in this file, expire after 10 minutes
// or are deleted, and no answer contains one.

type Subject<Kind extends ProbeSubject['kind']> = Extract<ProbeSubject, { readonly kind: Kind }>
type Verdict = Pick<ProbeAnswer, 'ok' | 'detail'>

/** A service account that every cluster has. Nothing is done with its token. */
const account = { namespace: 'kube-system', name: 'default' } as const

const reviews = { group: 'authentication.k8s.io', version: 'v1', resource: 'tokenreviews' } as const

/** Returns one attempt of the proof. Throws the errors of cluster and nodes. */
export function provingTokens(
  subject: Subject<'issued-token' | 'token-secret' | 'mounted-tokens'>,
  parts: Pick<Parts, 'site' | 'planes'>,
  sleep: (ms: number) => Promise<unknown> = pause,
): Promise<Verdict> {
  if (subject.kind === 'issued-token') return issuedToken(subject, parts)
  return subject.kind === 'token-secret' ? secretToken(subject, parts, sleep) : mountedTokens(subject, parts)
}

async function issuedToken(
  { at, keyId }: Subject<'issued-token'>,
  { site, planes }: Pick<Parts, 'site' | 'planes'>,
): Promise<Verdict> {
  const issuer = await site.apiServerOn(nodeOfProcess(at))
  const answer = await issuer.create(
    { ...resources.serviceAccounts, ...account, subresource: 'token' },
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: {},
      spec: { expirationSeconds: 600 },
    },
  )
  const token = fieldOf(answer, 'status', 'token')
  const its = readServiceAccountToken(token ?? '')?.keyId
  if (token === undefined || its !== keyId)
    return { ok: false, detail: `${at} issues tokens of key ${shown(its)}` }
  const apis = await planes.everyApiServer()
  for (const { node } of apis) {
    const review = await (await site.apiServerOn(node)).create(reviews, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      metadata: {},
      spec: { token },
    })
    if (!isObject(review.status) || review.status.authenticated !== true)
      return { ok: false, detail: `${node}/kube-apiserver rejects a token that ${at} issued` }
  }
  return { ok: apis.length > 0, detail: `accepted by API servers: ${apis.length}` }
}

async function secretToken(
  { keyId }: Subject<'token-secret'>,
  { site }: Pick<Parts, 'site'>,
  sleep: (ms: number) => Promise<unknown>,
): Promise<Verdict> {
  const { objects } = site
  const { namespace } = account
  const kind = { ...resources.secrets, namespace }
  // The same name each time, so that the next run finds what a killed one left.
  const at = { ...kind, name: 'kcert-token' }
  const left = await objects.get(at)
  if (left !== undefined) {
    if (!isTokenSecret(left, account.name))
      return { ok: false, detail: `kcert did not create Secret ${namespace}/${at.name}: delete or rename it` }
    await objects.delete(at, { uid: String(metadataOf(left).uid) })
  }
  await objects.create(kind, tokenSecret(at, account.name))
  try {
    for (let tries = 0; tries < 20; tries++) {
      const secret = await objects.get(at)
      const token = secret === undefined ? undefined : fieldOf(secret, 'data', 'token')
      if (token !== undefined) {
        const its = readServiceAccountToken(Buffer.from(token, 'base64').toString('utf8'))?.keyId
        return { ok: its === keyId, detail: `the token of a new Secret has key ID ${shown(its)}` }
      }
      await sleep(500)
    }
    return { ok: false, detail: 'no controller manager signed the token of a new Secret within 10 s' }
  } finally {
    // A failure fails this attempt. The next one finds the Secret.
    await objects.delete(at)
  }
}

async function mountedTokens(
  { node, lacks }: Subject<'mounted-tokens'>,
  { site }: Pick<Parts, 'site'>,
): Promise<Verdict> {
  const { mounted } = await tokensOn(nodeNamed(site, node), [])
  const requested = mounted.filter(isOfPod)
  const others = requested.filter(({ keyId }) => keyId === lacks)
  return {
    ok: others.length === 0,
    detail: `mounted tokens: ${requested.length}, of key ID ${lacks}: ${others.length}`,
  }
}

const counters = ['serviceaccount_stale_tokens_total', 'serviceaccount_legacy_tokens_total'] as const
const started = 'process_start_time_seconds'

/** Watches the counters for a time. A counter that is missing, changes or cannot be read proves nothing, and a restart sets them to 0. */
export async function watchTokenUse(
  { at, forMs }: Subject<'token-use'>,
  site: Pick<Site, 'apiServerOn'>,
  sleep: (ms: number) => Promise<unknown> = pause,
): Promise<ProbeAnswer> {
  const read = async () => {
    const text = await (await site.apiServerOn(nodeOfProcess(at))).text('/metrics')
    return [started, ...counters].map((name) => ({ name, count: numberIn(text, name) }))
  }
  try {
    const before = await read()
    await sleep(forMs)
    const after = await read()
    const changed = after.flatMap(({ name, count }, index) => {
      const first = before[index]?.count
      return first === count ? [] : [`${name} from ${first} to ${count}`]
    })
    const time = `in ${Math.round(forMs / 1000)} s`
    if (changed.length === 0) return { ok: true, detail: `${at}: no stale and no legacy token ${time}` }
    return {
      ok: false,
      detail: `${at}: ${changed.join(', ')} ${time}; the annotation authentication.k8s.io/stale-token in its audit log names the client`,
    }
  } catch (error) {
    return { ok: false, detail: `${at}: ${wordsOf(error)}` }
  }
}

function fieldOf(object: ApiObject, part: string, name: string): string | undefined {
  const inside = object[part]
  const value = isObject(inside) ? inside[name] : undefined
  return typeof value === 'string' && value !== '' ? value : undefined
}

function shown(keyId: string | undefined): string {
  return keyId === undefined ? 'unknown' : keyId.slice(0, 100)
}
