import type { Task } from '../../action.ts'
import { definePhase, inParts } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { apiServers, type Observed } from '../../snapshot.ts'
import type { KeyChange } from '../../target.ts'
import { ask, patch } from '../../tasks.ts'
import { keyIdFor } from '../key-id.ts'
import { keyPart, signedSinceMs, verifiesWith } from '../keys.ts'
import { provenOn, restartingKubelets } from '../kubelets.ts'
import type { FoundToken } from '../observed.ts'
import { keyRow } from '../phase-table.ts'
import { heldTokens, holderOf, nodesWithMounted, oldTokens, tokenId, unreadTokens } from '../tokens.ts'
import { lastUpload, type VerifierSections, verifierSections } from './3-await-verifiers.ts'

type Sees = VerifierSections | 'kubelets' | 'evidence'

const renewed = keyPart<Sees>((observed, target, key) => {
  // What had a token of the old key by then was accepted as a loss, or is proven not to use it.
  if (isDropped(observed, key) && target.reason !== 'compromise') return { gaps: [], steps: [] }
  const lacks = keyIdFor(key.oldKey)
  const mounted = nodesWithMounted(observed, lacks)
  const sinceMs = signedSinceMs(observed)
  const unproven = new Set(
    observed.kubelets.flatMap(({ node }) =>
      isProven(observed, provenOn(node, lacks), sinceMs) && !mounted.has(node) ? [] : [node],
    ),
  )
  const open = oldTokens(observed, lacks).filter((token) => !target.waivers.has(tokenId(token)))
  const elsewhere = observed.kubeconfigs.flatMap(({ id, at }) =>
    at !== undefined || target.waivers.has(id) ? [] : [id],
  )
  return {
    gaps: [
      ...unreadTokens(observed),
      ...[...mounted].map(([at, count]) => ({ at, what: `mounted tokens of the old key: ${count}` })),
      ...[...unproven]
        .filter((node) => !mounted.has(node))
        .map((at) => ({ at, what: 'not yet proven to have no mounted token of the old key' })),
      ...open.map((token) => ({
        at: tokenId(token),
        what: `${token.claims.keyId === undefined ? 'token without a key ID' : 'token of the old key'} (${holderOf(token)})`,
      })),
      ...elsewhere.map((id) => ({ at: `kubeconfig ${id}`, what: 'not read, because it is on no node' })),
    ],
    steps: [
      ...restartingKubelets(
        observed,
        target,
        ({ node }) => mounted.has(node),
        lacks,
        ({ node }) => unproven.has(node),
      ),
      // After a leak, this is as urgent as the tokens. Pods come first, and phase 7 asks again if it was not done.
      ...(target.reason === 'compromise' ? lastUpload(observed, target).steps : []),
      ...open.flatMap((token) => handedOver(observed, token, key)),
      ...elsewhere.map((id) =>
        ask(
          id,
          `Search kubeconfig ${id} for a token with key ID ${lacks}, or without a key ID, and replace it.`,
        ),
      ),
    ],
  }
})

export const renewTokens = definePhase<Sees>(keyRow('renew-tokens'), {
  sees: [...verifierSections, 'kubelets', 'evidence'],
  ...inParts(renewed),

  remarks(observed, { key, reason }) {
    const tokens = key === undefined ? [] : oldTokens(observed, keyIdFor(key.oldKey))
    const owners = Map.groupBy(tokens, holderOf)
    return [
      ...[...owners].map(
        ([holder, its]) =>
          `hand over a new token for ${holder}: ${its.map(({ location }) => location).join(', ')}`,
      ),
      ...(reason === 'compromise' ? ['restart the pods that still get 401 after 70 s'] : []),
    ]
  },

  // Both keys are verified until phase 2 is rolled back, and its rollback refuses while tokens of the new key are in use.
  undo: () => [],
})

/** Returns true once an API server no longer verifies tokens of the old key. */
export function isDropped(observed: Observed<'components' | 'servedKeys'>, key: KeyChange): boolean {
  return apiServers(observed).some(
    ({ id }) => verifiesWith(observed, id, key.newKey) && !verifiesWith(observed, id, key.oldKey),
  )
}

/**
 * Returns a second Secret for the service account of a legacy token, unless one has a token of the new key, and the question whether
 * its owner uses the new token. kcert deletes no token: the API server would reject it at once, because it compares a legacy token with
 * its Secret.
 */
function handedOver(observed: Observed<'tokens'>, token: FoundToken, { newKey }: KeyChange): readonly Task[] {
  const { namespace, serviceAccount } = token.claims
  const name = ownSecret(token)
  if (name === undefined)
    return [ask(tokenId(token), `Replace the token in ${tokenId(token)} (${holderOf(token)}).`)]
  const replacement = heldTokens(observed, keyIdFor(newKey)).find(
    (one) =>
      ownSecret(one) !== undefined &&
      one.claims.namespace === namespace &&
      one.claims.serviceAccount === serviceAccount,
  )
  const created = { kind: 'Secret', namespace, name: secondName(name, newKey) }
  const second = (replacement && ownSecret(replacement)) ?? created.name
  return [
    ...(replacement === undefined
      ? [patch(created, 'absent', { kind: 'token-secret', serviceAccount })]
      : []),
    ask(
      tokenId(token),
      `Give the token of Secret ${namespace}/${second} to the users of ${token.location} (${holderOf(token)}), then delete Secret ${namespace}/${name}.`,
    ),
  ]
}

/**
 * Returns the name of the Secret of a legacy token. The signature of a token is not verified, and anyone may write its claims: they must
 * name the Secret that has it.
 */
function ownSecret({ kind, location, claims: { namespace, boundTo } }: FoundToken): string | undefined {
  const [place = ''] = location.split(' ')
  const [, name = ''] = place.split('/')
  return kind === 'Secret' && place === `${namespace}/${name}` && boundTo === `secret ${name}`
    ? name
    : undefined
}

/** The same name each time, so that a second run finds the Secret of the first one. */
function secondName(name: string, newKey: string): string {
  return `${name.slice(0, 240).replace(/[.-]+$/, '')}-${newKey.slice(0, 8)}`
}
