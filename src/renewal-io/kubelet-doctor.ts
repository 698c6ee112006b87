import { KcertError } from '../errors/kcert-error.ts'
import { editKubeconfig } from '../kubeconfig/edit.ts'
import { openKubeconfig } from '../kubeconfig/open.ts'
import { diagnose } from '../kubelet/doctor/diagnosis.ts'
import type { KubeletFacts, StoreEntry } from '../kubelet/doctor/facts.ts'
import type { Finding, Fix } from '../kubelet/doctor/finding.ts'
import { type Flags, flagsOf } from '../pki/component-flags.ts'
import { kubeadmFolders } from '../pki/kubeadm.ts'
import { kubeletFile } from '../pki/kubelet.ts'
import {
  changedSettings,
  type DropIn,
  type KubeletConfiguration,
  readInstanceConfiguration,
  readKubeletConfiguration,
  withKubeletFlags,
} from '../pki/kubelet-configuration.ts'
import type { FileContent, NodeAccess, ReadFile } from '../pki/node-access.ts'
import type { Notify } from '../rotation-io/recovering.ts'
import { Backup } from '../site/backups.ts'
import { linkedFrom } from '../site/certificate-files.ts'
import { dropInsOn } from '../site/kubelet-drop-ins.ts'
import { textOf } from '../site/node-files.ts'
import type { Clock } from '../system/clock.ts'

/** Where a kubelet's files are, if the caller knows. Other paths are detected, or kubeadm's defaults. */
export interface KubeletPlaces {
  readonly kubeconfig?: string
  readonly folder?: string
  readonly nodeName?: string
}

const bootstrapKubeconfig = `${kubeadmFolders.kubernetes}/bootstrap-kubelet.conf`

/** The limit of chained links, which may form a loop. */
const mostLinks = 8

/** Returns the facts of a node that the diagnosis needs. Links are followed by name, so a folder of files is read like a node. */
export async function readKubelet(node: NodeAccess, places: KubeletPlaces = {}): Promise<KubeletFacts> {
  const [running] = await node.processes(['kubelet'])
  const flags = flagsOf(running?.argv ?? [])
  const folder = places.folder ?? flags['cert-dir'] ?? kubeadmFolders.kubeletPki
  const kubeconfigPath = flags.kubeconfig ?? places.kubeconfig ?? `${kubeadmFolders.kubernetes}/kubelet.conf`
  const configPath = flags.config ?? '/var/lib/kubelet/config.yaml'
  const [kubeconfig, bootstrap, configuration, instance] = await Promise.all([
    readThrough(node, kubeconfigPath),
    readThrough(node, flags['bootstrap-kubeconfig'] ?? bootstrapKubeconfig),
    readThrough(node, configPath),
    readThrough(node, linkedFrom(configPath, 'instance-config.yaml')),
  ])
  for (const { found, path } of [configuration, instance])
    if (found === 'unreadable') throw unreadable(node, path)
  const listing = await node.listFolder(folder)
  if (listing.found === 'unreadable') throw unreadable(node, folder)
  const [stated] = await node.statFiles([folder])
  const entries: StoreEntry[] = []
  for (const { name, kind, mode, uid, linkTarget } of listing.found === 'folder' ? listing.entries : []) {
    const isAsked = kubeletFile(name) !== undefined && (kind === 'file' || kind === 'link')
    const file = isAsked ? await readThrough(node, `${folder}/${name}`) : undefined
    if (file?.found === 'unreadable') throw unreadable(node, `${folder}/${name}`)
    entries.push({
      ...{ name, kind, mode, uid },
      ...(linkTarget !== undefined && { linkTarget }),
      ...(file?.found === 'file' && { content: file.content }),
    })
  }
  if (kubeconfig.found === 'unreadable') throw unreadable(node, kubeconfigPath)
  const dropIns = await dropInsOn(node, flags)
  const configured = withKubeletFlags(await configurationOf(configuration, configPath, dropIns), flags)
  const clientCa = await readThrough(node, configured.clientCaFile ?? `${kubeadmFolders.pki}/ca.crt`)
  const content = kubeconfig.found === 'file' ? kubeconfig.content : undefined
  const { caFiles, named } = await namedIn(node, kubeconfigPath, content)
  return {
    ...{ node: node.name, folder, entries, kubeconfigPath, named },
    ...(stated?.found === 'folder' && { folderMode: stated.mode }),
    ...(kubeconfig.found === 'file' && {
      kubeconfig: { path: kubeconfigPath, mode: kubeconfig.mode, content: kubeconfig.content },
    }),
    trustBundles: [
      ...caFiles,
      ...(clientCa.found === 'file' ? [{ path: clientCa.path, content: clientCa.content }] : []),
    ],
    hasBootstrapKubeconfig: bootstrap.found === 'file',
    ...(places.nodeName !== undefined && { nodeName: places.nodeName }),
    asksForServing: configured.serverTlsBootstrap === true,
    ...(await ownServing(node, configured.tlsCertFile)),
    ...(instance.found === 'file' && {
      instance: await instanceOf(instance, configPath, { configured, flags }),
    }),
  }
}

/** A flag takes precedence over a setting that kubeadm merges, too. */
async function instanceOf(
  file: ReadFile,
  configPath: string,
  { configured, flags }: { readonly configured: KubeletConfiguration; readonly flags: Flags },
): Promise<NonNullable<KubeletFacts['instance']>> {
  const { path } = file
  try {
    const merged = withKubeletFlags(await readInstanceConfiguration(textOf(file), configPath), flags)
    return { path, changes: changedSettings(configured, merged) }
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    return { path, changes: [], fault: error.why ?? error.message }
  }
}

async function ownServing(
  node: NodeAccess,
  file: string | undefined,
): Promise<Pick<KubeletFacts, 'ownServing'>> {
  if (!file) return {}
  const read = await readThrough(node, file)
  if (read.found === 'unreadable') throw unreadable(node, read.path)
  return { ownServing: { path: read.path, ...(read.found === 'file' && { content: read.content }) } }
}

async function readThrough(node: NodeAccess, path: string): Promise<FileContent> {
  let at = path
  for (let links = 0; links < mostLinks; links++) {
    const [facts] = await node.statFiles([at])
    if (facts?.linkTarget === undefined) {
      const [file] = await node.readFiles([at])
      return file ?? { path: at, found: 'unreadable', reason: 'the node returned no state for it' }
    }
    at = linkedFrom(at, facts.linkTarget)
  }
  return { path, found: 'absent' }
}

async function configurationOf(
  file: FileContent,
  path: string,
  dropIns: readonly DropIn[],
): Promise<KubeletConfiguration> {
  const text = file.found === 'file' ? textOf(file) : undefined
  // Without a malformed file. A malformed drop-in is an error again.
  return readKubeletConfiguration(text, path, dropIns).catch(() =>
    readKubeletConfiguration(undefined, path, dropIns),
  )
}

/** Returns the CAs of a kubeconfig, and the certificate and key files that it names in addition to the store's. */
async function namedIn(node: NodeAccess, path: string, content: Uint8Array | undefined) {
  const caFiles: { path: string; content: Uint8Array }[] = []
  const named = new Map<string, Uint8Array>()
  // A kubeconfig that client-go rejects is a finding. The files that it names are still read.
  const opened = content === undefined ? undefined : await openKubeconfig(content)
  if (opened === undefined) return { caFiles, named }
  const { clusters, users } = opened.kubeconfig
  const absolute = (file: string): string => linkedFrom(path, file)
  for (const { certificateAuthority } of clusters) {
    if (certificateAuthority?.data !== undefined) caFiles.push({ path, content: certificateAuthority.data })
    else if (certificateAuthority?.file !== undefined) {
      const file = await readThrough(node, absolute(certificateAuthority.file))
      if (file.found === 'file') caFiles.push({ path: file.path, content: file.content })
    }
  }
  for (const { clientCertificate, clientKey } of users) {
    for (const file of [clientCertificate?.file, clientKey?.file]) {
      if (file === undefined) continue
      const read = await readThrough(node, absolute(file))
      if (read.found === 'file') named.set(absolute(file), read.content)
    }
  }
  return { caFiles, named }
}

export interface Repair {
  readonly left: readonly Finding[]
  readonly fixed: readonly Finding[]
  readonly backup?: string
}

/** A repair may reveal the next finding. A node has fewer files than this. */
const mostRounds = 30

/** Repairs the findings that the node's own files can repair, one after the other. Each file is copied before its change. */
export async function repairKubelet(
  node: NodeAccess,
  places: KubeletPlaces,
  clock: Clock,
  notify: Notify,
): Promise<Repair> {
  const backup = new Backup(node, 'kubelet-doctor', clock())
  const fixed: Finding[] = []
  for (let round = 0; ; round++) {
    const left = await diagnose(await readKubelet(node, places), clock())
    const next = left.find(({ fixes }) => fixes !== undefined)
    const isStuck = next !== undefined && fixed.some(({ id, path }) => id === next.id && path === next.path)
    if (next === undefined || isStuck || round === mostRounds)
      return { left, fixed, ...(backup.isEmpty ? {} : { backup: backup.folder }) }
    for (const fix of next.fixes ?? []) await applyFix(node, backup, fix)
    notify(`${node.name}: ${next.path}: repaired: ${next.what}`)
    fixed.push(next)
  }
}

async function applyFix(node: NodeAccess, backup: Backup, fix: Fix): Promise<void> {
  const { path } = fix
  await backup.keep(path)
  const [facts] = await node.statFiles([path], { sha256: true })
  const before =
    facts?.linkTarget !== undefined
      ? { linkTarget: facts.linkTarget }
      : facts?.found === 'file'
        ? { sha256: facts.sha256 ?? '' }
        : ('absent' as const)
  switch (fix.kind) {
    case 'link':
      await node.linkFile(path, fix.to, { replaces: before })
      return
    case 'adopt': {
      const { sha256 } = before as { sha256: string }
      await node.copyFile(path, fix.to, { replaces: 'absent', sha256, mode: 0o600 })
      await node.linkFile(path, fix.to, { replaces: before })
      return
    }
    case 'mode': {
      const { sha256 } = before as { sha256: string }
      await node.copyFile(path, path, { replaces: { sha256 }, sha256, mode: fix.mode })
      return
    }
    case 'remove':
      await node.removeFile(path, { holds: before })
      return
    case 'point': {
      const [file] = (await node.readFiles([path])) as [ReadFile]
      const material = { file: fix.to }
      const text = await editKubeconfig(textOf(file), {
        users: [{ name: fix.user, clientCertificate: material, clientKey: material }],
      })
      await node.writeFile(path, text, { replaces: { sha256: file.sha256 } })
    }
  }
}

function unreadable(node: NodeAccess, path: string): KcertError {
  return new KcertError('KCERT_NODE_REFUSED', `${path} on node "${node.name}" cannot be read`, {
    why: 'only root can read keys: run kcert as root, or set "become: sudo" for the node in kcert.yaml',
  })
}
