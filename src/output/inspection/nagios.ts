import type { InspectionReport, Severity } from '../../inspection/report.ts'
import { placeText } from '../places.ts'
import { printable } from '../terminal.ts'
import { shortened } from '../width.ts'
import { nextToExpire, plural, summaryLine } from './summary.ts'

/** The output of a monitoring plugin: one line, and the exit code that determines the state. */
export interface NagiosVerdict {
  readonly line: string
  readonly exit: 0 | 1 | 2 | 3
}

const exits = { OK: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3 } as const

// Old Nagios versions cut a plugin's output at 4 KiB, which must not cut the performance data after the text.
const longestProblem = 1000

/**
 * Returns the verdict by the rules for monitoring plugins: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN when no certificate was found.
 */
export function renderNagios(report: InspectionReport): NagiosVerdict {
  const { summary } = report
  const inspected =
    summary.certificates + summary.requests + summary.keys + (report.selection?.certificates ?? 0)
  const worst = worstProblem(report)
  const sound = inspected === 0 ? 'UNKNOWN' : 'OK'
  const verdict = worst === undefined ? sound : worst.severity === 'critical' ? 'CRITICAL' : 'WARNING'
  const said = worst ? `${problemText(report, worst)}; ${summaryLine(report)}` : summaryLine(report)
  return { line: `${verdict} - ${withoutBar(said)}|${performanceData(report)}\n`, exit: exits[verdict] }
}

/** Returns the verdict without a report, when the inspection failed. */
export function nagiosUnknown(what: string, why?: string): NagiosVerdict {
  const said = why === undefined ? what : `${what}: ${why}`
  return { line: `UNKNOWN - ${withoutBar(printable(said))}\n`, exit: 3 }
}

type Problem = InspectionReport['problems'][number]

function worstProblem({ problems }: InspectionReport): Problem | undefined {
  const of = (wanted: Severity) => problems.find(({ severity }) => severity === wanted)
  return of('critical') ?? of('warning')
}

function problemText({ problems }: InspectionReport, worst: Problem): string {
  const others = problems.filter(({ severity }) => severity !== 'info').length - 1
  const more = others === 0 ? '' : ` (and ${others} more ${plural(others, 'problem')})`
  return shortened(`${printable(placeText(worst))}: ${printable(worst.message)}`, longestProblem) + more
}

// The bar starts the performance data. A bar in a certificate's name would end the text.
function withoutBar(text: string): string {
  return text.replaceAll('|', '\\u007c')
}

function performanceData({ summary, certificates }: InspectionReport): string {
  const next = nextToExpire(certificates)
  const { warning, critical } = summary.problems
  const counts = {
    certificates: summary.certificates,
    expired: summary.expired,
    warnings: warning,
    criticals: critical,
  }
  const data = Object.entries(counts).map(([label, value]) => `${label}=${value};;;0`)
  return [...data, ...(next ? [`next_expiry=${Math.floor(next.secondsLeft)}s;;;0`] : [])].join(' ')
}
