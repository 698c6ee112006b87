import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Binaries } from './binaries.ts'
import { endCgroup, enterCgroup, removeCgroup, thaw } from './cgroups.ts'
import {
  type CommandOptions,
  type CommandResult,
  endProcess,
  identityOf,
  isRunning,
  type ProcessIdentity,
  run,
  runOnTerminal,
  startDetached,
  until,
} from './command.ts'
import { LabError } from './lab-error.ts'
import { makeNamespace, namespaceOf, removeNamespace } from './network.ts'
import { writeNodeFiles } from './node-files.ts'
import { isNode, type Machine, type Minor } from './spec.ts'
import { folders, paths } from './state.ts'

const processFile = (name: string): string => join(paths.node(name), 'process.json')

/** The environment of a command on a node, with only the terminal of the host's environment. */
const nodeEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  LANG: 'C.UTF-8',
  TERM: process.env.TERM ?? 'dumb',
}

/** Creates a new node's files, as on a Debian host with containerd, sshd and kubeadm's packages. */
export async function createNode(node: Machine, all: readonly Machine[], minor: Minor): Promise<void> {
  const folder = paths.node(node.name)
  rmSync(folder, { recursive: true, force: true })
  for (const name of ['etc', 'var', 'root']) mkdirSync(join(folder, name), { recursive: true })
  await writeNodeFiles(node, all, minor)
}

/**
 * Boots a node from its files: network, cgroups, namespaces, then process 1 and its units. Images come from the store through
 * hard links; a machine of external etcd runs no containers and gets none. Waits until containerd, or sshd there, is active.
 */
export async function startNode(node: Machine, binaries: Binaries, imageStore: string): Promise<void> {
  const folder = paths.node(node.name)
  await makeNamespace(node.name, node.address, node.podSubnet)
  if (isNode(node)) await linkImages(imageStore, join(folder, 'var/lib/containerd'))
  const boot = ['/bin/sh', join(folders.source, 'node-boot.sh'), folder, binaries.folder, node.name]
  const unshare = '--mount --uts --pid --ipc --fork --kill-child --mount-proc --propagation private'.split(
    ' ',
  )
  const namespaces = ['nsenter', `--net=/run/netns/${namespaceOf(node.name)}`, 'unshare', ...unshare]
  const clean = ['env', '-i', `PATH=${nodeEnvironment.PATH}`]
  const argv = [...clean, ...enterCgroup(node.name), ...namespaces, ...boot]
  const launcher = await startDetached(argv, join(folder, 'console.log'))
  writeFileSync(processFile(node.name), JSON.stringify(launcher))
  await until(
    `${node.name} has booted`,
    120_000,
    async () => {
      if (!isRunning(launcher)) throw new LabError('its process 1 ended', { why: consoleOf(node.name) })
      const unit = isNode(node) ? 'containerd' : 'ssh'
      return (await onNode(node.name, ['systemctl', 'is-active', '-q', unit], { mayFail: true })).code === 0
    },
    100,
    { next: `read ${join(folder, 'console.log')} and var/log/*.log beside it` },
  )
}

/** Stops a node: its process 1 with every process of its namespaces, then its network and cgroups. Files stay. */
export async function stopNode(name: string): Promise<void> {
  thaw()
  const launcher = readLauncher(name)
  if (launcher !== undefined) {
    const init = initOf(launcher)
    if (init !== undefined) await endProcess(init)
    await endProcess(launcher)
  }
  endCgroup(name)
  await removeNamespace(name)
  await removeCgroup(name)
  rmSync(processFile(name), { force: true })
}

/** Returns whether the node's process 1 runs. */
export function isUp(name: string): boolean {
  const launcher = readLauncher(name)
  return launcher !== undefined && isRunning(launcher) && initOf(launcher) !== undefined
}

/** Runs a command on a node, in all of its namespaces. */
export async function onNode(
  name: string,
  argv: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return run([...enterNode(name), ...argv], { ...options, env: { ...nodeEnvironment, ...options.env } })
}

/** Runs a command on a node with this terminal. Returns its exit code. */
export async function onNodeWithTerminal(name: string, argv: readonly string[]): Promise<number> {
  return runOnTerminal([...enterNode(name), ...argv], nodeEnvironment)
}

/** Returns the argument vector that runs the command after it on a node. kcert's `command` transport uses it unchanged. */
export function enterNode(name: string): string[] {
  const launcher = readLauncher(name)
  const init = launcher === undefined ? undefined : initOf(launcher)
  if (init === undefined) throw new LabError(`node ${name} is not up`, { next: 'npm run lab -- status' })
  return ['nsenter', '-t', String(init.pid), '-m', '-u', '-i', '-n', '-p', '--']
}

/** Returns the path of a node's file on the host. */
export function hostPath(name: string, file: string): string {
  return join(paths.node(name), file.replace(/^\//, ''))
}

function readLauncher(name: string): ProcessIdentity | undefined {
  const file = processFile(name)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ProcessIdentity) : undefined
}

/** Returns process 1 of the node as seen from the host: the only child of the launcher. */
function initOf(launcher: ProcessIdentity): ProcessIdentity | undefined {
  if (!isRunning(launcher)) return undefined
  const children = readFileSync(`/proc/${launcher.pid}/task/${launcher.pid}/children`, 'utf8').trim()
  return children === '' ? undefined : identityOf(Number(children.split(' ')[0]))
}

function consoleOf(name: string): string {
  const file = join(paths.node(name), 'console.log')
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(-5).join('\n') : ''
}

/**
 * Gives a node its containerd root. Content and unpacked layers are never modified, so they are hard links; the databases are
 * copied. On another file system everything is copied.
 */
async function linkImages(store: string, target: string): Promise<void> {
  rmSync(target, { recursive: true, force: true })
  const linked = await run(['cp', '-al', store, target], { mayFail: true })
  if (linked.code !== 0) {
    rmSync(target, { recursive: true, force: true })
    await run(['cp', '-a', '--reflink=auto', store, target])
    return
  }
  const databases = (await run(['find', target, '-name', '*.db'])).stdout.trim().split('\n')
  for (const file of databases) {
    await run(['cp', '-p', '--remove-destination', join(store, file.slice(target.length)), file])
  }
}
