import type { CertificateReport, InspectionReport } from '../../inspection/report.ts'
import { altNameList, keyText, shortName, signatureText } from '../names.ts'
import { namesakeOf, type ShortPlaces, shortPlaces } from '../places.ts'
import { indentedLines, joinSections } from '../sections.ts'
import { type Column, statusColumn, table, tableLines, tableWidth } from '../table.ts'
import { printable } from '../terminal.ts'
import { minuteOf } from '../time.ts'
import type { View } from '../view.ts'
import { certificateCard, requestCard } from './card.ts'
import { shownKeys } from './left-out.ts'
import { problemLines } from './problems.ts'
import { shownStatus } from './status.ts'
import { summaryLines } from './summary.ts'
import { timeLeftOf } from './time-left.ts'
import { verdictLines, verdictsOf } from './verdict.ts'

type WithoutCertificate = InspectionReport['withoutCertificate'][number]

/**
 * Returns the report as text: the verdict with the command that repairs most, a summary, tables in the order of the report, and
 * the remaining problems. A single certificate or request gets all its fields instead of a table.
 */
export function renderText(report: InspectionReport, view: View): string {
  const single = cardOfOne(report, view)
  const { verdicts, others } = verdictsOf(report)
  const sources = sourcesOf(report)
  // The row of a single missing file has its path, so it needs no heading.
  const isAlone = single !== undefined || (sources.length === 1 && report.missing.length === 1)
  const places = shortPlaces(isAlone ? [] : sources)
  return joinSections([
    [...verdictLines(verdicts, view), ...(single ? [] : summaryLines(report, view.width))],
    ...(single ? [single] : [heading(places, view), ...tables(report, places, view)]),
    table(view, shownKeys(report), [
      { title: 'KEY', cell: ({ kind, encrypted }) => (encrypted ? `${kind}, encrypted` : kind) },
      { title: 'TYPE', cell: ({ publicKey }) => (publicKey ? keyText(publicKey) : 'unknown'), dropRank: 1 },
      { title: 'FORMAT', cell: ({ format }) => format, dropRank: 4 },
      { title: 'KEY ID', cell: ({ keyId }) => keyId ?? '', dropRank: 2 },
      {
        title: 'MATCHES',
        cell: ({ matches }) => (matches.length === 0 ? 'none' : matches.map(places.of).join(', ')),
      },
      { title: 'ROLE', cell: ({ role }) => role ?? '', shrinkTo: 10, dropRank: 3 },
      // Several keys of one type differ only in their path.
      { title: 'PATH', cell: places.of },
    ]),
    table(view, report.tokens, [
      {
        title: 'SERVICE ACCOUNT TOKEN',
        cell: ({ subject }) => subject.replace(/^system:serviceaccount:([^:]*):/, '$1/'),
      },
      {
        title: 'EXPIRES (UTC)',
        cell: ({ expirationTimestamp, isExpired }) =>
          expirationTimestamp === undefined
            ? 'never'
            : `${minuteOf(expirationTimestamp)}${isExpired ? ', expired' : ''}`,
      },
      { title: 'KEY ID', cell: ({ keyId }) => keyId ?? 'none' },
      { title: 'BOUND TO', cell: ({ boundTo }) => boundTo ?? '', dropRank: 2 },
      { title: 'ISSUER', cell: ({ issuer }) => issuer, shrinkTo: 14, dropRank: 3 },
      { title: 'PATH', cell: places.of },
    ]),
    withoutCertificateLines(report, places, view),
    table(view, report.missing, [
      { title: 'MISSING', cell: ({ role }) => role },
      { title: 'EXPECTED AT', cell: ({ source }) => places.of({ source, entry: '' }) },
    ]),
    problemLines(others, view),
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
  const { requests, tokens, withoutCertificate, missing } = report
  return [
    shownCertificates(report),
    requests,
    shownKeys(report),
    tokens,
    withoutCertificate,
    missing,
  ].flatMap((list) => list.map(({ source }) => source))
}

/** A kubelet file that a newer one replaced is left out here. -o wide shows it. */
function shownCertificates({ certificates }: InspectionReport): readonly CertificateReport[] {
  const shown = certificates.filter(({ isReplaced }) => !isReplaced)
  return shown.length === 0 ? certificates : shown
}

function tables(report: InspectionReport, places: ShortPlaces, view: View): string[][] {
  const certificates = shownCertificates(report)
  const leaves = certificates.filter(({ isCa }) => !isCa).map((one) => ({ one, copies: 0 }))
  const cas = withoutCopies(certificates.filter(({ isCa }) => isCa))
  return [
    certificateTable('CERTIFICATE', leaves, report.at, places, view),
    certificateTable('CA CERTIFICATE', cas, report.at, places, view),
    table(view, report.requests, [
      { title: 'REQUEST', cell: ({ subject }) => shortName(subject) },
      { title: 'KEY', cell: ({ publicKey }) => keyText(publicKey), dropRank: 3 },
      { title: 'SIGNATURE', cell: signatureText },
      { title: 'SANS', cell: ({ subjectAltNames }) => altNameList(subjectAltNames).join(' '), dropRank: 4 },
      { title: 'SIGNER', cell: ({ signerName }) => signerName ?? '', dropRank: 2 },
      { title: 'CONDITION', cell: ({ condition }) => condition ?? '', shrinkTo: 9 },
      { title: 'PATH', cell: places.of },
    ]),
  ]
}

interface CertificateRow {
  readonly one: CertificateReport
  /** The number of other places with the same certificate. */
  readonly copies: number
}

// Every kubeconfig has a copy of its cluster's CA. All copies share one row: that of a file with no other content. A CA that
// differs in one of the kubeconfigs gets its own row.
function withoutCopies(cas: readonly CertificateReport[]): CertificateRow[] {
  const groups = Map.groupBy(cas, ({ fingerprintSha256 }) => fingerprintSha256)
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
  const pathOf = pathCell(rows, places)
  // kubeadm's own table has no paths: the names of its certificates suffice.
  const roles = new Set(rows.map(({ one }) => one.role))
  const areNamed = !roles.has(undefined) && roles.size === rows.length
  return table(view, rows, [
    statusColumn('STATUS', view.paint, ({ one: { status } }) => [shownStatus[status], status]),
    { title: 'TIME LEFT', cell: ({ one }) => timeLeftOf(one, at) },
    { title: 'EXPIRES (UTC)', cell: ({ one }) => minuteOf(one.notAfter), dropRank: 2 },
    { title, cell: ({ one }) => one.role ?? shortName(one.subject) },
    {
      title: 'SUBJECT',
      // Without a role, the row shows the subject.
      cell: ({ one }) => (one.role === undefined ? '' : shortName(one.subject)),
      shrinkTo: 14,
      dropRank: 4,
    },
    { title: 'PATH', cell: pathOf, ...(areNamed && { dropRank: 3 }) },
  ])
}

/** Shows only the path where the path and the name occur in a single row, which is nearly always. */
function pathCell(rows: readonly CertificateRow[], places: ShortPlaces): (row: CertificateRow) => string {
  const keyOf = ({ source, role }: CertificateReport) => `${source}\0${role ?? ''}`
  const counts = new Map<string, number>()
  for (const { one } of rows) {
    const key = keyOf(one)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return ({ one, copies }) => {
    const { source, entry } = one
    const isOnly = counts.get(keyOf(one)) === 1 && !isInside(source, places)
    const path = places.of({ source, entry: isOnly ? '' : shortEntry(entry) })
    return copies === 0 ? path : `${path}${path === '' ? '' : ' '}(and ${copies} more)`
  }
}

/** If all rows have one source, its path is the heading and only the entry is shown. */
function isInside(source: string, { heading }: ShortPlaces): boolean {
  return source === heading
}

// Most kubeconfig data is inline and needs no note. A file that a kubeconfig names does.
function shortEntry(entry: string): string {
  return entry.replace(/: (?:client-certificate|certificate-authority)-data$/, '')
}

// Users without a certificate, each with the reason: one row for each if the rows fit, else the full reason below the path.
function withoutCertificateLines(
  { withoutCertificate }: InspectionReport,
  places: ShortPlaces,
  view: View,
): string[] {
  const { width, paint, hasHeadings = true } = view
  if (withoutCertificate.length === 0) return []
  const columns: Column<WithoutCertificate>[] = [
    { title: 'NO CERTIFICATE', cell: places.of },
    { title: 'REASON', cell: ({ reason }) => reason },
  ]
  const rows = tableLines(columns, withoutCertificate, Infinity, paint, hasHeadings)
  if (width === Infinity || tableWidth(columns, withoutCertificate) <= width) return rows
  return [
    ...(hasHeadings ? [paint.heading('NO CERTIFICATE')] : []),
    ...withoutCertificate.flatMap((one) => [
      printable(places.of(one)),
      ...indentedLines(one.reason, '    ', view),
    ]),
  ]
}
