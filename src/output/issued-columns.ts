import { altNameList } from './names.ts'
import type { Column } from './table.ts'
import { minuteOf } from './time.ts'

/** A row with a certificate, if one is issued. */
interface Issued {
  readonly certificate?:
    | { readonly subjectAltNames: Parameters<typeof altNameList>[0]; readonly notAfter: string }
    | undefined
}

/** The subject of a certificate, and its expiry. */
export const issuedColumns: readonly Column<Issued>[] = [
  {
    title: 'SANS',
    cell: ({ certificate }) => (certificate ? altNameList(certificate.subjectAltNames).join(',') : ''),
    shrinkTo: 12,
    dropRank: 1,
  },
  { title: 'EXPIRES', cell: ({ certificate }) => (certificate ? minuteOf(certificate.notAfter) : '') },
]
