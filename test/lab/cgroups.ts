import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sleep, until } from './command.ts'

const root = '/sys/fs/cgroup'
/** Two labs on one machine need two names, next to two network namespaces. */
const group = process.env.KCERT_LAB_CGROUP ?? 'kcert-lab'

/** cgroup v2 has one hierarchy, v1 one for each controller. */
const isUnified = (): boolean => existsSync(join(root, 'cgroup.controllers'))

function hierarchies(): string[] {
  if (isUnified()) return [root]
  return mounted().filter((folder) => !folder.endsWith('/unified'))
}

/** Returns every mounted hierarchy. runc also uses the `unified` one of cgroup v1, which controls nothing. */
function mounted(): string[] {
  if (isUnified()) return [root]
  return readdirSync(root)
    .map((name) => join(root, name))
    .filter((folder) => existsSync(join(folder, 'cgroup.procs')))
}

/** Returns the cgroupRoot of a node's kubelet. */
export function kubeletCgroup(node: string): string {
  return `/${group}/${node}`
}

/** Creates a node's cgroups. Returns an argument vector that runs the command after it in them. */
export function enterCgroup(node: string): string[] {
  const files = hierarchies().map((hierarchy) => {
    const system = join(hierarchy, group, node, 'system')
    for (const folder of [join(hierarchy, group), join(hierarchy, group, node), system]) {
      mkdirSync(folder, { recursive: true })
      copyCpuset(folder)
    }
    if (isUnified())
      for (const folder of [root, join(root, group), join(root, group, node)]) passControllers(folder)
    return join(system, 'cgroup.procs')
  })
  const enter = 'while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; shift; exec "$@"'
  return ['sh', '-c', enter, 'sh', ...files, '--']
}

/** A new cpuset of cgroup v1 is empty, and no process can enter it until it gets the CPUs and memory of its parent. */
function copyCpuset(folder: string): void {
  for (const name of ['cpuset.cpus', 'cpuset.mems']) {
    const file = join(folder, name)
    if (!isUnified() && existsSync(file) && readFileSync(file, 'utf8').trim() === '') {
      writeFileSync(file, readFileSync(join(folder, '..', name), 'utf8'))
    }
  }
}

function passControllers(folder: string): void {
  const controllers = readFileSync(join(folder, 'cgroup.controllers'), 'utf8').trim().split(' ')
  writeFileSync(join(folder, 'cgroup.subtree_control'), controllers.map((name) => `+${name}`).join(' '))
}

/**
 * Kills every process in a node's cgroups, which only the lab uses. This includes processes that a killed `up` had started but
 * not yet recorded.
 */
export function endCgroup(node: string): void {
  for (const pid of processesIn(join(hierarchies()[0]!, group, node))) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // it ended in the meantime
    }
  }
}

function processesIn(folder: string): number[] {
  if (!existsSync(folder)) return []
  const here = readFileSync(join(folder, 'cgroup.procs'), 'utf8')
    .trim()
    .split('\n')
    .filter(Boolean)
    .map(Number)
  const children = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return [...here, ...children.flatMap((entry) => processesIn(join(folder, entry.name)))]
}

/** Returns the names of nodes that have cgroups. */
export function cgroupsFound(): string[] {
  const folder = join(hierarchies()[0]!, group)
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
}

/** Removes a node's cgroups after its processes exit. Retries, since the kernel takes its time. */
export async function removeCgroup(node: string): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const left = mounted().filter((hierarchy) => !removeTree(join(hierarchy, group, node)))
    if (left.length === 0) return
    await sleep(100)
  }
}

/** Removes the cgroups common to all nodes when no node is left. */
export function removeCommonCgroup(): void {
  for (const hierarchy of mounted()) removeTree(join(hierarchy, group))
}

function removeTree(folder: string): boolean {
  if (!existsSync(folder)) return true
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(folder, entry.name))
  }
  try {
    rmdirSync(folder)
    return true
  } catch {
    return false
  }
}

/** Freezes every process of the lab while `work` runs, so that files are copied as of one moment. */
export async function whileFrozen<T>(work: () => Promise<T>): Promise<T> {
  const control = freezer()
  const state = isUnified() ? join(root, group, 'cgroup.events') : control
  writeFileSync(control, isUnified() ? '1' : 'FROZEN')
  try {
    await until(
      'every process of the lab is frozen',
      60_000,
      async () => /FROZEN|frozen 1/.test(readFileSync(state, 'utf8')),
      20,
    )
    return await work()
  } finally {
    thaw()
  }
}

/** Thaws frozen processes. A frozen process cannot be killed, so this runs before nodes are stopped. */
export function thaw(): void {
  if (existsSync(freezer())) writeFileSync(freezer(), isUnified() ? '0' : 'THAWED')
}

function freezer(): string {
  return isUnified() ? join(root, group, 'cgroup.freeze') : join(root, 'freezer', group, 'freezer.state')
}
