import { definePhase, inParts } from '../../phase.ts'
import { differences } from '../../restart.ts'
import { apiServers } from '../../snapshot.ts'
import {
  awaitServed,
  backToKeys,
  delayBefore,
  hasPublicKeys,
  hasReadKeys,
  type KeySections,
  keyPart,
  onlyApiServer,
  restartedWith,
  whyUnlike,
  writingPublicKeys,
} from '../keys.ts'
import { keyRow } from '../phase-table.ts'

type Sees = KeySections | 'leases' | 'copies'

const dropped = keyPart<Sees>((observed, _target, { newKey }) => {
  const open = apiServers(observed).flatMap((api) => {
    const delay = delayBefore(observed, api)
    const isDefined = Object.keys(differences(api.flags, delay)).length > 0
    const why = whyUnlike(observed, api.id, [newKey])
    const isOpen = why !== undefined || !hasPublicKeys(observed, api, [newKey]) || isDefined
    return isOpen
      ? [{ api, delay, isDefined, what: why ?? 'its files are not yet as they were before phase 2' }]
      : []
  })
  return {
    gaps: open.map(({ api: { id: at }, what }) => ({ at, what })),
    steps: open.flatMap(({ api, delay, isDefined }) => {
      const writes = writingPublicKeys(observed, api, [newKey])
      const isRead = writes.length === 0 && !isDefined && hasReadKeys(observed, api)
      return [
        ...writes,
        ...(isRead ? [] : restartedWith(observed, api, delay)),
        awaitServed(api.id, [newKey], 'verifies only tokens of the new key'),
      ]
    }),
  }
})

const parts = inParts(dropped)

export const dropOld = definePhase<Sees>(keyRow('drop-old'), {
  sees: ['components', 'files', 'servedKeys', 'leases', 'copies'],
  ...parts,
  refusals: (observed, target) =>
    onlyApiServer(observed, target, keyRow('drop-old').number, parts.plan(observed, target)),

  remarks: () => [
    'until the last API server has restarted, a token of the old key is accepted by some of them',
  ],

  undo(copies, now, { key, reason }) {
    if (reason === 'compromise')
      return {
        what: 'phase 7 cannot be rolled back after a leak of the key',
        why: 'API servers would accept tokens of the leaked key again; finish this rotation, then rotate again',
        next: 'kcert rotate-sa-key status',
      }
    return backToKeys(copies, now, apiServers(now), ({ id }) =>
      key === undefined ? [] : [awaitServed(id, [key.oldKey, key.newKey], 'verifies tokens of both keys')],
    )
  },
})
