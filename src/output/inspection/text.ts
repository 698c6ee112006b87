import type { CertificateReport, InspectionReport, RequestReport } from '../../inspection/report.ts'
import { altNameList, keyText, shortName, signatureText } from '../names.ts'
import { namesakeOf, type ShortPlaces, shortPlaces } from '../places.ts'
import { indentedLines, joinSections } from '../sections.ts'
import { type Column, saidColumn, table, tableLines, tableWidth } from '../table.ts'
import { printable } from '../terminal.ts'
import { minuteOf } from '../time.ts'
import type { View } from '../view.ts'
import { shortened } from '../width.ts'
import { certificateCard, requestCard } from './card.ts'
import { contextColumns, contextRows } from './contexts.ts'
import { shownKeys } from './left-out.ts'
import { problemLines } from './problems.ts'
import { summaryLines } from './summary.ts'
import { timeLeftOf } from './time-left.ts'

type WithoutCertificate = InspectionReport['withoutCertificate'][number]

/**
 * Returns the report as the operator reads it first: tables sorted as the report is, then what is wrong and what to do,
 * then one line that says it all. Status and time left stand on the left, where no narrow terminal cuts them off.
 * A certificate or request alone gets all its fields instead of a table of one row.
 */
export function renderText(report: InspectionReport, view: View): string {
  const single = cardOfOne(report, view)
  const sources = sourcesOf(report)
  // The path of a lone missing file is in its row: a heading above it would be that path alone.
  const isAlone = single !== undefined || (sources.length === 1 && report.missing.length === 1)
  const places = shortPlaces(isAlone ? [] : sources)
  return joinSections([
    ...(single ? [single] : [heading(places, view), ...tables(report, places, view)]),
    keyTable(report, places, view),
    contextTable(report, places, view),
    withoutCertificateLines(report, places, view),
    missingTable(report, places, view),
    problemLines(report, view),
    summaryLines(report, view.width),
  ])
}

function cardOfOne({ certificates, requests, at }: InspectionReport, view: View): string[] | undefined {
  if (certificates.length + requests.length !== 1) return undefined
  const [one] = certificates
  return one ? certificateCard(one, at, view) : requests.flatMap((request) => requestCard(request, view))
}

function heading(places: ShortPlaces, { paint }: View): string[] {
  return places.heading === '' ? [] : [paint.heading(printable(places.heading))]
}

function sourcesOf(report: InspectionReport): string[] {
  const { certificates, requests, kubeconfigs, withoutCertificate, missing } = report
  return [certificates, requests, shownKeys(report), kubeconfigs, withoutCertificate, missing].flatMap(
    (list) => list.map(({ source }) => source),
  )
}

function tables(report: InspectionReport, places: ShortPlaces, view: View): string[][] {
  const leaves = report.certificates.filter(({ isCa }) => !isCa).map((one) => ({ one, copies: 0 }))
  const authorities = withoutCopies(report.certificates.filter(({ isCa }) => isCa))
  return [
    certificateTable('CERTIFICATE', leaves, report.at, places, view),
    certificateTable('AUTHORITY', authorities, report.at, places, view),
    requestTable(report.requests, places, view),
  ]
}

interface CertificateRow {
  readonly one: CertificateReport
  /** How often the same certificate lies elsewhere too. */
  readonly copies: number
}

// Every kubeconfig brings a copy of its cluster's CA. A row stands for all copies, and is the one that lies in a file of its
// own; a CA that differs in one of the kubeconfigs gets its own row, and is seen.
function withoutCopies(authorities: readonly CertificateReport[]): CertificateRow[] {
  const groups = Map.groupBy(authorities, ({ fingerprintSha256 }) => fingerprintSha256)
  return [...groups.values()].flatMap((group) => {
    const one = namesakeOf(group)
    return one === undefined ? [] : [{ one, copies: group.length - 1 }]
  })
}

function certificateTable(
  title: string,
  rows: readonly CertificateRow[],
  at: string,
  places: ShortPlaces,
  view: View,
): string[] {
  return table(view, rows, [
    saidColumn('STATUS', view.paint, ({ one: { status } }) => [status, status]),
    { title: 'TIME LEFT', cell: ({ one }) => timeLeftOf(one, at) },
    { title: 'EXPIRES (UTC)', cell: ({ one }) => minuteOf(one.notAfter), dropRank: 2 },
    { title, cell: ({ one }) => one.role ?? shortName(one.subject), shrinkTo: 14, shrinkGladlyTo: 24 },
    {
      title: 'SUBJECT',
      cell: ({ one }) => (one.role === undefined ? '' : shortName(one.subject)),
      shrinkTo: 14,
      dropRank: 3,
    },
    {
      title: 'PLACE',
      cell: ({ one, copies }) => placeCell(one, copies, places),
      shrinkTo: 14,
      cut: 'start',
      dropRank: 1,
    },
  ])
}

// That data stands inline is the usual case and needs no words; a file that a kubeconfig names does.
function placeCell({ source, entry }: CertificateReport, copies: number, places: ShortPlaces): string {
  const short = entry === '' ? '' : entry.replace(/: (?:client-certificate|certificate-authority)-data$/, '')
  const place = places.of({ source, entry: short })
  return copies === 0 ? place : `${place}${place === '' ? '' : ' '}and ${copies} more`
}

function requestTable(requests: readonly RequestReport[], places: ShortPlaces, view: View): string[] {
  return table(view, requests, [
    { title: 'REQUEST', cell: ({ subject }) => shortName(subject), shrinkTo: 16 },
    { title: 'KEY', cell: ({ publicKey }) => keyText(publicKey), dropRank: 3 },
    { title: 'SIGNATURE', cell: signatureText },
    {
      title: 'NAMES',
      cell: ({ subjectAltNames }) => altNameList(subjectAltNames).join(' '),
      shrinkTo: 12,
      dropRank: 4,
    },
    { title: 'SIGNER', cell: ({ signerName }) => signerName ?? '', shrinkTo: 12, dropRank: 2 },
    { title: 'CONDITION', cell: ({ condition }) => condition ?? '', shrinkTo: 9 },
    { title: 'PLACE', cell: places.of, shrinkTo: 12, cut: 'start', dropRank: 1 },
  ])
}

function keyTable(report: InspectionReport, places: ShortPlaces, view: View): string[] {
  return table(view, shownKeys(report), [
    { title: 'KEY', cell: ({ kind, encrypted }) => (encrypted ? `${kind}, encrypted` : kind) },
    { title: 'TYPE', cell: ({ publicKey }) => (publicKey ? keyText(publicKey) : 'unknown'), dropRank: 1 },
    { title: 'FORMAT', cell: ({ format }) => format, dropRank: 2 },
    {
      title: 'MATCHES',
      cell: ({ matches }) => (matches.length === 0 ? 'nothing here' : matches.map(places.of).join(', ')),
      shrinkTo: 12,
    },
    { title: 'ROLE', cell: ({ role }) => role ?? '', shrinkTo: 10, dropRank: 3 },
    // Several keys of one kind differ in nothing else.
    { title: 'PLACE', cell: places.of, shrinkTo: 12, cut: 'start' },
  ])
}

function contextTable(report: InspectionReport, places: ShortPlaces, view: View): string[] {
  return table(view, contextRows(report), [
    ...contextColumns(),
    { title: 'PLACE', cell: places.of, shrinkTo: 12, cut: 'start', dropRank: 1 },
  ])
}

// Who has no certificate and why: a row each where rows fit, and else the reason, whole, below the place.
function withoutCertificateLines(
  { withoutCertificate }: InspectionReport,
  places: ShortPlaces,
  view: View,
): string[] {
  const { width, paint } = view
  if (withoutCertificate.length === 0) return []
  const columns: Column<WithoutCertificate>[] = [
    { title: 'NO CERTIFICATE', cell: places.of },
    { title: 'REASON', cell: ({ reason }) => reason },
  ]
  const rows = tableLines(columns, withoutCertificate, Infinity, paint)
  if (width === Infinity || tableWidth(columns, withoutCertificate) <= width) return rows
  return [
    paint.heading('NO CERTIFICATE'),
    ...withoutCertificate.flatMap((one) => [
      shortened(printable(places.of(one)), width, 'start'),
      ...indentedLines(one.reason, '    ', view),
    ]),
  ]
}

function missingTable({ missing }: InspectionReport, places: ShortPlaces, view: View): string[] {
  return table(view, missing, [
    { title: 'MISSING', cell: ({ role }) => role, shrinkTo: 16 },
    {
      title: 'EXPECTED AT',
      cell: ({ source }) => places.of({ source, entry: '' }),
      shrinkTo: 20,
      cut: 'middle',
    },
  ])
}
