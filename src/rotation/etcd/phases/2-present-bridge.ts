import type { Digest } from '../../certificate-record.ts'
import { isOfOldCa, leafIn, reissuingFile } from '../../leaves.ts'
import { definePhase, inParts, type Part } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { certificatesIn, type FileSnapshot, fileKey, type Observed } from '../../snapshot.ts'
import { type CaChange, changeOf } from '../../target.ts'
import { probe, rewrite } from '../../tasks.ts'
import { restoreFiles } from '../../undo.ts'
import {
  clientAt,
  type EtcdSections,
  etcdLeafFiles,
  holdersOfOldTrust,
  isOfNewCa,
  presenting,
} from '../members.ts'
import { etcdRow } from '../phase-table.ts'

type Sees = EtcdSections | 'evidence'

/** Keys, SANs and usages stay the same. */
const chains: Part<Sees> = (observed, target) => {
  const change = changeOf(target, 'etcd')
  const bridge = change?.bridge
  if (change === undefined || bridge === undefined) return { gaps: [], steps: [] }
  const needsBridge = holdersOfOldTrust(observed, change).length > 0
  const open = etcdLeafFiles(observed).flatMap((file) => {
    const what = whyWrong(observed, file, change, needsBridge ? bridge.digest : undefined)
    return what === undefined ? [] : [{ file, what }]
  })
  const unproven = observed.etcdMembers.filter(
    ({ id }) => !isProven(observed, clientAt(id, 'new', 'accepted'), 0),
  )
  const writes = open.flatMap(({ file }) => {
    const reissues = reissuingFile(observed, file, undefined, change, target, [bridge.digest])
    const leaf = leafIn(observed, file)
    if (reissues.length > 0 || leaf === undefined) return reissues
    return [rewrite(file, { kind: 'certificates', certificates: [leaf.digest, bridge.digest] })]
  })
  return {
    gaps: [
      ...open.map(({ file, what }) => ({ at: fileKey(file.node, file.path), what })),
      ...unproven.map(({ id: at }) => ({ at, what: 'not yet proven to accept clients of the new CA' })),
    ],
    steps: [
      ...presenting(observed, writes, { signedBy: change.newCa.spki, bridged: true }, target.atOnce),
      ...unproven.map(({ id }) => probe(clientAt(id, 'new', 'accepted'))),
    ],
  }
}

export const presentBridge = definePhase<Sees>(etcdRow('present-bridge'), {
  sees: ['components', 'files', 'etcdMembers', 'evidence'],
  ...inParts(chains),
  undo: (copies, now) => restoreFiles(copies, now),
})

function whyWrong(
  observed: Observed<'files'>,
  file: FileSnapshot,
  change: CaChange,
  bridge: Digest | undefined,
): string | undefined {
  if (isOfOldCa(observed, file, change)) return 'signed by the old CA'
  if (!isOfNewCa(observed, file, change)) return 'not signed by the new CA'
  if (bridge === undefined || certificatesIn(file)[1] === bridge) return undefined
  return 'without the bridge certificate'
}
