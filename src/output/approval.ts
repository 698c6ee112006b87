import type { Decided, DecisionReport } from '../csr/approval/decision-report.ts'
import { altNameList } from './names.ts'
import type { Tone } from './paint.ts'
import { adviceLines, counted, indentedLines, joinSections } from './sections.ts'
import { countsText, type Said, saidColumn, table } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'
import { padded, wrapped } from './width.ts'

// What `kcert csr approve` and `kcert csr deny` did or would do: a line for each request, the rules of those that need a look,
// and the count.

const outcomes: Readonly<Record<Decided['outcome'], Said>> = {
  approved: ['approved', 'ok'],
  denied: ['denied', 'warning'],
  'would-approve': ['would approve', 'ok'],
  'would-deny': ['would deny', 'warning'],
  already: ['already done', 'ok'],
  'left-alone': ['skipped', 'warning'],
  refused: ['REFUSED', 'critical'],
  changed: ['CHANGED', 'critical'],
  gone: ['deleted', 'warning'],
  'not-found': ['not found', 'warning'],
  failed: ['FAILED', 'critical'],
}

/** Rules of more requests than these are in the JSON. */
const mostDetailed = 40

/** Returns the answer of a run. */
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

/** Returns what an operator is asked to agree to. */
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
    { title: 'NAME', cell: ({ name }) => name, shrinkTo: 12, cut: 'middle' },
    saidColumn('OUTCOME', view.paint, ({ outcome }) => outcomes[outcome]),
    { title: 'SIGNER', cell: ({ signerName = '' }) => signerName, shrinkTo: 14, cut: 'middle', dropRank: 2 },
    { title: 'SUBJECT', cell: ({ request }) => request?.subject.text ?? '', shrinkTo: 16 },
    {
      title: 'SANS',
      cell: ({ request }) => (request ? altNameList(request.subjectAltNames).join(',') : ''),
      shrinkTo: 12,
      dropRank: 1,
    },
    { title: 'REQUESTER', cell: ({ username = '' }) => username, shrinkTo: 12, cut: 'middle' },
  ])
}

function needsObservation({ outcome, duties }: Decided): boolean {
  if (outcome === 'approved') return duties.some((duty) => duty.outcome !== 'met')
  return !['denied', 'already', 'gone', 'not-found'].includes(outcome)
}

function detailLines(decided: Decided, view: View): string[] {
  const { paint, width } = view
  const { name, outcome, reason, duties, rules, error, groups, usages } = decided
  const marked = rules.filter((rule) => rule.outcome !== 'met')
  const widest = Math.max(...duties.map((duty) => duty.name.length), ...marked.map(({ id }) => id.length))
  const entry = (label: string, mark: string, text: string, next?: string): string[] => {
    const indent = ' '.repeat(widest + 13)
    const [first = '', ...rest] = wrapped(printable(text), width - indent.length)
    const tone: Tone = mark === 'met' ? 'ok' : mark === 'unknown' ? 'warning' : 'critical'
    return [
      `  ${padded(label, widest)}  ${paint.status[tone](padded(mark, 7))}  ${first}`,
      ...rest.map((line) => indent + line),
      ...adviceLines({ next }, indent),
    ]
  }
  const [word, tone] = outcomes[outcome]
  const requester = groups.length > 0 ? `; groups of the requester: ${groups.join(', ')}` : ''
  return [
    `${paint.heading(printable(name))}: ${paint.status[tone](word)}: ${printable(reason)}`,
    ...(usages.length > 0 ? indentedLines(`usages: ${usages.join(', ')}${requester}`, '  ', view) : []),
    ...(rules.length > 0 ? duties.flatMap((duty) => entry(duty.name, duty.outcome, duty.text)) : []),
    ...marked.flatMap(({ id, outcome: found, detail, next }) => entry(id, found, detail, next)),
    ...(error?.why === undefined ? [] : indentedLines(`why: ${error.why}`, '  ', view)),
    ...adviceLines({ next: error?.next }),
  ]
}

function countText({ counts, requests, dryRun }: DecisionReport): string {
  const each = countsText(counts, outcomes).toLowerCase()
  return `${counted(requests.length, 'request')}${each}${dryRun ? ' (dry run: nothing was written)' : ''}`
}
