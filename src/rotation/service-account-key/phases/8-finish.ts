import { deletingOwnFiles } from '../../ending.ts'
import { definePhase, inParts, type Part } from '../../phase.ts'
import { apiServers, fileAt } from '../../snapshot.ts'
import { keyMaterial } from '../keys.ts'
import { keyRotation, keyRow } from '../phase-table.ts'

type Sees = 'components' | 'files' | 'copies'

const remains: Part<Sees> = (observed) => {
  const laidOut = apiServers(observed).flatMap((api) =>
    Object.values(keyMaterial(api)).flatMap((path) => fileAt(observed, api.node, path) ?? []),
  )
  return deletingOwnFiles(observed, keyRotation, laidOut)
}

export const finish = definePhase<Sees>(keyRow('finish'), {
  sees: ['components', 'files', 'copies'],
  ...inParts(remains),
  remarks: () => [
    "the old key stays in kcert's copies on control-plane nodes, readable only by root, until you archive or destroy it",
  ],
  undo: () => ({
    what: 'phase 8 cannot be rolled back',
    why: "kcert's copies no longer count as the state before the rotation; to use another key, rotate again with a new journal",
    next: 'kcert rotate-sa-key status',
  }),
})
