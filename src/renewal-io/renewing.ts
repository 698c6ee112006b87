import pMap from 'p-map'
import {
  type FileChange,
  type LeafPlace,
  type LeafUser,
  type MissingLeaf,
  type NodeLayout,
  type RenewalSettings,
  type RenewedLeaf,
  renewLeaf,
  type SurveyedLeaf,
  surveyLeaves,
} from '../ca/renewal.ts'
import type { CertificateRenewal } from '../ca/renewal-report.ts'
import { drawSerialNumber } from '../ca/serial.ts'
import { orUndefined } from '../errors/caught.ts'
import { KcertError, wordsOf } from '../errors/kcert-error.ts'
import { kubeadmFolders } from '../pki/kubeadm.ts'
import type { NodeAccess, ProcessFacts, ReadFile } from '../pki/node-access.ts'
import type { InventoryNode } from '../rotation/inventory.ts'
import { SiteObserver } from '../rotation-io/observer.ts'
import type { Notify } from '../rotation-io/recovering.ts'
import { Backup } from '../site/backups.ts'
import { certificatePatterns, folderOf, readCertificateFiles } from '../site/certificate-files.ts'
import { processOf } from '../site/definitions.ts'
import { textOf } from '../site/node-files.ts'
import { type FoundPod, staticPodsIn } from '../site/node-restarts.ts'
import { nodeNamed, type Site } from '../site/site.ts'
import type { RandomBytes } from '../system/random.ts'
import type { Certificate } from '../x509/certificate.ts'

// The leaves of a cluster's nodes, read and renewed only through the nodes, so this works without an API server.

const nodesAtOnce = 24

/** The order in which processes restart: each needs the one before it. */
export const restartOrder: readonly LeafUser[] = [
  'kubelet',
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
]

/** A note that a run writes on a node before it changes anything. A later run restarts what the earlier one did not. */
const intentPath = '/var/lib/kcert/renewal.json'

/** What a renewal of files needs: nodes, or one folder with a node's files. */
export type RenewalSite = Pick<Site, 'node' | 'clock'>

export interface SeenNode {
  readonly name: string
  readonly role: InventoryNode['role']
  readonly layout: NodeLayout
  readonly files: readonly ReadFile[]
  readonly processes: readonly ProcessFacts[]
  readonly pods: readonly FoundPod[]
  /** The folder of static pod manifests. */
  readonly manifests: string
  /** The intended restarts of an earlier run that was interrupted. */
  readonly intended: readonly LeafUser[]
}

export interface UnreachableNode {
  readonly node: string
  readonly why: string
  readonly error: KcertError
}

export interface SiteSurvey {
  readonly nodes: readonly SeenNode[]
  readonly unreachable: readonly UnreachableNode[]
  readonly leaves: readonly SurveyedLeaf[]
  readonly missing: readonly MissingLeaf[]
}

/**
 * Returns the leaves in the files of one control plane or worker: a copy, or a mounted disk. It does not look for processes. The
 * certificate folder is that of the API server's manifest, otherwise kubeadm's default.
 */
export async function surveyTree(
  site: RenewalSite,
  name: string,
  isDue: (leaf: Certificate, place: LeafPlace) => boolean,
): Promise<SiteSurvey> {
  const node = nodeNamed(site, name)
  const pods = await staticPodsIn(node, `${kubeadmFolders.kubernetes}/manifests`)
  const components = pods.flatMap(({ file, pod }) =>
    pod.containers.map(({ program, flags }) => ({
      ...{ name: program, runsAs: 'static-pod', definition: file.path, flags },
    })),
  )
  const role = pods.length === 0 ? 'worker' : 'control-plane'
  return surveyOf(site, [await seeNode(node, role, components, undefined)], [], isDue)
}

/** Returns the leaves on the nodes of the inventory. An unreachable node is listed, and the others are still read. */
export async function surveySite(
  site: Site,
  isDue: (leaf: Certificate, place: LeafPlace) => boolean,
): Promise<SiteSurvey> {
  const { components, kubelets } = await new SiteObserver(site).observe(['components', 'kubelets'])
  const unreachable: UnreachableNode[] = []
  const observe = async ({ name, role }: InventoryNode): Promise<SeenNode | undefined> => {
    try {
      const its = components.filter(({ node }) => node === name)
      const kubelet = kubelets.find(({ node }) => node === name)
      const node = nodeNamed(site, name)
      const { isRoot } = await node.identity()
      if (!isRoot)
        throw new KcertError('KCERT_NODE_REFUSED', `kcert is not root on node "${name}"`, {
          why: 'only root can change keys and static pods: run kcert as root, or set "become: sudo" for the node in kcert.yaml',
        })
      return await seeNode(node, role, its, kubelet)
    } catch (error) {
      if (!(error instanceof KcertError)) throw error
      unreachable.push({
        node: name,
        why: wordsOf(error),
        error,
      })
      return undefined
    }
  }
  const seen = await pMap(site.inventory.nodes, observe, { concurrency: nodesAtOnce })
  return surveyOf(
    site,
    seen.flatMap((node) => node ?? []),
    unreachable,
    isDue,
  )
}

async function surveyOf(
  { clock }: RenewalSite,
  nodes: readonly SeenNode[],
  unreachable: readonly UnreachableNode[],
  isDue: (leaf: Certificate, place: LeafPlace) => boolean,
): Promise<SiteSurvey> {
  const { leaves, missing } = await surveyLeaves(
    nodes.flatMap(({ name, files }) => files.map(({ path, content }) => ({ node: name, path, content }))),
    nodes.map(({ layout }) => layout),
    clock(),
    isDue,
  )
  return { nodes, unreachable, leaves, missing }
}

async function seeNode(
  node: NodeAccess,
  role: InventoryNode['role'],
  components: readonly {
    readonly name: string
    readonly runsAs: string
    readonly definition: string
    readonly flags: Readonly<Record<string, string>>
  }[],
  kubelet: { readonly kubeconfig: string; readonly clientCurrent?: string } | undefined,
): Promise<SeenNode> {
  const api = components.find(({ name }) => name === 'kube-apiserver')
  const clientCaFile = api?.flags['client-ca-file']
  const pkiFolder = clientCaFile === undefined ? kubeadmFolders.pki : folderOf(clientCaFile)
  const current = kubelet?.clientCurrent
  const layout: NodeLayout = {
    node: node.name,
    pkiFolder,
    kubernetesFolder: kubeadmFolders.kubernetes,
    kubeletKubeconfig: kubelet?.kubeconfig ?? `${kubeadmFolders.kubernetes}/kubelet.conf`,
    kubeletFolder: current === undefined ? kubeadmFolders.kubeletPki : folderOf(current),
  }
  const manifest = components.find(({ runsAs }) => runsAs === 'static-pod')?.definition
  const manifests = manifest === undefined ? `${kubeadmFolders.kubernetes}/manifests` : folderOf(manifest)
  const [files, processes, pods, [intent]] = await Promise.all([
    readCertificateFiles(node, certificatePatterns(pkiFolder, layout.kubeletFolder), [
      layout.kubeletKubeconfig,
      ...(current === undefined ? [] : [current]),
    ]),
    node.processes(restartOrder),
    staticPodsIn(node, manifests),
    node.readFiles([intentPath]),
  ])
  return { name: node.name, role, layout, files, processes, pods, manifests, intended: intentIn(intent) }
}

function intentIn(file: Awaited<ReturnType<NodeAccess['readFiles']>>[number] | undefined): LeafUser[] {
  if (file?.found !== 'file') return []
  // A truncated note is not JSON. In that case no file had been changed.
  const intent = orUndefined((): { restarts?: unknown } => JSON.parse(textOf(file)))
  const restarts = intent?.restarts
  return restartOrder.filter((user) => Array.isArray(restarts) && restarts.includes(user))
}

/** A process that must restart. */
export type NeededRestart = CertificateRenewal['restarts'][number]

/**
 * Returns the processes that must restart after `chosen` are renewed, and those that still run with certificates renewed earlier.
 */
export function neededRestarts(
  { nodes, leaves }: SiteSurvey,
  chosen: readonly SurveyedLeaf[],
): NeededRestart[] {
  return nodes.flatMap((node): NeededRestart[] => {
    const { name, processes, pods, intended, files } = node
    const users = new Set(chosen.flatMap(({ place }) => (place.node === name ? (place.usedBy ?? []) : [])))
    const needed = new Map<LeafUser, NeededRestart['reason']>()
    for (const program of restartOrder) {
      const argv = pods.find((pod) => pod.program === program)?.pod.containers[0]?.argv ?? []
      const isHere = program === 'kubelet' || argv.length > 0
      if (!isHere) continue
      const running = processOf({ name: program as 'kubelet', argv }, processes)
      const paths = leaves.flatMap(({ place }) =>
        place.node === name && place.usedBy === program ? [place.path, place.keyPath] : [],
      )
      if (users.has(program)) needed.set(program, 'new-certificate')
      // A kubelet renews its own certificates and already uses them.
      else if (program === 'kubelet' ? intended.includes(program) : isOlder(running, files, paths))
        needed.set(program, 'started-before-renewal')
      else if (intended.includes(program) && running === undefined) needed.set(program, 'not-running')
    }
    // The kubelet starts the static pods, so it must run.
    const kubelet = processes.some(({ program }) => program === 'kubelet')
    if (needed.size > 0 && !kubelet && !needed.has('kubelet')) needed.set('kubelet', 'not-running')
    return restartOrder.flatMap((program) => {
      const reason = needed.get(program)
      return reason === undefined ? [] : [{ node: name, program, reason }]
    })
  })
}

/** Compares two times of the node's clock. */
function isOlder(
  running: ProcessFacts | undefined,
  files: readonly ReadFile[],
  paths: readonly (string | undefined)[],
): boolean {
  if (running === undefined) return false
  return files.some(
    ({ path, modifiedAt }) => paths.includes(path) && running.startedAt.getTime() <= modifiedAt.getTime(),
  )
}

export type RenewalChoice = Pick<RenewalSettings, 'keepKeys' | 'ttlMs'>

/**
 * Writes new certificates for leaves that have a signer, node by node. Each file is copied before its change. Restarts nothing.
 */
export async function writeRenewals(
  site: RenewalSite,
  survey: SiteSurvey,
  chosen: readonly SurveyedLeaf[],
  restarts: readonly NeededRestart[],
  { keepKeys, ttlMs }: RenewalChoice,
  random: RandomBytes,
  notify: Notify,
): Promise<{ readonly written: readonly RenewedLeaf[]; readonly backups: ReadonlyMap<string, Backup> }> {
  const written: RenewedLeaf[] = []
  const backups = new Map<string, Backup>()
  for (const seen of survey.nodes) {
    const { name } = seen
    const its = restarts.filter((one) => one.node === name).map(({ program }) => program)
    const leaves = chosen.filter(({ place }) => place.node === name)
    if (leaves.length === 0 && its.length === 0) continue
    const node = nodeNamed(site, name)
    const backup = new Backup(node, 'renew', site.clock())
    backups.set(name, backup)
    await writeIntent(node, [...new Set([...seen.intended, ...its])])
    for (const leaf of leaves) {
      const { signer } = leaf
      if (signer === undefined) continue
      const renewed = await renewLeaf(
        { ...leaf, signer },
        {
          ...{ now: site.clock(), keepKeys, ...(ttlMs === undefined ? {} : { ttlMs }) },
          serialNumber: () => drawSerialNumber(random, () => false),
        },
      )
      for (const change of renewed.changes) await makeChange(node, seen.files, backup, change)
      written.push(renewed)
      const until = renewed.renewed.notAfter.toISOString().slice(0, 10)
      notify(`renewed ${leaf.place.name} on ${name} until ${until}`)
    }
  }
  return { written, backups }
}

/** Removes the note of a node after all its processes have restarted. */
export async function clearIntent(site: RenewalSite, { name }: SeenNode): Promise<void> {
  await nodeNamed(site, name).removeFile(intentPath, { holds: 'anything' })
}

async function writeIntent(node: NodeAccess, restarts: readonly LeafUser[]): Promise<void> {
  await node.makeFolder(folderOf(intentPath), { mode: 0o700 })
  const text = `${JSON.stringify({ restarts })}\n`
  await node.writeFile(intentPath, text, { replaces: 'anything', mode: 0o600 })
}

async function makeChange(
  node: NodeAccess,
  files: readonly ReadFile[],
  backup: Backup,
  change: FileChange,
): Promise<void> {
  const file = files.find(({ path }) => path === change.path)
  if (file !== undefined) await backup.keep(change.path)
  if (change.kind === 'link') {
    const replaces =
      file === undefined
        ? 'absent'
        : file.linkTarget === undefined
          ? { sha256: file.sha256 }
          : { linkTarget: file.linkTarget }
    await node.linkFile(change.path, change.to, { replaces })
    return
  }
  const { path, text, mode, isDated } = change
  await node.writeFile(
    path,
    text,
    file === undefined
      ? { replaces: isDated ? 'anything' : 'absent', mode }
      : { replaces: { sha256: file.sha256 } },
  )
}
