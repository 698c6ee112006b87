import type { SubmissionItem, SubmissionReport } from '../csr/submission-report.ts'
import { type Field, fieldLines } from './fields.ts'
import { altNameList } from './names.ts'
import { joinSections } from './sections.ts'
import { table } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'

const outcomeText: Readonly<Record<SubmissionItem['outcome'], string>> = {
  created: 'created',
  present: 'already exists',
  'dry-run': 'would be created',
  failed: 'NOT SENT',
}

/** Returns the state of submitted requests: fields and the next commands for one, a table for several. */
export function renderSubmissions({ submissions }: SubmissionReport, view: View): string {
  const [only, second] = submissions
  if (only === undefined) return ''
  if (second === undefined) return joinSections([fieldLines(view, fieldsOf(only)), nextLines(only, view)])
  const lines = table(view, submissions, [
    { title: 'NAME', cell: ({ name, source }) => name ?? source, shrinkTo: 12, cut: 'middle' },
    { title: 'OUTCOME', cell: ({ outcome }) => outcomeText[outcome] },
    { title: 'CONDITION', cell: ({ request }) => request?.condition ?? '' },
    { title: 'SUBJECT', cell: ({ request }) => request?.request?.subject.text ?? '', shrinkTo: 12 },
    { title: 'SIGNER', cell: ({ request }) => request?.signerName ?? '', shrinkTo: 12, cut: 'middle' },
  ])
  return joinSections([lines])
}

function fieldsOf({ name, outcome, request }: SubmissionItem): Field[] {
  const asked = request?.request
  return [
    ['request', name],
    ['outcome', outcomeText[outcome]],
    ['condition', request?.condition],
    ['subject', asked && (asked.subject.text || '(empty)')],
    ['SANs', asked && altNameList(asked.subjectAltNames).join(', ')],
    ['signer', request?.signerName],
    ['usages', request?.usages.join(', ')],
  ]
}

function nextLines({ next }: SubmissionItem, { paint }: View): string[] {
  if (next.length === 0) return []
  return [paint.heading('next'), ...next.map((command) => `  ${printable(command)}`)]
}
