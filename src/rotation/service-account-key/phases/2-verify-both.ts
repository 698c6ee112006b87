import { shortList } from '../../../errors/short-list.ts'
import { definePhase, inParts } from '../../phase.ts'
import { apiServers, type Observed } from '../../snapshot.ts'
import type { Target } from '../../target.ts'
import { keyIdFor } from '../key-id.ts'
import {
  awaitServed,
  backToKeys,
  delayFor,
  hasReadKeys,
  type KeySections,
  keyPart,
  onlyApiServer,
  restartedWith,
  verifiesWith,
  writingPublicKeys,
} from '../keys.ts'
import { keyRow } from '../phase-table.ts'
import { heldTokens, nodesWithMounted, unreadTokens } from '../tokens.ts'

type Sees = KeySections | 'leases' | 'tokens'

const both = keyPart<Sees>((observed, { reason }, { oldKey, newKey }) => {
  // After a leak, no API server verifies both.
  const open =
    reason === 'compromise'
      ? []
      : apiServers(observed).filter(({ id }) => !verifiesWith(observed, id, newKey))
  return {
    gaps: open.map(({ id: at }) => ({ at, what: 'does not verify tokens of the new key' })),
    steps: open.flatMap((api) => {
      const writes = writingPublicKeys(observed, api, [oldKey, newKey])
      const isRead = writes.length === 0 && hasReadKeys(observed, api)
      return [
        ...writes,
        ...(isRead ? [] : restartedWith(observed, api, delayFor(api))),
        awaitServed(api.id, [oldKey, newKey], 'verifies tokens of both keys'),
      ]
    }),
  }
})

const parts = inParts(both)

export const verifyBoth = definePhase<Sees>(keyRow('verify-both'), {
  sees: ['components', 'files', 'servedKeys', 'leases', 'tokens'],
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
    return backToKeys(copies, now, apiServers(now), ({ id }) =>
      key === undefined ? [] : [awaitServed(id, [key.oldKey], 'verifies only tokens of the old key')],
    )
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
