import type { SignedRequest, SignedRequestsReport } from '../ca/cluster-report.ts'
import { issuedColumns } from './issued-columns.ts'
import { adviceLines, joinSections } from './sections.ts'
import { type StatusText, statusColumn, table } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'

const outcomes: Readonly<Record<SignedRequest['outcome'], StatusText>> = {
  signed: ['signed', 'ok'],
  'would-sign': ['would sign', 'ok'],
  'marked-failed': ['marked Failed', 'critical'],
  'already-signed': ['already issued', 'ok'],
  skipped: ['skipped', 'warning'],
  'rule-violation': ['BREAKS RULES', 'critical'],
  refused: ['REFUSED', 'critical'],
  changed: ['CHANGED', 'critical'],
  deleted: ['deleted', 'warning'],
  'not-found': ['not found', 'warning'],
  failed: ['FAILED', 'critical'],
}

/** Returns a line for each request that the signer processed, and the reason for those without a certificate. */
export function renderSignedRequests(
  { ca, requests, files, dryRun }: SignedRequestsReport,
  view: View,
): string {
  const unsigned = requests.filter(({ outcome }) => outcome !== 'signed' && outcome !== 'would-sign')
  return joinSections([
    requests.length === 0
      ? ['no approved request is pending']
      : table(view, requests, [
          { title: 'NAME', cell: ({ name }) => name },
          statusColumn('OUTCOME', view.paint, ({ outcome }) => outcomes[outcome]),
          { title: 'SIGNER', cell: ({ signerName = '' }) => signerName, dropRank: 2 },
          { title: 'SUBJECT', cell: ({ certificate }) => certificate?.subject ?? '', shrinkTo: 16 },
          ...issuedColumns,
        ]),
    unsigned.flatMap(({ name, reason, fix, next, error }) => [
      `${printable(name)}: ${printable(reason)}`,
      ...adviceLines({ why: error?.why, fix: fix ?? error?.fix, next: next ?? error?.next }),
    ]),
    [
      `signer ${printable(ca.subject)}${dryRun ? ' (dry run: nothing was signed)' : ''}`,
      ...(files.issuanceLog === undefined ? [] : [`issuance log ${printable(files.issuanceLog)}`]),
      ...(files.certificates === undefined ? [] : [`certificates ${printable(files.certificates)}`]),
    ],
  ])
}
