import type { ForecastCertificate, ForecastFinding, ForecastReport } from '../kubelet/forecast-report.ts'
import type { Paint, Tone } from './paint.ts'
import { adviceLines, joinSections } from './sections.ts'
import { statusColumn, table } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf, timeLeft } from './time.ts'
import type { View } from './view.ts'

const barWidth = 32

/** Returns the renewal time of each certificate, on one timeline, and the obstacles to it. */
export function renderForecast(report: ForecastReport, view: View): string {
  const nowMs = Date.parse(report.generatedAt)
  const rows = report.nodes.flatMap(({ name, certificates }) =>
    certificates.map((certificate) => ({ ...certificate, node: name })),
  )
  const endMs = Math.max(nowMs + 1, ...rows.map(({ notAfter }) => Date.parse(notAfter)))
  const signing = report.controllerManagers.map(
    ({ node, location, clusterSigningDuration }) =>
      `signed for ${clusterSigningDuration} (${node ?? location})`,
  )
  const legend = '= before the renewal, # renewal in this period, - rest of the validity'
  const certificates = table(view, rows, [
    { title: 'NODE', cell: ({ node }) => node, shrinkTo: 8 },
    { title: 'CERTIFICATE', cell: ({ usage }) => usage },
    statusColumn('RENEWED', view.paint, (row) => [renewalText(row, nowMs), toneOf(row)]),
    { title: 'EXPIRES', cell: ({ notAfter }) => minuteOf(notAfter), dropRank: 1 },
    {
      title: `NOW TO ${minuteOf(new Date(endMs).toISOString()).slice(0, 10)}`,
      cell: (row) => bar(row, nowMs, endMs),
      dropRank: 3,
    },
    { title: 'SOURCE', cell: ({ location, source }) => location ?? source, shrinkTo: 8, dropRank: 2 },
  ])
  return joinSections([
    rows.length === 0 ? ['no kubelet certificates found'] : certificates,
    rows.length === 0 ? [] : [legend],
    [...new Set(signing)].map(printable),
    findingLines(report.findings, view.paint),
  ])
}

function renewalText({ state, renewal, isSelfSigned }: ForecastCertificate, nowMs: number): string {
  if (state === 'expired') return 'expired'
  if (state === 'not-renewed' || renewal === undefined) return isSelfSigned ? 'never: self-signed' : 'never'
  const { earliest, latest, isEstimate } = renewal
  if (state === 'overdue') return `overdue since ${minuteOf(latest)}`
  const from = state === 'due' ? 'now' : minuteOf(earliest)
  const inText = state === 'due' ? '' : ` (in ${timeLeft((Date.parse(earliest) - nowMs) / 1000)})`
  return `${isEstimate ? '~ ' : ''}${from} to ${minuteOf(latest)}${inText}`
}

function toneOf({ state }: ForecastCertificate): Tone {
  if (state === 'expired' || state === 'overdue') return 'critical'
  return state === 'not-due' ? 'ok' : 'warning'
}

/** The time from now to the last expiry, in columns. */
function bar({ notAfter, renewal, state }: ForecastCertificate, nowMs: number, endMs: number): string {
  if (state === 'expired') return '|'
  const column = (time: string): number =>
    Math.max(0, Math.min(barWidth, Math.round(((Date.parse(time) - nowMs) / (endMs - nowMs)) * barWidth)))
  const end = Math.max(1, column(notAfter))
  const from = renewal === undefined ? end : Math.min(column(renewal.earliest), end - 1)
  const to = renewal === undefined ? end : Math.max(from + 1, Math.min(column(renewal.latest), end))
  const before = renewal === undefined ? '-'.repeat(end) : '='.repeat(from)
  return `${before}${'#'.repeat(to - from)}${'-'.repeat(end - to)}|`
}

/** A finding that is the same on many nodes is reported once. */
function findingLines(findings: readonly ForecastFinding[], { status }: Paint): string[] {
  const groups = Map.groupBy(findings, ({ id, detail }) => `${id} ${detail}`)
  return [...groups.values()]
    .sort(([one], [other]) => Number(other?.isProblem) - Number(one?.isProblem))
    .flatMap((group) =>
      group.slice(0, 1).flatMap(({ id, detail, fix, next, isProblem }) => {
        const [first, ...more] = group.flatMap(({ node }) => node ?? [])
        const others = more.length > 0 ? ` and ${more.length} more` : ''
        const text = first === undefined ? `: ${detail}` : ` ${first}${others}: ${detail}`
        const label = isProblem ? status.critical('problem') : status.warning('note')
        return [`${label} ${id}${printable(text)}`, ...adviceLines({ fix, next })]
      }),
    )
}
