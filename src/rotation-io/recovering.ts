import { type Recovery, recoverFiles } from '../ca/recovery.ts'
import { drawSerialNumber } from '../ca/serial.ts'
import type { ObjectsApi } from '../cluster/objects.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { ReadFile } from '../pki/node-access.ts'
import type { Inventory } from '../rotation/inventory.ts'
import type { Snapshot } from '../rotation/snapshot.ts'
import { certificatePatterns, folderOf, readCertificateFiles } from '../site/certificate-files.ts'
import { restartKubelet, restartStaticPod, staticPodsIn } from '../site/node-restarts.ts'
import { nodeNamed, type Site } from '../site/site.ts'
import type { RandomBytes } from '../system/random.ts'
import { Copies } from './copies.ts'
import { SiteExecutor } from './executor.ts'
import { SiteObserver } from './observer.ts'

// In a cluster with an expired CA, no component trusts another, so kcert works on the nodes and does not use the API.

/** The state of the nodes, and the planned changes. */
export interface PlannedRecovery extends Recovery {
  /** Files as they were read, by node and path. Writes replace these. */
  readonly before: ReadonlyMap<string, ReadFile>
  readonly observed: Pick<Snapshot, 'components' | 'kubelets' | 'files'>
  /** Nodes whose processes are older than their files, or will be. */
  readonly restarts: readonly string[]
}

/** Receives lines of progress: the action, and its node. */
export type Notify = (what: string) => void

/** Number of a recovery in the index of copies. It is not a phase, and `rollback` skips it. */
const recoveryNumber = 0

/** Returns the objects of a cluster without a reachable API: only the nodes of the inventory. */
export function inventoryObjects({ nodes }: Inventory): ObjectsApi {
  const refuse = (): never => {
    throw new TypeError('a recovery does not use the API server')
  }
  return {
    get: async () => undefined,
    async *list({ resource }) {
      if (resource !== 'nodes') return
      for (const { name, role, addresses } of nodes) {
        const labels = role === 'control-plane' ? { 'node-role.kubernetes.io/control-plane': '' } : {}
        const known = addresses.map((address) => ({ type: 'InternalIP', address }))
        yield { metadata: { name, labels }, status: { addresses: known } }
      }
    },
    create: refuse,
    replace: refuse,
    patch: refuse,
    delete: refuse,
    watch: refuse,
  }
}

/** Reads every node of the inventory. Throws the nodes' errors, because a skipped node would stay disconnected permanently. */
export async function planRecovery(site: Site, random: RandomBytes): Promise<PlannedRecovery> {
  const observer = new SiteObserver(site)
  const observed = await observer.observe(['components', 'kubelets', 'files'])
  const read = await Promise.all(site.inventory.nodes.map(({ name }) => filesOn(site, name, observed)))
  const found = read.flat()
  const recovery = await recoverFiles(
    found.map(({ node, file }) => ({ node, path: file.path, content: file.content })),
    { now: site.clock(), serialNumber: () => drawSerialNumber(random, () => false) },
  )
  const before = new Map(found.map(({ node, file }) => [`${node}:${file.path}`, file]))
  const changed = new Set(recovery.files.map(({ node }) => node))
  const copies = new Copies((name) => nodeNamed(site, name))
  const restarts: string[] = []
  for (const { name } of site.inventory.nodes) {
    // After a recovery that stopped after its writes, only the restart is left.
    const wasHere = (await copies.on(name)).some(({ phase }) => phase === recoveryNumber)
    if (changed.has(name) || (wasHere && isBehind(observed, name, found))) restarts.push(name)
  }
  return { ...recovery, before, observed, restarts }
}

/** Writes the planned files, node by node, and restarts everything. Resolves when the API servers respond. */
export async function carryOutRecovery(
  site: Site,
  { files, before, observed, restarts }: PlannedRecovery,
  random: RandomBytes,
  notify: Notify,
): Promise<void> {
  const copies = new Copies((name) => nodeNamed(site, name))
  for (const { node, path, text, what } of files) {
    const file = before.get(`${node}:${path}`)
    await copies.keepFile(node, path, recoveryNumber)
    await nodeNamed(site, node).writeFile(path, text, {
      replaces: file === undefined ? 'absent' : { sha256: file.sha256 },
    })
    notify(`wrote ${node}:${path} (${what.join(', ')})`)
  }
  for (const node of restarts) await restartOn(site, node, observed, copies, notify)
  const executor = new SiteExecutor({ site, random, unreadLogs: { tell: notify } })
  for (const { id, node, process: running, runsAs } of observed.components) {
    if (!restarts.includes(node)) continue
    notify(`waiting for ${id}`)
    await executor.restart({
      kind: 'restart',
      phase: recoveryNumber,
      process: id,
      ...(running && { replaces: running.startedAtMs }),
      how: runsAs === 'unit' ? 'service' : 'definition',
    })
  }
}

async function filesOn(site: Site, name: string, observed: Pick<Snapshot, 'files'>) {
  const node = site.node(name)
  if (node === undefined) {
    throw new KcertError('KCERT_ROTATION_REFUSED', `kcert.yaml has no access for node ${name}`, {
      why: 'add access to the node in kcert.yaml',
      next: 'kcert rotate-ca discover --dry-run',
    })
  }
  const known = [...observed.files.values()].flatMap((file) => (file.node === name ? [file.path] : []))
  const files = await readCertificateFiles(node, certificatePatterns(), known)
  return files.map((file) => ({ node: name, file }))
}

/** Returns true when a run stopped between writing and restarting: a process is older than a file with certificates. */
function isBehind(
  { components, kubelets, files }: Pick<Snapshot, 'components' | 'kubelets' | 'files'>,
  node: string,
  found: Awaited<ReturnType<typeof filesOn>>,
): boolean {
  const paths = new Set(found.flatMap((one) => (one.node === node ? [one.file.path] : [])))
  let last = 0
  for (const file of files.values()) {
    const hasCertificate = file.contains.kind !== 'other' && file.contains.kind !== 'key'
    if (file.node === node && paths.has(file.path) && hasCertificate) last = Math.max(last, file.changedAtMs)
  }
  return [...components, ...kubelets].some(
    ({ node: its, process: running }) =>
      its === node && (running === undefined || running.startedAtMs <= last),
  )
}

/**
 * Restarts static pods by their manifests, because a kubelet restarts a pod only when the manifest changes. Then restarts the
 * kubelet.
 */
async function restartOn(
  site: Site,
  name: string,
  { components }: Pick<Snapshot, 'components'>,
  copies: Copies,
  notify: Notify,
): Promise<void> {
  const node = nodeNamed(site, name)
  const manifests = new Set(
    components.flatMap((one) =>
      one.node === name && one.runsAs === 'static-pod' ? [folderOf(one.definition)] : [],
    ),
  )
  for (const folder of manifests) {
    for (const pod of await staticPodsIn(node, folder)) {
      await restartStaticPod(node, pod, (path) => copies.keepFile(name, path, recoveryNumber))
      notify(`restarting ${pod.pod.name} on ${name}`)
    }
  }
  notify(`restarting kubelet on ${name}`)
  await restartKubelet(site, name)
}
