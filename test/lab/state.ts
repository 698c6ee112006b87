import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { identityOf, isRunning, type ProcessIdentity, sleep } from './command.ts'
import { LabError } from './lab-error.ts'
import type { ClusterSpec, Minor } from './spec.ts'

const checkout = resolve(dirname(fileURLToPath(import.meta.url)), '../..')

/** The folders of the lab. KCERT_LAB_STATE and KCERT_LAB_CACHE override them. */
export const folders = {
  source: join(checkout, 'test/lab'),
  checkout,
  state: process.env.KCERT_LAB_STATE ?? join(checkout, '.lab'),
  cache: process.env.KCERT_LAB_CACHE ?? join(homedir(), '.cache/kcert-lab'),
}

/** The files of the state folder by purpose. */
export const paths = {
  record: join(folders.state, 'cluster.json'),
  lock: join(folders.state, 'lock'),
  kubeconfig: join(folders.state, 'admin.conf'),
  nodes: join(folders.state, 'nodes'),
  node: (name: string) => join(folders.state, 'nodes', name),
  loadBalancer: join(folders.state, 'load-balancer'),
  ssh: join(folders.state, 'ssh'),
  sshConfig: join(folders.state, 'ssh', 'config'),
  save: (name: string) => join(folders.state, 'saves', name),
  saves: join(folders.state, 'saves'),
}

/** The record of the existing cluster, so that another process can continue with it or remove it. */
export interface ClusterRecord {
  readonly spec: ClusterSpec
  readonly nodes: readonly string[]
  /** The minor version of each node, which an upgrade changes. */
  readonly minors: Readonly<Record<string, Minor>>
  /** Keys of the binaries of its nodes, by minor version. */
  readonly binaries: Readonly<Partial<Record<Minor, string>>>
  /** starting: an `up`, `restore`, `join` or `remove` is running or was killed. */
  readonly phase: 'starting' | 'ready'
}

/** Returns the record of the cluster; undefined when there is none. */
export function readRecord(file = paths.record): ClusterRecord | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ClusterRecord) : undefined
}

export function writeRecord(record: ClusterRecord, file = paths.record): void {
  writeWhole(file, `${JSON.stringify(record, null, 2)}\n`)
}

/** Writes a file atomically: a reader sees the old or the new content, never a part. */
export function writeWhole(file: string, content: string | Buffer, mode = 0o644): void {
  mkdirSync(dirname(file), { recursive: true })
  const temporary = join(dirname(file), `.${file.slice(dirname(file).length + 1)}.new`)
  writeFileSync(temporary, content, { mode })
  renameSync(temporary, file)
}

/**
 * Runs `work` while no other process changes this folder. Takes over the lock of a dead holder, and waits up to `waitMs` for a
 * held one. Works on one machine only.
 */
export async function withLock<T>(
  file: string,
  what: string,
  waitMs: number,
  work: () => Promise<T>,
): Promise<T> {
  mkdirSync(dirname(file), { recursive: true })
  const deadline = performance.now() + waitMs
  for (;;) {
    const holder = takeLock(file)
    if (holder === undefined) break
    if (performance.now() > deadline) {
      throw new LabError(`${what} is used by process ${holder.pid}`, {
        why: `${file} says so, and that process runs`,
        next: 'wait until it ends',
      })
    }
    await sleep(500)
  }
  try {
    return await work()
  } finally {
    rmSync(file, { force: true })
  }
}

/** Takes the lock, or returns its holder, which may be in this process, since suites may share one. */
function takeLock(file: string): ProcessIdentity | undefined {
  for (;;) {
    try {
      writeFileSync(file, JSON.stringify(identityOf(process.pid)), { flag: 'wx' })
      return undefined
    } catch {
      const holder = readHolder(file)
      if (holder !== undefined && isRunning(holder)) return holder
      rmSync(file, { force: true })
    }
  }
}

function readHolder(file: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ProcessIdentity
  } catch {
    return undefined
  }
}
