import type { SignedControlPlane } from '../ca/control-plane-report.ts'
import { fieldLines } from './fields.ts'
import { counted, joinSections } from './sections.ts'
import { table } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf } from './time.ts'
import { wholeWidth } from './view.ts'

/** Returns the signed certificates of a control plane as a table, then the commands for its kubeconfigs. */
export function renderSignedControlPlane({ certificates, issuanceLogs, next }: SignedControlPlane): string {
  return joinSections([
    [`signed ${counted(certificates.length, 'certificate')}`],
    table(wholeWidth, certificates, [
      { title: 'CERTIFICATE', cell: ({ row }) => row },
      { title: 'CA', cell: ({ ca }) => ca },
      { title: 'SUBJECT', cell: ({ subject }) => subject },
      { title: 'EXPIRES', cell: ({ notAfter }) => minuteOf(notAfter) },
      { title: 'FILE', cell: ({ file }) => file },
    ]),
    fieldLines(wholeWidth, [['issuance logs', issuanceLogs.join(', ')]]),
    next.map((command) => `next: ${printable(command)}`),
  ])
}
