import { posix } from 'node:path'
import type { ApiServers } from '../../audit/coverage.ts'
import type { LogReading } from '../../audit/evaluation.ts'
import { type AuditEvent, handshakeEvent } from '../../audit/event.ts'
import type { Context } from '../../cli/context.ts'
import { KcertError, wordsOf } from '../../errors/kcert-error.ts'
import { flagsOf } from '../../pki/component-flags.ts'
import type { NodeAccess, ProcessFacts } from '../../pki/node-access.ts'
import { isVerificationFailure } from '../../rotation/handshake-errors.ts'
import { loggedHandshakes, telling } from '../../rotation-io/watching-handshakes.ts'
import { nodeNamed, type Site } from '../../site/site.ts'
import { inventoryOrThisMachine, withNodes } from '../rotate-ca/node-inventory.ts'
import { mostPasses, readLog, type VisitEvent } from './logs.ts'

// Reads audit logs on nodes of an inventory, piece by piece.

const pieceMiB = 8
const pieceTimeoutMs = 120_000

interface NodeLogsJob {
  readonly inventory: string
  /** Names of nodes; empty means all control planes. */
  readonly nodes: readonly string[]
  /** Files and folders on each node; empty means the logs of its API server. */
  readonly targets: readonly string[]
  /** Then failed TLS handshakes since this time are read instead. */
  readonly handshakesSinceMs?: number | undefined
}

/** What was read on nodes. */
interface NodeLogs {
  readonly logs: LogReading[]
  /** The number of nodes that could not be reached. */
  readonly unreachable: number
  readonly apiServers: ApiServers
}

/** Passes each event of the logs to `visit`, with its node. Returns how each log was read. */
export async function readNodeLogs(
  { inventory: name, nodes, targets, handshakesSinceMs }: NodeLogsJob,
  context: Context,
  visit: (event: AuditEvent, node: string) => void,
): Promise<NodeLogs> {
  const inventory = await inventoryOrThisMachine(name, nodes, context)
  const controlPlanes = inventory.nodes.filter(({ role }) => role === 'control-plane')
  const wanted =
    nodes.length === 0 ? controlPlanes : inventory.nodes.filter((node) => nodes.includes(node.name))
  const skipped = controlPlanes.filter((node) => !wanted.includes(node)).map((node) => node.name)
  return withNodes(
    inventory,
    context,
    async (site) => {
      const logs: LogReading[] = []
      const read: string[] = []
      let unreachable = 0
      for (const node of wanted) {
        try {
          const visitThere = (event: AuditEvent): void => visit(event, node.name)
          const found =
            handshakesSinceMs === undefined
              ? await logsOnNode(nodeNamed(site, node.name), targets, visitThere)
              : [await handshakesOnNode(site, nodeNamed(site, node.name), handshakesSinceMs, visitThere)]
          logs.push(...found)
          if (found.some(({ events, problems }) => events > 0 || problems.length === 0)) read.push(node.name)
        } catch (error) {
          if (!(error instanceof KcertError)) throw error
          unreachable++
          logs.push(unread(node.name, wordsOf(error)))
        }
      }
      return { logs, unreachable, apiServers: { read, skipped } }
    },
    name,
  )
}

/**
 * Passes each failed handshake in which one side rejects a certificate to `visit`. Returns how the API server's log was read. Throws the
 * node's error if it cannot be reached.
 */
export async function handshakesOnNode(
  site: Pick<Site, 'clockAheadMs'>,
  node: NodeAccess,
  sinceMs: number,
  visit: VisitEvent,
): Promise<LogReading> {
  const source = `${node.name}: kube-apiserver`
  try {
    const { failures, isCut, process } = await loggedHandshakes(site, node, sinceMs)
    const rejected = failures.filter(({ reason }) => isVerificationFailure(reason))
    for (const { atMs, address, reason } of rejected) visit(handshakeEvent(atMs, address, reason))
    const { v: level = '0' } = flagsOf(process.argv)
    return {
      ...{ source, events: rejected.length, notes: [] },
      problems: [
        ...(isCut ? ['its log has more failed handshakes than kcert reads: earlier ones are missing'] : []),
        ...(Number(level) >= telling
          ? []
          : [
              `it logs failed handshakes only with --v=${telling} or more, and its flag is --v=${level.slice(0, 20)}; kcert rotate-ca verify sets the level while it watches`,
            ]),
      ],
    }
  } catch (error) {
    if (error instanceof KcertError) throw error
    return unread(source, wordsOf(error))
  }
}

/** Returns how each log on a node was read. Throws the node's error if it cannot be reached. */
export async function logsOnNode(
  node: NodeAccess,
  targets: readonly string[],
  visit: VisitEvent,
): Promise<LogReading[]> {
  const places = targets.length > 0 ? await namedPlaces(node, targets) : await apiServerPlaces(node)
  const logs: LogReading[] = []
  for (const place of places) {
    if ('problem' in place) logs.push(unread(node.name, place.problem))
    else logs.push(...(await readPlace(node, place, visit)))
  }
  return logs
}

/** Where a log and its rotated files are. */
type Place =
  | {
      /** Shell patterns. The first one is the log that is being written. */
      readonly patterns: readonly string[]
      /** Not shown: the folder through which kcert sees the files of a container. */
      readonly root: string
    }
  | { readonly problem: string }

async function namedPlaces(node: NodeAccess, targets: readonly string[]): Promise<Place[]> {
  const found = await node.statFiles(targets)
  return found.map((file): Place => {
    if (file.found === 'file') return { patterns: [file.path], root: '' }
    if (file.found === 'folder') return { patterns: [`${file.path}/*`], root: '' }
    return { problem: `${file.path} ${file.found === 'absent' ? 'does not exist' : 'cannot be read'}` }
  })
}

async function apiServerPlaces(node: NodeAccess): Promise<Place[]> {
  const processes = await node.processes(['kube-apiserver'])
  if (processes.length === 0)
    return [{ problem: 'no kube-apiserver is running: name the path of its audit log' }]
  return processes.map(placeOf)
}

/** A container may have the folder of the log at another path than the node, so kcert reads it as the API server sees it. */
function placeOf({ pid, argv }: ProcessFacts): Place {
  const path = flagsOf(argv)['audit-log-path']
  if (path === undefined) return { problem: 'kube-apiserver writes no audit log: it has no --audit-log-path' }
  if (!path.startsWith('/'))
    return {
      problem: `kube-apiserver writes its audit log to ${path === '-' ? 'standard output' : path}, where kcert cannot read it`,
    }
  const root = `/proc/${pid}/root`
  const { dir, name, ext } = posix.parse(posix.normalize(path))
  // The names of rotated files: gopkg.in/natefinch/lumberjack.v2, backupName and compressSuffix.
  const rotated = `${root}${posix.join(dir, `${name}-*${ext}`)}`
  return { patterns: [`${root}${posix.join(dir, name + ext)}`, rotated, `${rotated}.gz`], root }
}

async function readPlace(
  node: NodeAccess,
  { patterns, root }: Exclude<Place, { problem: string }>,
  visit: VisitEvent,
): Promise<LogReading[]> {
  const logs: LogReading[] = []
  const seen = new Set<string>()
  for (let pass = 0; pass < mostPasses; pass++) {
    const matched = await node.matchPaths(patterns)
    const fresh = matched.filter((path) => !seen.has(path))
    if (fresh.length === 0) break
    // The log was rotated while it was read: a part of it is now in a new file, and a part of the new log was not read.
    const again = pass === 0 ? [] : matched.filter((path) => path === patterns[0] && seen.has(path))
    const files = await node.statFiles([...fresh, ...again])
    for (const { path, found } of files) {
      seen.add(path)
      const source = `${node.name}:${path.slice(root.length)}`
      // An absent one was renamed: the next pass finds it.
      if (found === 'unreadable') logs.push(unread(source, 'it cannot be read'))
      else if (found === 'folder') logs.push(unread(source, 'it is a folder in the folder: name it, too'))
      if (found !== 'file') continue
      const log = await readLog(source, piecesOf(node, path), visit)
      const notes =
        pass === 0 ? log.notes : [...log.notes, 'rotated while it was read: some requests are counted twice']
      logs.push({ ...log, notes })
    }
  }
  return logs.length > 0
    ? logs
    : [unread(node.name, `no audit log at ${(patterns[0] ?? '').slice(root.length)}`)]
}

async function* piecesOf(node: NodeAccess, path: string): AsyncGenerator<Buffer> {
  for (let skip = 0; ; skip += pieceMiB) {
    const argv = ['dd', `if=${path}`, 'bs=1048576', `skip=${skip}`, `count=${pieceMiB}`]
    const { status, stdout, stderr } = await node.run(argv, { timeoutMs: pieceTimeoutMs })
    if (status !== 0) throw new Error(stderr.split('\n', 1)[0])
    if (stdout.length > 0) yield Buffer.from(stdout)
    if (stdout.length < pieceMiB << 20) return
  }
}

function unread(source: string, problem: string): LogReading {
  return { source, events: 0, problems: [problem], notes: [] }
}
