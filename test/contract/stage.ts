import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, openCluster } from '../../src/cluster/cluster.ts'
import { systemClock } from '../../src/system/clock.ts'

/** A user that a test acts as. */
export interface Actor {
  readonly username: string
  readonly groups?: readonly string[]
  readonly uid?: string
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** The permissions of a role, on the fake and on the real API server. */
export interface Grant {
  readonly username: string
  readonly verbs: readonly string[]
  readonly group: string
  readonly resources: readonly string[]
  readonly names?: readonly string[]
}

/** An API server that a contract suite runs on. */
export interface Stage {
  /** The administrator's kubeconfig, as JSON. */
  readonly kubeconfig: Readonly<Record<string, unknown>>
  /** The folder for files of the suite. */
  readonly folder: string
  readonly administrator: Cluster
  /** Grants permissions to a user. */
  grant(grant: Grant): Promise<void>
  close(): Promise<void>
}

/** Opens a cluster with a kubeconfig file, without the environment of this machine. */
export function openWith(file: string, requestTimeoutMs = 120_000): Promise<Cluster> {
  return openCluster({
    files: [file],
    filesMustExist: true,
    requestTimeoutMs,
    surroundings: { env: {}, stdinIsTerminal: false },
    clock: systemClock,
    random: randomBytes,
  })
}

/** Opens the cluster as a user that the administrator impersonates. */
export function openAs(stage: Stage, { username, groups = [], uid, extra }: Actor): Promise<Cluster> {
  const [named] = stage.kubeconfig.users as { name: string; user: object }[]
  const impersonation = {
    as: username,
    'as-groups': groups,
    ...(uid && { 'as-uid': uid }),
    ...(extra && { 'as-user-extra': extra }),
  }
  const users = [{ name: named!.name, user: { ...named!.user, ...impersonation } }]
  const file = join(stage.folder, `as-${randomBytes(4).toString('hex')}.kubeconfig`)
  writeFileSync(file, JSON.stringify({ ...stage.kubeconfig, users }), { mode: 0o600 })
  return openWith(file)
}

/** Returns all items of an iterable. */
export async function gather<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

let names = 0
const run = randomBytes(3).toString('hex')

/** Returns a unique name. */
export function newName(prefix: string): string {
  return `${prefix}-${run}-${++names}`
}
