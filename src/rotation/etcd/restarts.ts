import type { Task } from '../action.ts'
import type { Digest } from '../certificate-record.ts'
import { keyPathFor } from '../material.ts'
import { restartInPlace } from '../restart.ts'
import {
  apiServerOn,
  apiServers,
  type CopySnapshot,
  certificatesIn,
  type EtcdMemberSnapshot,
  fileAt,
  fileKey,
  hasStartedSince,
  type Observed,
} from '../snapshot.ts'
import { restart, rewrite, waitUntilReady } from '../tasks.ts'
import { restoreFiles } from '../undo.ts'
import { changedFiles, hasRead } from '../undo-pass.ts'
import {
  apiTrustFiles,
  awaitQuorum,
  type EtcdSections,
  type EtcdTrustFile,
  leaderLast,
  memberTrustFiles,
} from './members.ts'

// Processes read etcd's CA only at startup: new CA files, and the restarts after which they count.

/** Returns the writes of these CA files that have other content. `trust`: the CAs, given those in the file. */
export function rewritten(
  observed: Observed<'files'>,
  of: readonly EtcdTrustFile[],
  trust: (now: readonly Digest[]) => readonly Digest[],
): readonly Task[] {
  const files = new Set(of.flatMap(({ node, path }) => fileAt(observed, node, path) ?? []))
  return [...files].flatMap((file) => {
    const certificates = trust(certificatesIn(file))
    if (certificatesIn(file).join() === certificates.join()) return []
    return [rewrite(file, { kind: 'certificates', certificates })]
  })
}

/**
 * Returns the restart of a member, directly after the check of the quorum: a pause, a hook or a stopped run may be long ago. The API
 * server of the node reports its connection to etcd at /readyz.
 */
export function restarted(
  observed: Observed<'components'>,
  { id, node, runsAs, process: running }: EtcdMemberSnapshot,
): readonly Task[] {
  const api = apiServerOn(observed, node)?.id
  return [
    awaitQuorum(node),
    // An edit of the manifest would take 48 s: the kubelet first deletes the mirror pod through its own API server, whose etcd has just stopped.
    restart(id, running, runsAs === 'unit' ? 'service' : 'signal'),
    ...(api === undefined ? [] : [waitUntilReady(api)]),
  ]
}

/** Returns the restart of an API server with the CA of etcd. */
export function restartedApi(
  observed: Observed<'components'>,
  { process: id }: Pick<EtcdTrustFile, 'process'>,
): readonly Task[] {
  return apiServers(observed).flatMap((api) => (api.id === id ? restartInPlace(api) : []))
}

/** Returns the steps that restore the CA files of members, one member after another, the leader last. */
export function membersBack(copies: readonly CopySnapshot[], now: Observed<EtcdSections>): readonly Task[] {
  const changed = changedFiles(copies)
  const back = leaderLast(now.etcdMembers).flatMap((member): readonly Task[] => {
    const paths = memberTrustFiles(member).map(({ path }) => path)
    const own = new Set([...paths, ...paths.map(keyPathFor)])
    const files = restoreFiles(copies, now, (node, path) => node === member.node && own.has(path))
    const trust = files.filter(({ path }) => paths.includes(path))
    const wasChanged = paths.some((path) => changed.has(fileKey(member.node, path)))
    const isOpen = trust.length > 0 || (wasChanged && !hasRead(now, member.process, member.node, paths))
    return isOpen ? [...files, ...restarted(now, member)] : files
  })
  return [...back, ...(back.some(({ kind }) => kind === 'restart') ? [awaitQuorum()] : [])]
}

/**
 * Returns the restarts of API servers whose file this phase changed, unless they started before `sinceMs`: since then they may have
 * restarted and read the changed file.
 */
export function apisBack(
  copies: readonly CopySnapshot[],
  now: Observed<EtcdSections>,
  sinceMs = 0,
): readonly Task[] {
  const changed = changedFiles(copies)
  return apiTrustFiles(now).flatMap((trust) => {
    const { node, path, running } = trust
    const copy = copies.find(({ node: its, of }) => its === node && 'path' in of && of.path === path)
    if (!changed.has(fileKey(node, path)) || copy === undefined) return []
    if (running !== undefined && running.startedAtMs < sinceMs) return []
    const file = fileAt(now, node, path)
    const isBack = file?.digest === copy.digest && hasStartedSince(running, file)
    return isBack ? [] : restartedApi(now, trust)
  })
}
