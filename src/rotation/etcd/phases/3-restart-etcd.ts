import type { Task } from '../../action.ts'
import { keyPathFor } from '../../material.ts'
import { definePhase, inParts, type Part } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import {
  apiServerOn,
  type CopySnapshot,
  certificatesIn,
  type EtcdMemberSnapshot,
  fileAt,
  fileKey,
  hasStartedSince,
  type Observed,
} from '../../snapshot.ts'
import { type CaChange, changeOf } from '../../target.ts'
import { probe, restart, rewrite, waitUntilReady } from '../../tasks.ts'
import { restoreFiles } from '../../undo.ts'
import { changedFiles, hasRead } from '../../undo-pass.ts'
import {
  apiTrustFiles,
  awaitQuorum,
  caKeyFiles,
  clientAt,
  type EtcdSections,
  leaderLast,
  memberTrustFiles,
  trustsNewAlone,
} from '../members.ts'
import { etcdRow } from '../phase-table.ts'
import { restartedApi } from './4-restart-api-servers.ts'

type Sees = EtcdSections | 'evidence'

const members: Part<Sees> = (observed, target) => {
  const change = changeOf(target, 'etcd')
  if (change === undefined) return { gaps: [], steps: [] }
  const open = leaderLast(observed.etcdMembers).flatMap((member) => {
    const restarts = memberTrustFiles(member).some((file) => !trustsNewAlone(observed, file, change))
    const keys = staleKeys(observed, member, change)
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
        ...(restarts ? replaced(observed, member, change) : []),
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
  undo(copies, now) {
    const changed = changedFiles(copies)
    const back = leaderLast(now.etcdMembers).flatMap((member) => {
      const paths = memberTrustFiles(member).map(({ path }) => path)
      const own = new Set([...paths, ...paths.map(keyPathFor)])
      const files = restoreFiles(copies, now, (node, path) => node === member.node && own.has(path))
      const trust = files.filter(({ path }) => paths.includes(path))
      const wasChanged = paths.some((path) => changed.has(fileKey(member.node, path)))
      const isOpen = trust.length > 0 || (wasChanged && !hasRead(now, member.process, member.node, paths))
      if (!isOpen) return [...files]
      return [...files, ...restarted(now, member)]
    })
    return [
      ...back,
      ...(back.some(({ kind }) => kind === 'restart') ? [awaitQuorum()] : []),
      ...apisBack(copies, now),
    ]
  },
})

function replaced(
  observed: Observed<'files'>,
  member: EtcdMemberSnapshot,
  { newCa }: CaChange,
): readonly Task[] {
  const paths = new Set(memberTrustFiles(member).map(({ path }) => path))
  return [...paths].flatMap((path) => {
    const file = fileAt(observed, member.node, path)
    if (file === undefined || certificatesIn(file).join() === newCa.digest) return []
    return [rewrite(file, { kind: 'certificates', certificates: [newCa.digest] })]
  })
}

function staleKeys(observed: Observed<'files'>, member: EtcdMemberSnapshot, { newCa }: CaChange) {
  return caKeyFiles(observed, member).filter(
    ({ contains }) => contains.kind !== 'key' || contains.spki !== newCa.spki,
  )
}

/**
 * Returns the restart of a member, directly after the check of the quorum: a pause, a hook or a stopped run may be long ago. The API
 * server of the node reports its connection to etcd at /readyz.
 */
function restarted(
  observed: Observed<'components'>,
  { id, node, process: running }: EtcdMemberSnapshot,
): readonly Task[] {
  const api = apiServerOn(observed, node)?.id
  return [
    awaitQuorum(node),
    // An edit of the manifest would take 48 s: the kubelet first deletes the mirror pod through its own API server, whose etcd has just stopped.
    restart(id, running, 'signal'),
    ...(api === undefined ? [] : [waitUntilReady(api)]),
  ]
}

/** Returns true when the member was proven to refuse clients of the old CA since its CA files were last written. */
function refusesOld(observed: Observed<'files' | 'evidence'>, member: EtcdMemberSnapshot): boolean {
  return memberTrustFiles(member).every(({ node, path }) =>
    isProven(observed, clientAt(member.id, 'old', 'refused'), fileAt(observed, node, path)?.changedAtMs),
  )
}

/** Returns the restarts of API servers whose file this phase changed: since then they may have restarted and read the new CA. */
function apisBack(copies: readonly CopySnapshot[], now: Observed<EtcdSections>): readonly Task[] {
  const changed = changedFiles(copies)
  return apiTrustFiles(now).flatMap((trust) => {
    const { node, path, running } = trust
    const copy = copies.find(({ node: its, of }) => its === node && 'path' in of && of.path === path)
    if (!changed.has(fileKey(node, path)) || copy === undefined) return []
    const file = fileAt(now, node, path)
    const isBack = file?.digest === copy.digest && hasStartedSince(running, file)
    return isBack ? [] : restartedApi(now, trust)
  })
}
