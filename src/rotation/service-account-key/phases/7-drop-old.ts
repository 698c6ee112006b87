import { shortList } from '../../../errors/short-list.ts'
import { definePhase, inParts, type Refusal } from '../../phase.ts'
import { when } from '../../refusals.ts'
import { differences } from '../../restart.ts'
import { apiServers, type Observed } from '../../snapshot.ts'
import type { Target } from '../../target.ts'
import { askForUpload } from '../../tasks.ts'
import { keyIdFor } from '../key-id.ts'
import {
  apiServersBackTo,
  awaitServed,
  delayBefore,
  hasPublicKeys,
  hasReadKeys,
  type KeySections,
  keyPart,
  notAfterLeak,
  onlyApiServer,
  restartedWith,
  whyUnlike,
  writingPublicKeys,
} from '../keys.ts'
import { awaitReread, renewals } from '../kubelets.ts'
import { keyRow } from '../phase-table.ts'
import { oldTokens, tokenId, unreadTokens } from '../tokens.ts'
import { lastUpload, lastUploadId, type VerifierSections, verifierSections } from './3-await-verifiers.ts'
import { isDropped } from './5-renew-tokens.ts'

type Sees = KeySections | VerifierSections | 'leases' | 'copies' | 'kubelets' | 'evidence'

const dropped = keyPart<Sees>((observed, { reason }, { oldKey, newKey }) => {
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
    steps: [
      ...(open.length === 0 || reason === 'compromise'
        ? []
        : awaitReread(observed, Math.max(...renewals(observed, keyIdFor(oldKey)), 0))),
      ...open.flatMap(({ api, delay, isDefined }) => {
        const writes = writingPublicKeys(observed, api, [newKey])
        const isRead = writes.length === 0 && !isDefined && hasReadKeys(observed, api)
        return [
          ...writes,
          ...(isRead ? [] : restartedWith(observed, api, delay)),
          awaitServed(api.id, [newKey], 'verifies only tokens of the new key'),
        ]
      }),
    ],
  }
})

/** A token may be stored while phase 6 waits: by a restore of a backup, for example. */
function heldRefusals(observed: Observed<Sees>, { key, reason, waivers }: Target): readonly Refusal[] {
  if (key === undefined || reason === 'compromise' || isDropped(observed, key)) return []
  const open = [
    ...oldTokens(observed, keyIdFor(key.oldKey))
      .map(tokenId)
      .filter((id) => !waivers.has(id)),
    ...unreadTokens(observed).map(({ at, what }) => `${at} (${what})`),
  ]
  return when(open.length > 0, {
    what: `tokens of the old key may be in use: ${shortList(open)}`,
    why: 'API servers would reject them. Phase 5 shows them with their owners',
    next: 'kcert rotate-sa-key --phase 5',
  })
}

const parts = inParts(dropped, lastUpload)

export const dropOld = definePhase<Sees>(keyRow('drop-old'), {
  sees: [...verifierSections, 'leases', 'copies', 'kubelets', 'evidence'],
  ...parts,
  refusals: (observed, target) => [
    ...heldRefusals(observed, target),
    ...onlyApiServer(observed, target, keyRow('drop-old').number, parts.plan(observed, target)),
  ],

  remarks: () => [
    'until the last API server has restarted, a token of the old key is accepted by some of them',
  ],

  undo(copies, now, { key, reason, waivers }) {
    if (reason === 'compromise') return notAfterLeak(keyRow('drop-old').number)
    const keys = key && [key.oldKey, key.newKey]
    const steps = apiServersBackTo(copies, now, keys, 'verifies tokens of both keys')
    const question =
      'Upload /openid/v1/jwks again, to every place outside of the cluster that has a copy: the old key must be in it again.'
    return waivers.has(lastUploadId) ? [...steps, askForUpload(lastUploadId, question)] : steps
  },
})
