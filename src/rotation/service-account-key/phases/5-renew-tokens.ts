import type { Task } from '../../action.ts'
import { definePhase } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { apiServers, fileAt, type Observed } from '../../snapshot.ts'
import type { KeyChange } from '../../target.ts'
import { ask, patch } from '../../tasks.ts'
import { keyIdFor } from '../key-id.ts'
import { keyPart, privatePath, verifiesWith } from '../keys.ts'
import { provenOn, restartingKubelets } from '../kubelets.ts'
import type { FoundToken } from '../observed.ts'
import { keyRow } from '../phase-table.ts'
import { heldTokens, holderOf, nodesWithMounted, tokenId, unreadTokens } from '../tokens.ts'

type Sees = 'nodes' | 'components' | 'kubelets' | 'files' | 'servedKeys' | 'tokens' | 'evidence'

const renewed = keyPart<Sees>((observed, target, key) => {
  // What had a token of the old key by then was accepted as a loss, or is proven not to use it.
  if (isDropped(observed, key) && target.reason !== 'compromise') return { gaps: [], steps: [] }
  const lacks = keyIdFor(key.oldKey)
  const mounted = nodesWithMounted(observed, lacks)
  const sinceMs = signedNewSinceMs(observed)
  const unproven = new Set(
    observed.kubelets.flatMap(({ node }) =>
      isProven(observed, provenOn(node, lacks), sinceMs) && !mounted.has(node) ? [] : [node],
    ),
  )
  const open = heldTokens(observed, lacks).filter((token) => !target.waivers.has(tokenId(token)))
  return {
    gaps: [
      ...unreadTokens(observed),
      ...[...mounted].map(([at, count]) => ({ at, what: `${count} mounted tokens of the old key` })),
      ...[...unproven]
        .filter((node) => !mounted.has(node))
        .map((at) => ({ at, what: 'not yet proven to have no mounted token of the old key' })),
      ...open.map((token) => ({
        at: tokenId(token),
        what: `token of the old key (${holderOf(token)})`,
      })),
    ],
    steps: [
      ...restartingKubelets(
        observed,
        target,
        ({ node }) => mounted.has(node),
        lacks,
        ({ node }) => unproven.has(node),
      ),
      ...open.flatMap((token) => handedOver(observed, token, key)),
    ],
  }
})

export const renewTokens = definePhase<Sees>(keyRow('renew-tokens'), {
  sees: ['nodes', 'components', 'kubelets', 'files', 'servedKeys', 'tokens', 'evidence'],
  gaps: (observed, target) => renewed(observed, target).gaps,
  plan: (observed, target) => renewed(observed, target).steps,

  remarks(observed, { key, reason }) {
    const tokens = key === undefined ? [] : heldTokens(observed, keyIdFor(key.oldKey))
    const owners = Map.groupBy(tokens, holderOf)
    return [
      ...[...owners].map(
        ([holder, its]) => `hand over a new token for ${holder}: ${its.map(({ location }) => location).join(', ')}`,
      ),
      ...(reason === 'compromise' ? ['restart the pods that still get 401 after 70 s'] : []),
    ]
  },

  // Both keys are verified until phase 2 is rolled back, and its rollback refuses while tokens of the new key are in use.
  undo: () => [],
})

/** Returns since when every process may sign only with the new key: the last change of a private key. */
export function signedNewSinceMs(observed: Observed<'components' | 'files'>): number | undefined {
  const times = apiServers(observed).map((api) => fileAt(observed, api.node, privatePath(api))?.changedAtMs)
  return times.some((time) => time === undefined) ? undefined : Math.max(0, ...times.map((time) => time ?? 0))
}

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
  const [place = ''] = token.location.split(' ')
  const [, name = ''] = place.split('/')
  // The signature of a token is not verified, and anyone may write its claims: they must name the Secret that has it.
  const isOwn =
    token.kind === 'Secret' && place === `${namespace}/${name}` && token.claims.boundTo === `secret ${name}`
  const isReplaced = heldTokens(observed, keyIdFor(newKey)).some(
    ({ kind, claims }) =>
      kind === 'Secret' && claims.namespace === namespace && claims.serviceAccount === serviceAccount,
  )
  const second = { kind: 'Secret', namespace, name: secondName(name, newKey) }
  const question = isOwn
    ? `Give the token of Secret ${namespace}/${second.name} to the users of ${token.location} (${holderOf(token)}), then delete Secret ${place}.`
    : `Replace the token in ${tokenId(token)} (${holderOf(token)}).`
  return [
    ...(isOwn && !isReplaced ? [patch(second, 'absent', { kind: 'token-secret', serviceAccount })] : []),
    ask(tokenId(token), question),
  ]
}

/** The same name each time, so that a second run finds the Secret of the first one. */
function secondName(name: string, newKey: string): string {
  return `${name.slice(0, 240)}-${newKey.slice(0, 8)}`
}
