import type { ProbeSubject, Step, Task } from '../action.ts'
import { type Digest, isSignedByCa } from '../certificate-record.ts'
import { leafIn } from '../leaves.ts'
import { keyPathFor } from '../material.ts'
import { isProven } from '../proof.ts'
import {
  apiServers,
  certificatesIn,
  type EtcdMemberSnapshot,
  type FileSnapshot,
  fileAt,
  fileKey,
  hasStartedSince,
  type NodeSnapshot,
  type Observed,
  type ProcessId,
  type ProcessSnapshot,
} from '../snapshot.ts'
import type { CaChange, Target } from '../target.ts'
import { firstAlone, inLanes, probe, wait } from '../tasks.ts'

// Who trusts etcd's CA, and who presents certificates of it.

export type EtcdSections = 'components' | 'files' | 'etcdMembers'

/** A file with etcd's CA, and a process that reads it at startup. */
export interface EtcdTrustFile {
  readonly process: ProcessId
  readonly node: string
  readonly path: string
  readonly flag: string
  readonly running: ProcessSnapshot | undefined
}

export const trustFlags = ['trusted-ca-file', 'peer-trusted-ca-file'] as const
export const servingFlags = { client: 'cert-file', peer: 'peer-cert-file' } as const
/** Certificates that a member presents as a client, in place of its serving certificates. */
export const clientFlags = ['client-cert-file', 'peer-client-cert-file'] as const

/** Returns the files with the CAs that a member trusts, each once for each flag. */
export function memberTrustFiles({ id, node, flags, process }: EtcdMemberSnapshot): readonly EtcdTrustFile[] {
  return trustFlags.flatMap((flag) => {
    const path = flags[flag]
    return path === undefined ? [] : [{ process: id, node, path, flag, running: process }]
  })
}

/** Returns the files with the CAs with which API servers verify etcd. */
export function apiTrustFiles(observed: Observed<'components'>): readonly EtcdTrustFile[] {
  return apiServers(observed).flatMap(({ id, node, flags, process }) => {
    const flag = 'etcd-cafile'
    const path = flags[flag]
    return path === undefined ? [] : [{ process: id, node, path, flag, running: process }]
  })
}

/** Returns the files of API servers that are not files of a member: those of phase 3. With external etcd, each API server has its own. */
export function ownApiTrustFiles(observed: Observed<'components' | 'etcdMembers'>): readonly EtcdTrustFile[] {
  const ofMembers = new Set(
    observed.etcdMembers.flatMap(memberTrustFiles).map(({ node, path }) => fileKey(node, path)),
  )
  return apiTrustFiles(observed).filter(({ node, path }) => !ofMembers.has(fileKey(node, path)))
}

/** Returns the nodes with files of etcd or of its clients: control-plane nodes, and machines of external etcd. */
export function etcdNodes({ nodes }: Observed<'nodes'>): readonly NodeSnapshot[] {
  return nodes.filter(({ isControlPlane, isEtcdMachine }) => isControlPlane || isEtcdMachine)
}

/** Returns the files with etcd's CA on all nodes. */
export function trustFiles(observed: Observed<'components' | 'etcdMembers'>): readonly EtcdTrustFile[] {
  return [...observed.etcdMembers.flatMap(memberTrustFiles), ...apiTrustFiles(observed)]
}

/** Returns true when the process has read the current content of the file. One that started before an edit of its flag has not. */
export function hasLoaded(
  observed: Observed<'files'>,
  { node, path, flag, running }: EtcdTrustFile,
): boolean {
  return running?.flags[flag] === path && hasStartedSince(running, fileAt(observed, node, path))
}

/** Returns true when the file contains only the new CA and the process has read it. */
export function trustsNewAlone(
  observed: Observed<'files'>,
  trust: EtcdTrustFile,
  { newCa }: CaChange,
): boolean {
  const file = fileAt(observed, trust.node, trust.path)
  return certificatesIn(file).join() === newCa.digest && hasLoaded(observed, trust)
}

/** Returns true when the process has read the new CA, with or without the old one, or will read only the new one next. */
export function trustsNew(observed: Observed<'files'>, trust: EtcdTrustFile, { newCa }: CaChange): boolean {
  const certificates = certificatesIn(fileAt(observed, trust.node, trust.path))
  // The next phase writes the new CA alone only when the process has read both CAs.
  if (certificates.join() === newCa.digest) return true
  return certificates.includes(newCa.digest) && hasLoaded(observed, trust)
}

/** Returns the processes that may still trust the old CA, so that others must present the bridge certificate to them. */
export function holdersOfOldTrust(observed: Observed<EtcdSections>, change: CaChange): readonly ProcessId[] {
  const open = trustFiles(observed).filter((file) => !trustsNewAlone(observed, file, change))
  return [...new Set(open.map(({ process }) => process))]
}

/**
 * Returns the files with certificates of etcd's CA, each once: those that members serve, those of API servers as clients, and
 * kubeadm's client certificate for health checks if it exists.
 */
export function etcdLeafFiles(observed: Observed<EtcdSections>): readonly FileSnapshot[] {
  const paths = [
    ...observed.etcdMembers.flatMap(({ node, flags }) =>
      [...Object.values(servingFlags).map((flag) => flags[flag]), healthcheckPath(flags)].map(
        (path) => [node, path] as const,
      ),
    ),
    ...apiServers(observed).map(({ node, flags }) => [node, flags['etcd-certfile']] as const),
  ]
  const files = paths.flatMap(([node, path]) => fileAt(observed, node, path) ?? [])
  return [...new Map(files.map((file) => [fileKey(file.node, file.path), file])).values()]
}

/** Returns the path of kubeadm's client certificate for health checks and etcdctl, next to the member's CA. */
export function healthcheckPath(flags: EtcdMemberSnapshot['flags']): string | undefined {
  return flags['trusted-ca-file']?.replace(/[^/]*$/, 'healthcheck-client.crt')
}

/** Returns true when the new CA signed the leaf certificate in the file. */
export function isOfNewCa(observed: Observed<'files'>, file: FileSnapshot, { newCa }: CaChange): boolean {
  return isSignedByCa(leafIn(observed, file), newCa)
}

/** Returns the files of the CA key beside these files that exist. Only `kubeadm join` and `kubeadm certs renew` read them. */
export function caKeyFiles(
  observed: Observed<'files'>,
  trust: readonly Pick<EtcdTrustFile, 'node' | 'path'>[],
): readonly FileSnapshot[] {
  const files = trust.flatMap(({ node, path }) => fileAt(observed, node, keyPathFor(path)) ?? [])
  return [...new Set(files)]
}

/** Returns those of these files that do not have the key of the new CA. */
export function staleKeys(
  observed: Observed<'files'>,
  trust: readonly EtcdTrustFile[],
  { newCa }: CaChange,
): readonly FileSnapshot[] {
  return caKeyFiles(observed, trust).filter(
    ({ contains }) => contains.kind !== 'key' || contains.spki !== newCa.spki,
  )
}

/** Returns the members whose connections were not watched after `sinceOf` for clients that Kubernetes does not know. */
export function unwatched(
  observed: Observed<'etcdMembers' | 'evidence'>,
  sinceOf: (member: EtcdMemberSnapshot) => number | undefined = () => 0,
): readonly EtcdMemberSnapshot[] {
  return observed.etcdMembers.filter((member) => {
    const subject = { kind: 'etcd-clients', at: member.id, forMs: 0, waived: [] } as const
    return !isProven(observed, subject, sinceOf(member))
  })
}

/** Returns the steps that watch the connections to these members. */
export function watching(
  members: readonly EtcdMemberSnapshot[],
  { soakMs: forMs, waivers }: Target,
): readonly Step<Task>[] {
  return inLanes(members.length, members, ({ id: at }) => [
    probe({ kind: 'etcd-clients', at, forMs, waived: [...waivers] }, forMs + 60_000),
  ])
}

/** Returns the members with followers first and the leader last, so that leadership moves at most once. */
export function leaderLast(members: readonly EtcdMemberSnapshot[]): readonly EtcdMemberSnapshot[] {
  const isLeader = ({ state }: EtcdMemberSnapshot): boolean => state?.isLeader === true
  return [...members.filter((one) => !isLeader(one)), ...members.filter(isLeader)]
}

/**
 * Returns the steps that write certificates, and then wait until the members on these nodes serve them. Certificates are read at each
 * handshake, with their whole chain, so nothing restarts.
 */
export function presenting(
  { etcdMembers }: Observed<'etcdMembers'>,
  writes: readonly Task<'write-file'>[],
  served: { readonly signedBy: Digest; readonly bridged: boolean },
  atOnce: number,
): readonly Step<Task>[] {
  const byNode = Map.groupBy(writes, ({ node }) => node)
  const lanes = [...byNode].map(([name, steps]) => ({ name, steps }))
  const because = served.bridged
    ? 'the member serves its new certificates with the bridge certificate'
    : 'the member serves its certificates without the bridge certificate'
  const waits = etcdMembers
    .filter(({ node }) => byNode.has(node))
    .map(({ id: member }) => wait({ kind: 'etcd-serves', member, ...served }, because, 60_000))
  return [...firstAlone(atOnce, lanes), ...waits]
}

/** etcd's own back-off and elections are over by then. */
const settleMs = 5_000

/**
 * Returns the wait before the restart of the member on `node`, or after the last one. Nothing else happens between it and the restart.
 * With much data a member needs minutes to catch up.
 */
export function awaitQuorum(node?: string): Task<'wait'> {
  const because = 'every member of etcd is healthy, and all agree on one leader'
  return wait({ kind: 'etcd-quorum', forMs: settleMs, ...(node && { node }) }, because, 600_000)
}

/** Returns the proof at a member with a new connection of a client. A client of the new CA presents the bridge certificate. */
export function clientAt(
  at: ProcessId,
  generation: 'old' | 'new',
  expects: 'accepted' | 'refused',
): ProbeSubject {
  return { kind: 'client', at, ca: 'etcd', generation, expects }
}
