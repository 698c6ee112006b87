import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { whileFrozen } from './cgroups.ts'
import { alone, boot, existing, prepare, stopAll } from './cluster.ts'
import { run } from './command.ts'
import { LabError } from './lab-error.ts'
import { isUp } from './node.ts'
import { releaseLeases, waitForApiServers, waitForLeases, waitForNodes, waitForPods } from './readiness.ts'
import { isNode, type Minor, machineIdentity } from './spec.ts'
import { paths, readRecord, writeRecord } from './state.ts'
import type { Steps } from './steps.ts'

/** Excluded from a save: images (linked again), and pods' volumes and logs (created again, as after a node's reboot). */
const leftOut = [
  'var/lib/containerd',
  'var/lib/kubelet/pods',
  'var/lib/kubelet/pod-resources',
  'var/log/pods',
  'var/log/containers',
  'process.json',
]

/** Saves the files of all nodes as of one moment, while the cluster is frozen for a second or two. */
export async function save(name: string, steps: Steps): Promise<void> {
  await alone(async () => {
    const record = existing()
    if (!record.nodes.every(isUp))
      throw new LabError('the cluster does not run', { next: 'npm run lab -- up' })
    const target = paths.save(name)
    const draft = `${target}.new`
    rmSync(draft, { recursive: true, force: true })
    mkdirSync(draft, { recursive: true })
    await steps.step(`save ${name}`, async () => {
      await whileFrozen(() =>
        Promise.all(record.nodes.map((node) => copyNode(paths.node(node), join(draft, 'nodes', node)))),
      )
      copyFileSync(paths.kubeconfig, join(draft, 'admin.conf'))
      await run(['cp', '-a', paths.ssh, join(draft, 'ssh')])
      writeRecord(record, join(draft, 'cluster.json'))
    })
    rmSync(target, { recursive: true, force: true })
    renameSync(draft, target)
  })
}

/** Replaces the current cluster by a saved one, and waits until all of it runs again. */
export async function restore(name: string, steps: Steps): Promise<void> {
  const saved = readRecord(join(paths.save(name), 'cluster.json'))
  if (saved === undefined) {
    throw new LabError(`nothing is saved as ${name}`, {
      why: `there is no ${paths.save(name)}`,
      next: 'npm run lab -- status',
    })
  }
  const material = await prepare(saved.minors, steps)
  if (!isDeepStrictEqual(saved.binaries, material.keys)) {
    throw new LabError(`${name} was saved with other binaries`, {
      why: `their keys are ${JSON.stringify(saved.binaries)}, now they are ${JSON.stringify(material.keys)}`,
      next: `npm run lab -- up, then save ${name} again`,
    })
  }
  await alone(async () => {
    const nodes = saved.nodes.map(machineIdentity)
    const kubelets = nodes.filter(isNode).map(({ name }) => name)
    const controlPlanes = nodes.filter(({ role }) => role === 'control-plane').map((node) => node.name)
    await steps.step('end what runs', stopAll)
    writeRecord({ ...saved, phase: 'starting' })
    await steps.step(`put the files of ${name} back`, () => putBack(name, saved.nodes))
    const since = new Date()
    await steps.step(`boot ${nodes.length} nodes and the load balancer`, () => boot(nodes, material))
    await steps.step('API servers ready', () => waitForApiServers(controlPlanes, saved.spec.flavour))
    await steps.step('leases held', async () => {
      await releaseLeases(since)
      await waitForLeases(kubelets, since)
    })
    await steps.step('nodes Ready', () => waitForNodes(kubelets))
    await steps.step('pods Ready', () => waitForPods(since))
    writeRecord(saved)
  })
}

/** Returns the keys of the binaries in a save; undefined when the save does not exist. */
export function savedKeys(name: string): Partial<Record<Minor, string>> | undefined {
  return readRecord(join(paths.save(name), 'cluster.json'))?.binaries
}

/** Returns the names of existing saves. */
export function savedNames(): string[] {
  if (!existsSync(paths.saves)) return []
  return readdirSync(paths.saves).filter((name) => existsSync(join(paths.save(name), 'cluster.json')))
}

async function putBack(name: string, nodes: readonly string[]): Promise<void> {
  for (const path of [paths.nodes, paths.ssh]) rmSync(path, { recursive: true, force: true })
  mkdirSync(paths.nodes, { recursive: true })
  await Promise.all(
    nodes.map((node) =>
      run(['cp', '-a', '--reflink=auto', join(paths.save(name), 'nodes', node), paths.node(node)]),
    ),
  )
  await run(['cp', '-a', join(paths.save(name), 'ssh'), paths.ssh])
  copyFileSync(join(paths.save(name), 'admin.conf'), paths.kubeconfig)
}

/** Copies a node's folder without the excluded files. Sparse files stay sparse, since etcd preallocates its log. */
async function copyNode(source: string, target: string): Promise<void> {
  mkdirSync(dirname(target), { recursive: true })
  mkdirSync(target)
  const exclude = leftOut.map((path) => `--exclude=./${path}`)
  const pipe = `tar -C "$1" -S ${exclude.join(' ')} --warning=no-file-ignored --warning=no-file-changed -cf - . | tar -C "$2" -xpSf -`
  await run(['sh', '-c', pipe, 'sh', source, target])
  for (const path of ['var/lib/kubelet/pods', 'var/log/pods', 'var/log/containers'])
    mkdirSync(join(target, path), { recursive: true })
}
