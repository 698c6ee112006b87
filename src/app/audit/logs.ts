import { readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { LogReading } from '../../audit/evaluation.ts'
import { type AuditEvent, readEvent } from '../../audit/event.ts'
import type { Context } from '../../cli/context.ts'
import { descriptorOf, descriptorStream } from '../../cli/input.ts'
import { systemCode } from '../../errors/caught.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError, messageOf } from '../../errors/kcert-error.ts'
import { kindOf as fileKindOf } from '../../system/files.ts'
import { isFolder } from '../../system/folders.ts'
import { longestLineBytes, readLines } from '../../system/line-stream.ts'
import { type OpenFile, openFile } from '../../system/pipes.ts'

// Reads audit logs: files, folders of rotated files, standard input and pipes.

/** A file whose first lines contain no event is not an audit log. */
const linesBeforeFirstEvent = 1000
/** Files that appear in a folder while it is read are read, too: the API server rotates its log. */
export const mostPasses = 10

/** Receives each event. */
export type VisitEvent = (event: AuditEvent) => void

/**
 * Passes each event to `visit`, and returns how each log was read. A file that is named twice is read once. Throws
 * KCERT_FILE_NOT_FOUND and KCERT_FILE_UNREADABLE for a target that cannot be opened.
 */
export async function readAuditLogs(
  targets: readonly string[],
  context: Context,
  visit: VisitEvent,
): Promise<LogReading[]> {
  const readings: LogReading[] = []
  const seen = new Set<string>()
  for (const target of targets) {
    const descriptor = descriptorOf(target)
    if (descriptor !== undefined)
      readings.push(await readLog(target, descriptorStream(descriptor, context), visit))
    else if (isFolder(target)) readings.push(...(await readLogFolder(target, seen, visit)))
    else readings.push(...(await readLogFile(target, seen, visit)))
  }
  return readings
}

async function readLogFolder(folder: string, seen: Set<string>, visit: VisitEvent): Promise<LogReading[]> {
  const readings: LogReading[] = []
  for (let pass = 0; pass < mostPasses; pass++) {
    const before = seen.size
    for (const path of filesIn(folder)) {
      if (seen.has(path)) continue
      try {
        readings.push(...(await readLogFile(path, seen, visit)).map(asPartOfFolder))
      } catch (error) {
        // It was deleted or renamed meanwhile. The next pass finds it under its new name.
        if (!(error instanceof KcertError) || error.code === 'KCERT_FILE_NOT_FOUND') continue
        seen.add(path)
        readings.push({ source: path, events: 0, problems: [error.why ?? error.message], notes: [] })
      }
    }
    if (seen.size === before) return readings
  }
  return readings
}

/** A folder may contain other logs. */
function asPartOfFolder(reading: LogReading): LogReading {
  const { source, problems, notes } = reading
  const isOther = problems[0] === notAnAuditLog && !basename(source).includes('audit')
  return isOther ? { ...reading, problems: [], notes: [...notes, notAnAuditLog] } : reading
}

const notAnAuditLog = 'skipped, because its first lines are not events of audit.k8s.io'
const notOneEventPerLine =
  'skipped, because its lines are not events: an audit log has one event of audit.k8s.io in each line'
/** As in `apiVersion` of events and lists of events. */
const auditGroup = 'audit.k8s.io/'

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() || entry.isSymbolicLink())
      .map(({ parentPath, name }) => join(parentPath, name))
      .sort()
  } catch (error) {
    throw unreadable(folder, error)
  }
}

/** Returns nothing for a file that was already read under another name. */
async function readLogFile(path: string, seen: Set<string>, visit: VisitEvent): Promise<LogReading[]> {
  const file = opened(path)
  try {
    const { dev, ino } = file.stats
    const identity = `${dev}:${ino}`
    if (seen.has(identity)) return []
    seen.add(identity)
    return [await readLog(path, file.bytes, visit)]
  } finally {
    file.close()
  }
}

function opened(path: string): OpenFile {
  try {
    // Checked before the file is opened: opening a FIFO or a device has effects.
    const stats = statSync(path)
    if (!stats.isFile())
      throw new KcertError('KCERT_FILE_UNREADABLE', `${path} is ${fileKindOf(stats)}, not a file`, {
        why: `it is ${fileKindOf(stats)}: name a file, a folder, or standard input`,
        next: commandLine`kcert audit - < ${path}`,
      })
    return openFile(path)
  } catch (error) {
    throw error instanceof KcertError ? error : unreadable(path, error)
  }
}

function unreadable(path: string, error: unknown): KcertError {
  const code = systemCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return new KcertError('KCERT_FILE_NOT_FOUND', `${path} does not exist`, {
      why: 'no file or folder has that name',
      next: commandLine`ls -l ${dirname(path)}`,
    })
  const isForbidden = code === 'EACCES' || code === 'EPERM'
  return new KcertError('KCERT_FILE_UNREADABLE', `${path} cannot be read`, {
    why: isForbidden ? 'this user may not read it' : messageOf(error),
    next: isForbidden ? commandLine`sudo kcert audit ${path}` : commandLine`ls -l ${path}`,
  })
}

/** Returns how a log was read. `source` is its name in the report. */
export async function readLog(
  source: string,
  bytes: AsyncIterable<Buffer>,
  visit: VisitEvent,
): Promise<LogReading> {
  const count = { events: 0, malformed: 0, other: 0, firstMalformed: 0 }
  let lastMs = Number.NEGATIVE_INFINITY
  let mentionsAudit = false
  const found = (event: AuditEvent): void => {
    count.events++
    lastMs = Math.max(lastMs, event.atMs)
    visit(event)
  }
  const add = (line: string, number: number): boolean => {
    if (line === '' || line === '\r') return true
    const event = readEvent(line)
    if (typeof event !== 'string') {
      found(event)
      return true
    }
    count[event]++
    mentionsAudit ||= line.includes(auditGroup)
    if (event === 'malformed' && count.malformed === 1) count.firstMalformed = number
    return count.events > 0 || count.malformed + count.other < linesBeforeFirstEvent
  }
  const { lines, long, rest, failure } = await readLines(bytes, add)
  // The last line has no line end. It is complete if it is JSON.
  const last = rest.trim() === '' ? undefined : readEvent(rest)
  if (typeof last === 'object') found(last)
  else if (last === 'other') count.other++
  if (last !== undefined) mentionsAudit ||= rest.includes(auditGroup)
  const isBroken = last === 'malformed' && failure === undefined
  const isOther = count.events === 0 && (count.malformed + count.other > 0 || last !== undefined)
  const problems = isOther
    ? [mentionsAudit ? notOneEventPerLine : notAnAuditLog]
    : [
        ...(count.malformed > 0
          ? [
              `${counted(count.malformed)} without a readable event, the first at line ${count.firstMalformed}`,
            ]
          : []),
        ...(count.other > 0
          ? [`${counted(count.other)} with something else than an event of audit.k8s.io`]
          : []),
      ]
  if (long > 0) problems.push(`${counted(long)} longer than ${longestLineBytes >> 20} MiB, skipped`)
  if (failure !== undefined) problems.push(`reading stopped after line ${lines}: ${failure}`)
  return {
    ...{ source: source === '-' ? 'standard input' : source, events: count.events, problems, notes: [] },
    ...(isBroken && count.events > 0 && { cutAfterMs: lastMs }),
  }
}

function counted(lines: number): string {
  return lines === 1 ? '1 line' : `${lines.toLocaleString('en')} lines`
}
