import type { Decided, DecisionReport } from '../csr/approval/decision-report.ts'
import { altNameList } from './names.ts'
import type { Paint } from './paint.ts'
import { joinSections } from './sections.ts'
import { tableLines } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'
import { padded, wrapped } from './width.ts'

// What `kcert csr approve` and `kcert csr deny` did or would do: a line for each request, the rules of those that need a look,
// and the count.

type Outcome = Decided['outcome']

const outcomeText: Readonly<Record<Outcome, string>> = {
  approved: 'approved',
  denied: 'denied',
  'would-approve': 'would approve',
  'would-deny': 'would deny',
  already: 'done before',
  'left-alone': 'left alone',
  refused: 'REFUSED',
  changed: 'CHANGED',
  gone: 'gone',
  'not-found': 'not found',
  failed: 'FAILED',
}

/** Rules of more requests than these are in the JSON. */
const mostDetailed = 40

/** Returns the answer of a run. */
export function renderDecisions(report: DecisionReport, view: View): string {
  const { requests, dryRun } = report
  const detailed = requests.filter((decided) => dryRun || needsLook(decided))
  return joinSections([
    requestTable(requests, view),
    ...detailed.slice(0, mostDetailed).map((decided) => detailLines(decided, view)),
    detailed.length > mostDetailed
      ? [`… and ${detailed.length - mostDetailed} more with their rules: -o json`]
      : [],
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

function requestTable(requests: readonly Decided[], { width, paint }: View): string[] {
  if (requests.length === 0) return ['no request is waiting']
  return tableLines<Decided>(
    [
      { title: 'NAME', cell: ({ name }) => name, shrinkTo: 12, cut: 'middle' },
      {
        title: 'OUTCOME',
        cell: ({ outcome }) => outcomeText[outcome],
        paint: ({ outcome }, cell) => strokeOf(outcome, paint)(cell),
      },
      {
        title: 'SIGNER',
        cell: ({ signerName = '' }) => signerName,
        shrinkTo: 14,
        cut: 'middle',
        dropRank: 2,
      },
      { title: 'SUBJECT', cell: ({ request }) => request?.subject.text ?? '', shrinkTo: 16 },
      {
        title: 'NAMES',
        cell: ({ request }) => (request ? altNameList(request.subjectAltNames).join(',') : ''),
        shrinkTo: 12,
        dropRank: 1,
      },
      { title: 'REQUESTER', cell: ({ username = '' }) => username, shrinkTo: 12, cut: 'middle' },
    ],
    requests,
    width,
    paint,
  )
}

function needsLook({ outcome, duties }: Decided): boolean {
  if (outcome === 'approved') return duties.some((duty) => duty.outcome !== 'met')
  return outcome !== 'denied' && outcome !== 'already' && outcome !== 'gone' && outcome !== 'not-found'
}

function detailLines(decided: Decided, view: View): string[] {
  const { paint, width } = view
  const { name, outcome, reason, duties, rules, error, groups, usages } = decided
  const marked = rules.filter((rule) => rule.outcome !== 'met')
  const widest = Math.max(...duties.map((duty) => duty.name.length), ...marked.map(({ id }) => id.length))
  const entry = (label: string, mark: string, text: string, next?: string): string[] => {
    const indent = ' '.repeat(widest + 13)
    const [first = '', ...rest] = wrapped(printable(text), width - indent.length)
    const stroke = dutyStroke(mark, paint)
    return [
      `  ${padded(label, widest)}  ${stroke(padded(mark, 7))}  ${first}`,
      ...rest.map((line) => indent + line),
      ...(next === undefined ? [] : [`${indent}next: ${printable(next)}`]),
    ]
  }
  return [
    `${paint.heading(printable(name))}: ${strokeOf(outcome, paint)(outcomeText[outcome])}: ${printable(reason)}`,
    ...(usages.length > 0
      ? entryText(
          `for ${usages.join(', ')}${groups.length > 0 ? `; the requester is in ${groups.join(', ')}` : ''}`,
          width,
        )
      : []),
    ...(rules.length > 0 ? duties.flatMap((duty) => entry(duty.name, duty.outcome, duty.text)) : []),
    ...marked.flatMap(({ id, outcome: found, detail, next }) => entry(id, found, detail, next)),
    ...(error?.why === undefined ? [] : entryText(`why: ${error.why}`, width)),
    ...(error?.next === undefined ? [] : [`  next: ${printable(error.next)}`]),
  ]
}

function entryText(text: string, width: number): string[] {
  return wrapped(printable(text), width - 2).map((line) => `  ${line}`)
}

function countText({ counts, requests, dryRun }: DecisionReport): string {
  const parts = Object.entries(counts).map(
    ([outcome, count]) => `${count.toLocaleString('en')} ${outcomeText[outcome as Outcome].toLowerCase()}`,
  )
  const total = `${requests.length.toLocaleString('en')} request${requests.length === 1 ? '' : 's'}`
  const rest = parts.length === 0 ? '' : `: ${parts.join(', ')}`
  return `${total}${rest}${dryRun ? ' (dry run: nothing was written)' : ''}`
}

function strokeOf(outcome: Outcome, { status, severity }: Paint): (text: string) => string {
  if (outcome === 'approved' || outcome === 'would-approve' || outcome === 'already') return status.ok
  if (outcome === 'refused' || outcome === 'changed' || outcome === 'failed') return severity.critical
  return status.warning
}

function dutyStroke(outcome: string, { status, severity }: Paint): (text: string) => string {
  if (outcome === 'met') return status.ok
  return outcome === 'unknown' ? status.warning : severity.critical
}
