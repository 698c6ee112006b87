import { setTimeout as sleep } from 'node:timers/promises'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { NodeAccess, NodeCall, ReadFile } from '../pki/node-access.ts'
import { editStaticPod, readStaticPod, type StaticPod } from '../pki/static-pod.ts'
import { restartCommand, unitOf } from '../rotation/inventory.ts'
import { rotationAnnotation } from '../rotation/restart.ts'
import { healthStatus } from './health.ts'
import { textOf } from './node-files.ts'
import { nodeNamed, type Site } from './site.ts'

export interface FoundPod {
  readonly file: ReadFile
  readonly pod: StaticPod
  /** The program of its first container. */
  readonly program: string
}

/** Returns the static pods that a folder of manifests defines. Files that are not pods are skipped, as by the kubelet. */
export async function staticPodsIn(node: NodeAccess, folder: string): Promise<FoundPod[]> {
  const found: FoundPod[] = []
  for (const file of await node.readFiles(await node.matchPaths([`${folder}/*.yaml`]))) {
    if (file.found !== 'file') continue
    const pod = await readStaticPod(textOf(file)).catch(() => undefined)
    if (pod !== undefined) found.push({ file, pod, program: pod.containers[0]?.program ?? pod.name })
  }
  return found
}

/**
 * Restarts a static pod by incrementing an annotation: its kubelet restarts it when the manifest changes. `keep` gets the path
 * first.
 */
export async function restartStaticPod(
  node: NodeAccess,
  { file, pod, program }: FoundPod,
  keep: (path: string) => Promise<void>,
): Promise<void> {
  const count = Number(pod.annotations[rotationAnnotation] ?? '0')
  const annotations = { [rotationAnnotation]: String(count + 1) }
  const edited = await editStaticPod(textOf(file), program, { flags: {}, annotations }, file.path)
  await keep(file.path)
  await node.writeFile(file.path, edited, { replaces: { sha256: file.sha256 } })
}

/**
 * Restarts a kubelet by its unit, or by the operator's own command. The restart ends a connection through this kubelet. A new process
 * decides then.
 */
export async function restartKubelet(site: Site, name: string): Promise<void> {
  const node = nodeNamed(site, name)
  const command = restartCommand(site.inventory, name, 'kubelet')
  const running = async () => (await node.processes(['kubelet']))[0]
  const before = await running()
  try {
    if (command === undefined) await node.restartUnit(unitOf(site.inventory, name, 'kubelet'), restartCall)
    else await runRestartCommand(node, command)
  } catch (error) {
    if (!(error instanceof KcertError) || error.code !== 'KCERT_NODE_UNREACHABLE') throw error
    const after = await running()
    const isSame = after?.pid === before?.pid && after?.startTicks === before?.startTicks
    if (after === undefined || isSame) throw error
  }
}

export const restartCall: NodeCall = { timeoutMs: 120_000 }

/** Runs the operator's own command for a restart. Throws KCERT_NODE_COMMAND_FAILED for an exit status other than 0. */
export async function runRestartCommand(node: NodeAccess, command: readonly string[]): Promise<void> {
  const { status, stderr } = await node.run(command, restartCall)
  if (status === 0) return
  throw new KcertError('KCERT_NODE_COMMAND_FAILED', `${command.join(' ')} failed on node "${node.name}"`, {
    why: `${stderr === '' ? `exit status ${status}` : stderr}; correct restart of the node in kcert.yaml`,
  })
}

const pollMs = 500
const kubeletDeadlineMs = 90_000

/** A kubelet that cannot use its certificate exits within two seconds, and systemd starts it again ten seconds later. */
const livesMs = 15_000

/**
 * Returns when a restarted kubelet is healthy, or has run for 15 s: while no API server responds, it reports itself as unhealthy
 * although it works. Throws KCERT_ROTATION_CHECK_FAILED.
 */
export async function awaitKubelet(site: Site, name: string): Promise<void> {
  const begun = site.clock().getTime()
  let observed: { readonly pid: number; readonly ticks: number; readonly atMs: number } | undefined
  for (;;) {
    const now = site.clock().getTime()
    const [running] = await nodeNamed(site, name).processes(['kubelet'])
    if (running === undefined) observed = undefined
    else if (observed?.pid !== running.pid || observed.ticks !== running.startTicks)
      observed = { pid: running.pid, ticks: running.startTicks, atMs: now }
    if (observed !== undefined && now - observed.atMs >= livesMs) return
    if (running !== undefined && (await healthStatus(site, name, running)) === 200) return
    if (now - begun > kubeletDeadlineMs) {
      throw new KcertError('KCERT_ROTATION_CHECK_FAILED', `the kubelet of ${name} does not keep running`, {
        why: `${running === undefined ? 'it has no process' : 'it exits repeatedly'}. Correct the cause that its log on ${name} shows, and run the same command again`,
        next: commandLine`journalctl -u kubelet -n 50; kcert kubelet doctor`,
      })
    }
    await sleep(pollMs)
  }
}
