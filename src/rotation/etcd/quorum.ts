import type { PendingItem } from '../phase.ts'
import type { EtcdMemberSnapshot, Observed } from '../snapshot.ts'

// Whether etcd could lose one more member: the check between two restarts.

/** Members apply what others have applied within milliseconds. On the lab, indexes differed by less than this under load. */
const mostBehind = 50

/**
 * Returns what keeps the next member from being restarted; empty when every member answers a linearizable read, has run for
 * `forMs`, and all agree on their members and on one leader.
 */
export function quorumGaps(
  { etcdMembers, atMs }: Observed<'etcdMembers'>,
  forMs = 0,
): readonly PendingItem[] {
  if (etcdMembers.length === 0) return [{ at: 'etcd', what: 'no member was found' }]
  const byId = Map.groupBy(etcdMembers, ({ state }) => state?.memberId)
  const ids = new Set([...byId.keys()].flatMap((id) => id ?? []))
  const leaders = etcdMembers.filter(({ state }) => state?.isLeader)
  const furthest = Math.max(...etcdMembers.map(({ state }) => state?.applied ?? 0))
  const known = new Set(etcdMembers.flatMap(({ state }) => state?.known ?? []))
  return [
    ...etcdMembers.flatMap((member) => {
      const what = whyUnready(member, { atMs, forMs, furthest, ids })
      return what === undefined ? [] : [{ at: member.id, what }]
    }),
    ...[...known.difference(ids)].map((id) => ({
      at: 'etcd',
      what: `member ${id} was not found on any control-plane node or etcd machine in kcert.yaml`,
    })),
    ...[...ids].flatMap((id) => {
      const [{ id: at } = { id: 'etcd' }, ...others] = byId.get(id) ?? []
      return others.map((other) => ({ at, what: `is the same member as ${other.id}` }))
    }),
    ...(leaders.length === 1 ? [] : [{ at: 'etcd', what: `${leaders.length} leaders` }]),
  ]
}

function whyUnready(
  { process: running, state, unread }: EtcdMemberSnapshot,
  {
    atMs,
    forMs,
    furthest,
    ids,
  }: { readonly atMs: number; readonly forMs: number; readonly furthest: number; readonly ids: Set<string> },
): string | undefined {
  if (running === undefined) return 'no process runs'
  if (state === undefined) return unread ?? 'its metrics cannot be read'
  if (!running.isHealthy) return 'is not healthy'
  if (state.isLearner) return 'is a learner'
  if (furthest - state.applied > mostBehind) return `is ${furthest - state.applied} entries behind`
  const others = [...ids].filter((id) => id !== state.memberId)
  const unlisted = others.filter((id) => !state.known.includes(id))
  if (unlisted.length > 0) return `does not list member ${unlisted.join(', ')}`
  const inactive = others.filter((id) => !state.active.includes(id))
  if (inactive.length > 0) return `has no connection to member ${inactive.join(', ')}`
  return atMs - running.startedAtMs < forMs ? 'has just started' : undefined
}
