import type { Digest } from '../../certificate-record.ts'
import { isOfOldCa, leafIn, reissuingFile } from '../../leaves.ts'
import { definePhase, inParts, type Part } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { certificatesIn, type FileSnapshot, fileAt, fileKey, type Observed } from '../../snapshot.ts'
import { type CaChange, changeOf, withNew } from '../../target.ts'
import { ask, probe, rewrite } from '../../tasks.ts'
import { restoreFiles } from '../../undo.ts'
import {
  awaitQuorum,
  clientAt,
  type EtcdSections,
  etcdLeafFiles,
  holdersOfOldTrust,
  isOfNewCa,
  leaderLast,
  memberTrustFiles,
  presenting,
  servingFlags,
  trustFiles,
  trustsNew,
  unwatched,
  watching,
} from '../members.ts'
import { etcdRow } from '../phase-table.ts'
import { apisBack, membersBack, restarted, rewritten } from '../restarts.ts'

type Sees = EtcdSections | 'evidence' | 'intents'

const row = etcdRow('present-bridge')

/** The ID with which the operator confirms that unknown clients have new certificates. */
export const clientsId = 'etcd-clients'

const nothing = { gaps: [], steps: [] }

/** With unknown clients, members accept certificates of both CAs, with and without the bridge certificate, until phase 3. */
const bundles: Part<Sees> = (observed, target) => {
  const change = changeOf(target, 'etcd')
  if (change === undefined || target.etcdClients !== 'unknown') return nothing
  const open = leaderLast(observed.etcdMembers).filter((member) =>
    memberTrustFiles(member).some((file) => !trustsNew(observed, file, change)),
  )
  return {
    gaps: open.map(({ id: at }) => ({ at, what: 'has not read both CAs' })),
    steps: [
      ...open.flatMap((member) => [
        ...rewritten(observed, memberTrustFiles(member), (trust) => withNew(trust, change)),
        ...restarted(observed, member),
      ]),
      ...(open.length > 0 ? [awaitQuorum()] : []),
    ],
  }
}

/** Keys, SANs and usages stay the same. */
const chains: Part<Sees> = (observed, target) => {
  const change = changeOf(target, 'etcd')
  const bridge = change?.bridge
  if (change === undefined || bridge === undefined) return nothing
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

/** Unknown clients get new certificates now. Once a member trusts only the new CA, it is too late to ask. */
const clients: Part<Sees> = (observed, target) => {
  const change = changeOf(target, 'etcd')
  if (change === undefined || target.etcdClients !== 'unknown') return nothing
  const isLate = trustFiles(observed).some(
    ({ node, path }) => certificatesIn(fileAt(observed, node, path)).join() === change.newCa.digest,
  )
  if (isLate) return nothing
  // A watch before phase 2, or before its rollback, says nothing about the clients of now.
  const open = unwatched(observed, ({ node, flags }) => {
    const file = fileAt(observed, node, flags[servingFlags.client])
    return file && isOfNewCa(observed, file, change) ? file.changedAtMs : undefined
  })
  const isConfirmed = target.waivers.has(clientsId)
  return {
    gaps: [
      ...open.map(({ id: at }) => ({ at, what: 'its clients are not yet watched' })),
      ...(isConfirmed
        ? []
        : [{ at: 'clients of etcd', what: 'not yet confirmed to have certificates of the new CA' }]),
    ],
    steps: [
      ...watching(open, target),
      ...(isConfirmed
        ? []
        : [
            ask(
              clientsId,
              'Give every client of etcd that has a certificate of its own, also on control-plane nodes, a certificate of the new CA, and both CAs to verify etcd.',
            ),
          ]),
    ],
  }
}

export const presentBridge = definePhase<Sees>(row, {
  sees: ['components', 'files', 'etcdMembers', 'evidence', 'intents'],
  ...inParts(bundles, chains, clients),

  remarks: (_, { etcdClients, soakMs }) =>
    etcdClients === 'unknown'
      ? [
          'members restart one after another, the leader last, and trust both CAs from then on; they restart again in phase 3',
          `at the end, kcert watches the connections to etcd for ${soakMs / 1000} s and asks whether every client has a certificate of the new CA; in advance: --waive ${clientsId}`,
        ]
      : [],

  /** Members trust both CAs until every certificate is one of the old CA again. */
  undo(copies, now) {
    const trust = new Set(trustFiles(now).map(({ node, path }) => fileKey(node, path)))
    const begunMs = now.intents.find(({ phase }) => phase === row.number)?.atMs
    return [
      ...restoreFiles(copies, now, (node, path) => !trust.has(fileKey(node, path))),
      ...membersBack(copies, now),
      ...apisBack(copies, now, begunMs),
    ]
  },
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
