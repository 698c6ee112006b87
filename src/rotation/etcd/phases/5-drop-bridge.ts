import { shortList } from '../../../errors/short-list.ts'
import { definePhase, inParts, type Part } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { certificatesIn, fileAt, fileKey } from '../../snapshot.ts'
import { changeOf } from '../../target.ts'
import { probe, rewrite } from '../../tasks.ts'
import { restoreFiles } from '../../undo.ts'
import { type EtcdSections, etcdLeafFiles, holdersOfOldTrust, presenting, servingFlags } from '../members.ts'
import { etcdRow } from '../phase-table.ts'

type Sees = EtcdSections | 'evidence'

const chains: Part<Sees> = (observed, target) => {
  const change = changeOf(target, 'etcd')
  if (change === undefined) return { gaps: [], steps: [] }
  const open = etcdLeafFiles(observed).filter((file) => certificatesIn(file).length > 1)
  const writes = open.map((file) =>
    rewrite(file, { kind: 'certificates', certificates: certificatesIn(file).slice(0, 1) }),
  )
  const written = new Set(writes.map(({ node }) => node))
  const unproven = observed.etcdMembers.filter(({ id: at, node, flags }) => {
    const since = fileAt(observed, node, flags[servingFlags.client])?.changedAtMs
    return written.has(node) || !isProven(observed, { kind: 'old-trust', at, expects: 'refused' }, since)
  })
  return {
    gaps: [
      ...open.map(({ node, path }) => ({
        at: fileKey(node, path),
        what: 'still contains the bridge certificate',
      })),
      ...unproven
        .filter(({ node }) => !written.has(node))
        .map(({ id: at }) => ({ at, what: 'not yet proven to need the new CA' })),
    ],
    steps: [
      ...presenting(observed, writes, { signedBy: change.newCa.spki, bridged: false }, target.atOnce),
      ...unproven.map(({ id: at }) => probe({ kind: 'old-trust', at, expects: 'refused' })),
    ],
  }
}

export const dropBridge = definePhase<Sees>(etcdRow('drop-bridge'), {
  sees: ['components', 'files', 'etcdMembers', 'evidence'],
  ...inParts(chains),

  refusals(observed, target) {
    const change = changeOf(target, 'etcd')
    const holders = change === undefined ? [] : holdersOfOldTrust(observed, change)
    if (holders.length === 0) return []
    return [
      {
        what: `still trusting the old etcd CA: ${shortList(holders)}`,
        why: 'these processes are older than their CA file, or the file still has the old CA; without the bridge certificate they would refuse etcd, or etcd would lose its quorum',
        next: 'kcert rotate-ca --phase 3-4',
      },
    ]
  },

  undo: (copies, now) => restoreFiles(copies, now),
})
