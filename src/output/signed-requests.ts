import type { SignedRequest, SignedRequestsReport } from '../ca/cluster-report.ts'
import { issuedColumns } from './issued-columns.ts'
import { joinSections } from './sections.ts'
import { tableLines } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'

const outcomeText: Readonly<Record<SignedRequest['outcome'], string>> = {
  signed: 'signed',
  'would-sign': 'would sign',
  'marked-failed': 'marked Failed',
  already: 'done before',
  'left-alone': 'left alone',
  'breaks-rules': 'BREAKS RULES',
  refused: 'REFUSED',
  changed: 'CHANGED',
  gone: 'gone',
  'not-found': 'not found',
  failed: 'FAILED',
}

/** Returns what a signer did: a line for each request, and for those without a certificate why. */
export function renderSignedRequests(
  { ca, requests, files, dryRun }: SignedRequestsReport,
  view: View,
): string {
  const { paint, width } = view
  const unsigned = requests.filter(({ outcome }) => outcome !== 'signed' && outcome !== 'would-sign')
  return joinSections([
    requests.length === 0
      ? ['no approved request is waiting']
      : tableLines<SignedRequest>(
          [
            { title: 'NAME', cell: ({ name }) => name },
            {
              title: 'OUTCOME',
              cell: ({ outcome }) => outcomeText[outcome],
              paint: ({ outcome }, cell) => strokeOf(outcome, view)(cell),
            },
            { title: 'SIGNER', cell: ({ signerName = '' }) => signerName, dropRank: 2 },
            { title: 'SUBJECT', cell: ({ certificate }) => certificate?.subject ?? '', shrinkTo: 16 },
            ...issuedColumns,
          ],
          requests,
          width,
          paint,
        ),
    unsigned.flatMap(({ name, reason, next, error }) => [
      `${printable(name)}: ${printable(reason)}`,
      ...(error?.why === undefined ? [] : [`  why: ${printable(error.why)}`]),
      ...[next ?? error?.next]
        .filter((text) => text !== undefined)
        .map((text) => `  next: ${printable(text)}`),
    ]),
    [
      `signer ${printable(ca.subject)}${dryRun ? ' (dry run: nothing was signed)' : ''}`,
      ...(files.ledger === undefined ? [] : [`ledger ${printable(files.ledger)}`]),
      ...(files.certificates === undefined ? [] : [`certificates ${printable(files.certificates)}`]),
    ],
  ])
}

function strokeOf(outcome: SignedRequest['outcome'], { paint }: View): (text: string) => string {
  if (outcome === 'signed' || outcome === 'would-sign' || outcome === 'already') return paint.status.ok
  return ['left-alone', 'gone', 'not-found'].includes(outcome)
    ? paint.status.warning
    : paint.severity.critical
}
