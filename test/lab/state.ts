import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { identityOf, isRunning, type ProcessIdentity, sleep } from './command.ts'
import { LabError } from './lab-error.ts'
import type { ClusterSpec, Minor } from './spec.ts'

const checkout = resolve(dirname(fileURLToPath(import.meta.url)), '../..')

/** Where the lab keeps things. KCERT_LAB_STATE and KCERT_LAB_CACHE move them. */
export const folders = {
  source: join(checkout, 'test/lab'),
  checkout,
  state: process.env.KCERT_LAB_STATE ?? join(checkout, '.lab'),
  cache: process.env.KCERT_LAB_CACHE ?? join(homedir(), '.cache/kcert-lab'),
}

/** The files of the state folder by what they are. */
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

/** What is written down about the cluster that exists, so that another process can go on with it or end it. */
export interface ClusterRecord {
  readonly spec: ClusterSpec
  readonly nodes: readonly string[]
  /** The minor of each node, which an upgrade changes. */
  readonly minors: Readonly<Record<string, Minor>>
  /** Keys of the binaries that its nodes were made of, by minor. */
  readonly binaries: Readonly<Partial<Record<Minor, string>>>
  /** starting: an `up`, `restore`, `join` or `remove` is at work, or was killed. */
  readonly phase: 'starting' | 'ready'
}

/** The record of the cluster, or undefined when there is none. */
export function readRecord(file = paths.record): ClusterRecord | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ClusterRecord) : undefined
}

export function writeRecord(record: ClusterRecord, file = paths.record): void {
  writeWhole(file, `${JSON.stringify(record, null, 2)}\n`)
}

/** Writes a file so that a reader sees the old or the new content, never a part. */
export function writeWhole(file: string, content: string | Buffer, mode = 0o644): void {
  mkdirSync(dirname(file), { recursive: true })
  const temporary = join(dirname(file), `.${file.slice(dirname(file).length + 1)}.new`)
  writeFileSync(temporary, content, { mode })
  renameSync(temporary, file)
}

/**
 * Runs `work` as the only process that changes this folder. A lock whose holder has died is taken over; one that is
 * held is waited for, up to `waitMs`. It guards one machine only.
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

/** Takes the lock, or returns who holds it: a holder of this process too, since suites may share one. */
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
