import { shortList } from '../errors/short-list.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import type { UsageTable } from './usage.ts'

// What the logs do not cover: times, and API servers. Each API server writes its own log, and an event does not say which one.

/** The API servers of a cluster, and those whose logs were read. */
export interface ApiServers {
  /** How many the cluster has, or why that is unknown. Undefined if the cluster was not read. */
  readonly inCluster?: number | string | undefined
  /** Nodes whose logs were read. Absent for logs on this machine. */
  readonly read?: readonly string[]
  /** Control planes of the inventory whose logs were not wanted. */
  readonly skipped?: readonly string[]
}

interface Period {
  readonly sinceMs: number | undefined
  readonly nowMs: number
  /** True if the report draws a conclusion. */
  readonly concludes: boolean
}

/** Events may be minutes apart in a cluster where little happens. A longer time without events is missing from the logs. */
export const coverageMs = 600_000

/** Returns the times that the logs do not cover. Without a start, the logs of each node must cover the time of all logs. */
export function timeGaps(table: UsageTable, period: Period, { read = [''] }: ApiServers): string[] {
  const { sinceMs, nowMs, concludes } = period
  if (table.counted === 0)
    return [`the logs contain no event${sinceMs === undefined ? '' : ` since ${timeText(sinceMs)}`}`]
  if (sinceMs === undefined && !(concludes && read.length > 1)) return []
  const fromMs = sinceMs ?? table.firstMs
  const toMs = sinceMs === undefined ? Math.min(table.lastMs, nowMs) : nowMs
  return read.flatMap((server) => {
    const holes = table.gaps(fromMs, toMs, coverageMs, server)
    if (holes.length === 0) return []
    const times = holes.map((hole) => `from ${timeText(hole.fromMs)} to ${timeText(hole.toMs)}`)
    const logs = server === '' ? 'the logs' : `the logs of ${server}`
    return [
      `${logs} contain no event ${shortList(times)}: give the logs of this time, or use a later --since`,
    ]
  })
}

/** Returns whether logs of API servers are missing: `gaps`, or `notes` if none is. */
export function serverCoverage(
  { inCluster, read, skipped = [] }: ApiServers,
  logs: readonly { readonly source: string; readonly events: number }[],
): { readonly gaps: readonly string[]; readonly notes: readonly string[] } {
  const left =
    skipped.length === 0 ? [] : [`no logs of ${shortList(skipped)} were read: --node leaves them out`]
  if (inCluster === undefined) return { gaps: left, notes: [] }
  const names = new Set(logs.filter(({ events }) => events > 0).map(({ source }) => nameOf(source)))
  const count = read?.length ?? names.size
  const ofLogs =
    read === undefined
      ? `different logs that were read: ${count}; they do not name the API server that wrote them`
      : `nodes whose logs were read: ${count}${count === 0 ? '' : ` (${shortList(read)})`}`
  const text = `API servers of the cluster: ${inCluster}; ${ofLogs}`
  const isComplete = typeof inCluster === 'number' && count >= inCluster
  return isComplete ? { gaps: left, notes: [text] } : { gaps: [...left, text], notes: [] }
}

/** Returns the name of a log without what rotation adds: by the API server (lumberjack.v2, backupName), or by logrotate. */
function nameOf(source: string): string {
  return source
    .replace(/\.gz$/, '')
    .replace(/-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}(?=(?:\.[^./]*)?$)/, '')
    .replace(/\.\d+$/, '')
}

/** Times outside of the years 0 to 9999 do not fit into RFC 3339. */
export function timeText(ms: number): string {
  return rfc3339(new Date(Math.max(-62_167_219_200_000, Math.min(ms, 253_402_300_799_000))))
}
