import { shortList } from '../../../errors/short-list.ts'
import { definePhase, inParts } from '../../phase.ts'
import { apiServers, fileAt, type Observed } from '../../snapshot.ts'
import type { Target } from '../../target.ts'
import { keyIdFor } from '../key-id.ts'
import {
  apiServersBackTo,
  awaitServed,
  delayFor,
  hasReadKeys,
  isStarting,
  type KeySections,
  keyPart,
  keysIn,
  onlyApiServer,
  privatePath,
  publicKeysOf,
  restartedWith,
  verifiesWith,
  writingPublicKeys,
} from '../keys.ts'
import { awaitReread, renewals } from '../kubelets.ts'
import { keyRow } from '../phase-table.ts'
import { heldTokens, nodesWithMounted, unreadTokens } from '../tokens.ts'

type Sees = KeySections | 'leases' | 'tokens' | 'kubelets' | 'evidence'

const both = keyPart<Sees>((observed, { reason }, { oldKey, newKey }) => {
  // After a leak, no API server verifies both.
  const open =
    reason === 'compromise'
      ? []
      : apiServers(observed).flatMap((api) => {
          if (!verifiesWith(observed, api.id, newKey))
            return [{ api, what: 'does not verify tokens of the new key' }]
          // Another program restored the file: after its next start, the API server would reject tokens of the new key.
          const isOnDisk = publicKeysOf(observed, api).includes(newKey)
          return isOnDisk ? [] : [{ api, what: 'its public key files do not contain the new key' }]
        })
  return {
    gaps: open.map(({ api: { id: at }, what }) => ({ at, what })),
    steps: open.flatMap(({ api }) => {
      const now = publicKeysOf(observed, api)
      const signing = keysIn(fileAt(observed, api.node, privatePath(api)))
      // Later phases change the order and remove the old key: an API server that is only down keeps its files.
      const isLater = now.includes(newKey) && (now.includes(oldKey) || signing.join() === newKey)
      const keys = isLater ? now : [oldKey, newKey]
      const writes = isLater ? [] : writingPublicKeys(observed, api, keys)
      const isRead = writes.length === 0 && (isStarting(observed, api) || hasReadKeys(observed, api))
      return [
        ...writes,
        ...(isRead ? [] : restartedWith(observed, api, delayFor(api))),
        awaitServed(api.id, keys, 'verifies tokens of the new key'),
      ]
    }),
  }
})

const parts = inParts(both)

export const verifyBoth = definePhase<Sees>(keyRow('verify-both'), {
  sees: ['components', 'files', 'servedKeys', 'leases', 'tokens', 'kubelets', 'evidence'],
  ...parts,
  refusals: (observed, target) =>
    onlyApiServer(observed, target, keyRow('verify-both').number, parts.plan(observed, target)),

  remarks(observed, { reason }) {
    const open = apiServers(observed).filter((api) => Object.keys(delayFor(api)).length > 0)
    if (open.length === 0 || reason === 'compromise') return []
    const names = shortList(open.map(({ id }) => id))
    return [
      `no --shutdown-delay-duration: ${names}; kcert sets 15s until phase 7. In this first restart, requests that are in flight may fail (up to 3 on the lab)`,
    ]
  },

  undo(copies, now, target) {
    const refusal = whyNewKeyIsUsed(now, target)
    if (refusal !== undefined) return refusal
    const { key } = target
    const steps = apiServersBackTo(copies, now, key && [key.oldKey], 'verifies only tokens of the old key')
    if (key === undefined || steps.length === 0) return steps
    // The rollback of phase 4 renewed mounted tokens.
    return [...awaitReread(now, Math.max(...renewals(now, keyIdFor(key.newKey)), 0)), ...steps]
  },
})

/** Tokens of the new key become invalid when no API server verifies it any more. */
function whyNewKeyIsUsed(observed: Observed<'tokens'>, { key }: Target) {
  const keyId = key && keyIdFor(key.newKey)
  if (keyId === undefined) return undefined
  const places = [
    ...nodesWithMounted(observed, keyId).keys(),
    ...heldTokens(observed, keyId).map(({ location }) => location),
    ...unreadTokens(observed).map(({ at, what }) => `${at} (${what})`),
  ]
  if (places.length === 0) return undefined
  return {
    what: `phase 2 cannot be rolled back while tokens of the new key may be in use: ${shortList(places)}`,
    why: 'API servers would reject them. Mounted tokens are renewed in the rollback of phase 4; replace the others',
    next: 'kcert rotate-sa-key status',
  }
}
