import { definePhase, inParts, type Part } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { type EtcdMemberSnapshot, fileAt, fileKey, type Observed } from '../../snapshot.ts'
import { changeOf } from '../../target.ts'
import { probe, rewrite } from '../../tasks.ts'
import {
  awaitQuorum,
  clientAt,
  type EtcdSections,
  leaderLast,
  memberTrustFiles,
  staleKeys,
  trustsNewAlone,
} from '../members.ts'
import { etcdRow } from '../phase-table.ts'
import { apisBack, membersBack, restarted, rewritten } from '../restarts.ts'

type Sees = EtcdSections | 'evidence'

const members: Part<Sees> = (observed, target) => {
  const change = changeOf(target, 'etcd')
  if (change === undefined) return { gaps: [], steps: [] }
  const open = leaderLast(observed.etcdMembers).flatMap((member) => {
    const restarts = memberTrustFiles(member).some((file) => !trustsNewAlone(observed, file, change))
    const keys = staleKeys(observed, memberTrustFiles(member), change)
    const isUnproven = restarts || !refusesOld(observed, member)
    return restarts || keys.length > 0 || isUnproven ? [{ member, restarts, keys, isUnproven }] : []
  })
  return {
    gaps: open.flatMap(({ member: { id: at }, restarts, keys, isUnproven }) => [
      ...(restarts ? [{ at, what: 'has not read the new CA' }] : []),
      ...keys.map(({ node, path }) => ({ at: fileKey(node, path), what: 'not the key of the new CA' })),
      ...(isUnproven && !restarts ? [{ at, what: 'not yet proven to refuse clients of the old CA' }] : []),
    ]),
    steps: [
      ...open.flatMap(({ member, restarts, keys, isUnproven }) => [
        ...(restarts ? rewritten(observed, memberTrustFiles(member), () => [change.newCa.digest]) : []),
        ...keys.map((file) => rewrite(file, { kind: 'ca-key', ca: 'etcd', generation: 'new' })),
        ...(restarts ? restarted(observed, member) : []),
        ...(isUnproven ? [probe(clientAt(member.id, 'old', 'refused'))] : []),
      ]),
      ...(open.some(({ restarts }) => restarts) ? [awaitQuorum()] : []),
    ],
  }
}

export const restartEtcd = definePhase<Sees>(etcdRow('restart-etcd'), {
  sees: ['components', 'files', 'etcdMembers', 'evidence'],
  ...inParts(members),

  remarks(observed) {
    const leader = observed.etcdMembers.find(({ state }) => state?.isLeader)?.id ?? 'unknown'
    return [
      'one member at a time: the next one restarts when every member is healthy and all agree on one leader',
      `leader: ${leader}; it restarts last, and another member takes over: a write at that moment may get the error "etcdserver: request timed out"`,
      'while a member restarts (10 to 14 s), its API server waits with requests, and its /readyz fails',
    ]
  },

  /**
   * Members restart with the old CA while every certificate still has the bridge certificate. Then the API servers restart too,
   * because nothing presents certificates of the new CA after phase 2 is rolled back.
   */
  undo: (copies, now) => [...membersBack(copies, now), ...apisBack(copies, now)],
})

/** Returns true when the member was proven to refuse clients of the old CA since its CA files were last written. */
function refusesOld(observed: Observed<'files' | 'evidence'>, member: EtcdMemberSnapshot): boolean {
  return memberTrustFiles(member).every(({ node, path }) =>
    isProven(observed, clientAt(member.id, 'old', 'refused'), fileAt(observed, node, path)?.changedAtMs),
  )
}
