import { definePhase, inParts, type Part } from '../../phase.ts'
import { apiServers, fileAt, fileKey } from '../../snapshot.ts'
import { rewrite } from '../../tasks.ts'
import { puttingCopiesAside } from '../../undo.ts'
import { keyMaterial } from '../keys.ts'
import { keyRotation, keyRow } from '../phase-table.ts'

type Sees = 'components' | 'files' | 'copies'

const remains: Part<Sees> = (observed) => {
  const laidOut = apiServers(observed).flatMap((api) =>
    Object.values(keyMaterial(api)).flatMap((path) => fileAt(observed, api.node, path) ?? []),
  )
  const copies = puttingCopiesAside(observed, keyRotation)
  return {
    gaps: [
      ...laidOut.map(({ node, path }) => ({ at: fileKey(node, path), what: 'not yet deleted' })),
      ...copies.map(({ node: at }) => ({ at, what: 'copies not yet archived for the next rotation' })),
    ],
    steps: [...copies, ...laidOut.map((file) => rewrite(file, { kind: 'nothing' }))],
  }
}

export const finish = definePhase<Sees>(keyRow('finish'), {
  sees: ['components', 'files', 'copies'],
  ...inParts(remains),
  remarks: () => [
    "the old key stays in kcert's copies on control-plane nodes, readable only by root, until you delete them",
  ],
  undo: () => ({
    what: 'phase 8 cannot be rolled back',
    why: "kcert's copies no longer count as the state before the rotation; to use another key, rotate again with a new journal",
    next: 'kcert rotate-sa-key status',
  }),
})
