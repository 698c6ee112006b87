import type { ForecastCertificate, ForecastFinding, ForecastReport } from '../kubelet/forecast-report.ts'
import type { Paint } from './paint.ts'
import { tableLines } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf, timeLeft } from './time.ts'
import type { View } from './view.ts'

interface Row {
  readonly node: string
  readonly certificate: ForecastCertificate
}

const barWidth = 32

/** Returns the certificates with when each is renewed, on one line of time, and what stands against it. */
export function renderForecast(report: ForecastReport, { width, paint }: View): string {
  const nowMs = Date.parse(report.generatedAt)
  const rows = report.nodes.flatMap(({ name, certificates }) =>
    certificates.map((certificate): Row => ({ node: name, certificate })),
  )
  const endMs = Math.max(nowMs + 1, ...rows.map(({ certificate }) => Date.parse(certificate.notAfter)))
  const columns = [
    { title: 'NODE', cell: ({ node }: Row) => node, shrinkTo: 8 },
    { title: 'CERTIFICATE', cell: ({ certificate }: Row) => certificate.usage },
    {
      title: 'RENEWED',
      cell: ({ certificate }: Row) => renewalText(certificate, nowMs),
      paint: ({ certificate }: Row, cell: string) => strokeOf(certificate, paint)(cell),
    },
    { title: 'EXPIRES', cell: ({ certificate }: Row) => minuteOf(certificate.notAfter), dropRank: 1 },
    {
      title: `NOW TO ${minuteOf(new Date(endMs).toISOString()).slice(0, 10)}`,
      cell: ({ certificate }: Row) => bar(certificate, nowMs, endMs),
      dropRank: 3,
    },
    {
      title: 'SEEN IN',
      cell: ({ certificate }: Row) => certificate.place ?? certificate.source,
      shrinkTo: 8,
      dropRank: 2,
    },
  ]
  const table =
    rows.length === 0 ? ['no certificates of kubelets were seen'] : tableLines(columns, rows, width, paint)
  const signing = report.controllerManagers.map(
    ({ node, place, clusterSigningDuration }) => `signed for ${clusterSigningDuration} (${node ?? place})`,
  )
  return [
    ...table,
    ...(rows.length === 0 ? [] : ['', '= before it is renewed, # renewed here, - the rest of its life']),
    ...(signing.length === 0 ? [] : ['', ...new Set(signing)].map(printable)),
    ...(report.findings.length === 0 ? [] : ['', ...findingLines(report.findings, paint)]),
  ]
    .map((line) => `${line}\n`)
    .join('')
}

function renewalText({ state, renewal, isSelfSigned }: ForecastCertificate, nowMs: number): string {
  if (state === 'expired') return 'expired'
  if (state === 'never' || renewal === undefined) return isSelfSigned ? 'never: self-signed' : 'never'
  const { earliest, latest, isEstimate } = renewal
  if (state === 'overdue') return `overdue since ${minuteOf(latest)}`
  const from = state === 'due' ? 'now' : minuteOf(earliest)
  const inText = state === 'due' ? '' : ` (in ${timeLeft((Date.parse(earliest) - nowMs) / 1000)})`
  return `${isEstimate ? '~ ' : ''}${from} to ${minuteOf(latest)}${inText}`
}

function strokeOf({ state }: ForecastCertificate, { status, severity }: Paint): (text: string) => string {
  if (state === 'expired' || state === 'overdue') return severity.critical
  return state === 'waiting' ? status.ok : status.warning
}

/** The time from now to the last end, in columns. */
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

/** What is the same on many nodes is said once. */
function findingLines(findings: readonly ForecastFinding[], paint: Paint): string[] {
  const groups = new Map<string, { readonly finding: ForecastFinding; readonly nodes: string[] }>()
  for (const finding of findings) {
    const key = `${finding.id} ${finding.detail}`
    const group = groups.get(key) ?? { finding, nodes: [] }
    if (finding.node !== undefined) group.nodes.push(finding.node)
    groups.set(key, group)
  }
  return [...groups.values()]
    .sort((one, other) => Number(other.finding.isProblem) - Number(one.finding.isProblem))
    .flatMap(({ finding: { id, detail, next, isProblem }, nodes }) => {
      const [first, ...more] = nodes
      const where =
        first === undefined ? '' : ` ${first}${more.length > 0 ? ` and ${more.length} more` : ''}:`
      const stroke = isProblem ? paint.severity.critical : paint.status.warning
      return [
        `${stroke(isProblem ? 'problem' : 'note')} ${id}${first === undefined ? ':' : ''}${printable(`${where} ${detail}`)}`,
        ...(next === undefined ? [] : [`  next: ${printable(next)}`]),
      ]
    })
}
