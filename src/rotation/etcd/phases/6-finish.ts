import { deletingOwnFiles } from '../../ending.ts'
import { folderOn, materialOf } from '../../material.ts'
import { definePhase, inParts, type Part } from '../../phase.ts'
import { controlPlanes, fileAt } from '../../snapshot.ts'
import { etcdRotation, etcdRow } from '../phase-table.ts'

type Sees = 'nodes' | 'components' | 'files' | 'copies'

const remains: Part<Sees> = (observed, target) => {
  const laidOut = controlPlanes(observed).flatMap(({ name }) =>
    materialOf(folderOn(observed, name, 'etcd'), target).flatMap(
      ({ path }) => fileAt(observed, name, path) ?? [],
    ),
  )
  return deletingOwnFiles(observed, etcdRotation, laidOut)
}

export const finish = definePhase<Sees>(etcdRow('finish'), {
  sees: ['nodes', 'components', 'files', 'copies'],
  ...inParts(remains),
  remarks: () => [
    "the old CA's key stays in kcert's copies on control-plane nodes, readable only by root, until you archive or destroy it",
  ],
  undo: () => ({
    what: 'phase 6 cannot be rolled back',
    why: "kcert's copies no longer count as the state before the rotation; to use another CA, rotate again with a new journal",
    next: 'kcert rotate-ca status',
  }),
})
