import type { Decided, DecisionReport } from '../csr/approval/decision-report.ts'
import type { Advice } from '../errors/kcert-error.ts'
import { altNameList } from './names.ts'
import type { Tone } from './paint.ts'
import { adviceLines, counted, indentedLines, joinSections } from './sections.ts'
import { countsText, type StatusText, statusColumn, table } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'
import { padded, wrapped } from './width.ts'

// What `kcert csr approve` and `kcert csr deny` did or would do: a line for each request, the rules of requests that need review,
// and the count.

const outcomes: Readonly<Record<Decided['outcome'], StatusText>> = {
  approved: ['approved', 'ok'],
  denied: ['denied', 'warning'],
  'would-approve': ['would approve', 'ok'],
  'would-deny': ['would deny', 'warning'],
  'already-decided': ['already done', 'ok'],
  skipped: ['skipped', 'warning'],
  refused: ['REFUSED', 'critical'],
  changed: ['CHANGED', 'critical'],
  deleted: ['deleted', 'warning'],
  'not-found': ['not found', 'warning'],
  failed: ['FAILED', 'critical'],
}

/** The rules of further requests are in the JSON only. */
const mostDetailed = 40

/** Returns the decisions of a run as text. */
export function renderDecisions(report: DecisionReport, view: View): string {
  const { requests, dryRun } = report
  const detailed = requests.filter((decided) => dryRun || needsObservation(decided))
  const more = detailed.length - mostDetailed
  return joinSections([
    requestTable(requests, view),
    ...detailed.slice(0, mostDetailed).map((decided) => detailLines(decided, view)),
    more > 0 ? [`… and ${more} more (see -o json)`] : [],
    [countText(report)],
  ])
}

/** Returns a line for each request of a run whose table the operator has confirmed, and why some were not approved or denied. */
export function renderActs({ requests }: DecisionReport, { paint }: View): string {
  return joinSections([
    requests.flatMap(({ name, outcome, reason, error }) => {
      const [word, tone] = outcomes[outcome]
      const isDone = outcome === 'approved' || outcome === 'denied' || outcome === 'already-decided'
      const line = `${printable(`certificatesigningrequest.certificates.k8s.io/${name}`)} ${paint.status[tone](word)}`
      return [isDone ? line : `${line}: ${printable(reason)}`, ...adviceLines(error ?? {})]
    }),
  ])
}

/** Returns the table that an operator confirms. */
export function renderProposal(report: DecisionReport, view: View): string {
  const proposed = report.requests.filter(({ outcome }) => outcome.startsWith('would-'))
  const doubtful = proposed.filter(({ duties }) => duties.some(({ outcome }) => outcome !== 'met'))
  return joinSections([
    requestTable(report.requests, view),
    ...doubtful.slice(0, mostDetailed).map((decided) => detailLines(decided, view)),
  ])
}

function requestTable(requests: readonly Decided[], view: View): string[] {
  if (requests.length === 0) return ['no pending requests']
  return table(view, requests, [
    // Values that an operator compares and copies are never shortened.
    { title: 'NAME', cell: ({ name }) => name },
    statusColumn('OUTCOME', view.paint, ({ outcome }) => outcomes[outcome]),
    { title: 'SIGNER', cell: ({ signerName = '' }) => signerName, dropRank: 2 },
    { title: 'SUBJECT', cell: ({ request }) => request?.subject.text ?? '', dropRank: 1 },
    { title: 'REQUESTER', cell: ({ username = '' }) => username },
    {
      title: 'SANS',
      cell: ({ request }) => (request ? altNameList(request.subjectAltNames).join(',') : ''),
    },
  ])
}

function needsObservation({ outcome, duties }: Decided): boolean {
  if (outcome === 'approved') return duties.some((duty) => duty.outcome !== 'met')
  return !['denied', 'already-decided', 'deleted', 'not-found'].includes(outcome)
}

function detailLines(decided: Decided, view: View): string[] {
  const { paint, width } = view
  const { name, outcome, reason, duties, rules, error, groups, usages } = decided
  const isOpen = (duty: string): boolean =>
    duties.some((one) => one.name === duty && one.outcome === 'unknown')
  // For a duty that could not be verified, its open rules are one entry.
  const marked = rules.filter((rule) => rule.outcome !== 'met' && !isOpen(rule.duty ?? ''))
  const openOf = (duty: string) => rules.filter((rule) => rule.duty === duty && rule.outcome === 'unknown')
  const widest = Math.max(...duties.map((duty) => duty.name.length), ...marked.map(({ id }) => id.length))
  const entry = (label: string, mark: string, text: string, advice: Advice = {}): string[] => {
    const indent = ' '.repeat(widest + 13)
    const [first = '', ...rest] = wrapped(printable(text), width - indent.length)
    const tone: Tone = mark === 'met' ? 'ok' : mark === 'unknown' ? 'warning' : 'critical'
    return [
      `  ${padded(label, widest)}  ${paint.status[tone](padded(mark, 7))}  ${first}`,
      ...rest.map((line) => indent + line),
      ...adviceLines({ fix: advice.fix, next: advice.next }, indent),
    ]
  }
  const [word, tone] = outcomes[outcome]
  const requester = groups.length > 0 ? `; groups of the requester: ${groups.join(', ')}` : ''
  return [
    `${paint.heading(printable(name))}: ${paint.status[tone](word)}: ${printable(reason)}`,
    ...(usages.length > 0 ? indentedLines(`usages: ${usages.join(', ')}${requester}`, '  ', view) : []),
    ...(rules.length > 0
      ? duties.flatMap((duty) => {
          const open = duty.outcome === 'unknown' ? openOf(duty.name) : []
          const text = open.length === 0 ? duty.text : open.map(({ detail }) => detail).join('; ')
          return entry(duty.name, duty.outcome, text, outcome === 'approved' ? undefined : open[0])
        })
      : []),
    ...marked.flatMap((rule) => entry(rule.id, rule.outcome, rule.detail, rule)),
    ...(error?.why === undefined ? [] : indentedLines(`why: ${error.why}`, '  ', view)),
    ...adviceLines({ fix: error?.fix, next: error?.next }),
  ]
}

function countText({ counts, requests, dryRun }: DecisionReport): string {
  const each = countsText(counts, outcomes).toLowerCase()
  return `${counted(requests.length, 'request')}${each}${dryRun ? ' (dry run: nothing was written)' : ''}`
}
