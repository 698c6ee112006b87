import type { CertificateReport, InspectionReport, RequestReport } from '../../inspection/report.ts'
import { altNameList, keyText } from '../names.ts'
import type { Paint } from '../paint.ts'
import { placeText } from '../places.ts'
import { joinSections } from '../sections.ts'
import { type Column, statusColumn, table } from '../table.ts'
import type { View } from '../view.ts'
import { contextColumns, contextRows } from './contexts.ts'
import { certificateExtras } from './extras.ts'
import { problemLines } from './problems.ts'
import { shownStatus } from './status.ts'
import { summaryLine } from './summary.ts'
import { timeLeftOf } from './time-left.ts'
import { verdictLines, verdictsOf } from './verdict.ts'

/** Returns every field of every item, a row for each, in full width: for a wide screen, a pager or grep. */
export function renderWide(report: InspectionReport, given: View): string {
  const view = { ...given, width: Infinity }
  return joinSections([
    [...verdictLines(verdictsOf(report).verdicts, view), summaryLine(report)],
    table(view, report.certificates, certificateColumns(report.at, view.paint)),
    table(view, report.requests, requestColumns),
    table(view, report.keys, [
      { title: 'KEY', cell: ({ kind }) => kind },
      { title: 'TYPE', cell: ({ publicKey }) => (publicKey ? keyText(publicKey) : 'unknown') },
      { title: 'FORMAT', cell: ({ format }) => format },
      { title: 'ENCRYPTED', cell: ({ encrypted }) => (encrypted ? 'yes' : 'no') },
      { title: 'KEY SHA-256', cell: ({ publicKey }) => publicKey?.sha256 ?? '' },
      { title: 'KEY ID', cell: ({ keyId }) => keyId ?? '' },
      { title: 'ROLE', cell: ({ role }) => role ?? '' },
      { title: 'MATCHES', cell: ({ matches }) => matches.map(placeText).join(', ') || 'none' },
      { title: 'PATH', cell: placeText },
    ]),
    table(view, report.tokens, [
      { title: 'SERVICE ACCOUNT TOKEN', cell: ({ subject }) => subject },
      {
        title: 'EXPIRES',
        cell: ({ expirationTimestamp, isExpired }) =>
          `${expirationTimestamp ?? 'never'}${isExpired ? ', expired' : ''}`,
      },
      { title: 'KEY ID', cell: ({ keyId }) => keyId ?? 'none' },
      { title: 'CREDENTIAL ID', cell: ({ credentialId }) => credentialId ?? '' },
      { title: 'BOUND TO', cell: ({ boundTo }) => boundTo ?? '' },
      { title: 'AUDIENCES', cell: ({ audiences }) => audiences.join(',') },
      { title: 'ISSUER', cell: ({ issuer }) => issuer },
      { title: 'PATH', cell: placeText },
    ]),
    table(view, contextRows(report), [
      ...contextColumns(),
      { title: 'NAMESPACE', cell: ({ namespace }) => namespace },
      { title: 'PATH', cell: placeText },
    ]),
    table(view, report.withoutCertificate, [
      { title: 'NO CERTIFICATE', cell: placeText },
      { title: 'REASON', cell: ({ reason }) => reason },
    ]),
    table(view, report.missing, [
      { title: 'MISSING', cell: ({ role }) => role },
      { title: 'EXPECTED AT', cell: ({ source }) => source },
    ]),
    problemLines(report.problems, view, Infinity),
  ])
}

function certificateColumns(at: string, paint: Paint): Column<CertificateReport>[] {
  return [
    statusColumn('STATUS', paint, ({ status }) => [shownStatus[status], status]),
    { title: 'TIME LEFT', cell: (certificate) => timeLeftOf(certificate, at) },
    { title: 'LIFE LEFT', cell: ({ percentLeft }) => `${Math.floor(percentLeft)}%` },
    { title: 'NOT BEFORE', cell: ({ notBefore }) => notBefore },
    { title: 'NOT AFTER', cell: ({ notAfter }) => notAfter },
    { title: 'ROLE', cell: ({ role }) => role ?? '' },
    { title: 'SUBJECT', cell: ({ subject }) => subject.text },
    { title: 'ISSUER', cell: ({ issuer }) => issuer.text },
    { title: 'SERIAL', cell: ({ serialNumber }) => serialNumber },
    { title: 'KEY', cell: ({ publicKey }) => keyText(publicKey) },
    { title: 'SIGNATURE', cell: ({ signatureAlgorithm }) => signatureAlgorithm },
    { title: 'SANS', cell: ({ subjectAltNames }) => altNameList(subjectAltNames).join(',') },
    { title: 'KEY USAGE', cell: ({ keyUsage }) => keyUsage.join(',') },
    { title: 'EXTENDED KEY USAGE', cell: ({ extendedKeyUsage }) => extendedKeyUsage.join(',') },
    { title: 'CA', cell: ({ isCa }) => (isCa ? 'yes' : 'no') },
    { title: 'PATH LENGTH', cell: ({ pathLength }) => pathLength?.toString() ?? '' },
    { title: 'SUBJECT KEY ID', cell: ({ subjectKeyId }) => subjectKeyId ?? '' },
    { title: 'AUTHORITY KEY ID', cell: ({ authorityKeyId }) => authorityKeyId ?? '' },
    {
      title: 'MORE EXTENSIONS',
      cell: (one) =>
        certificateExtras(one)
          .map(([label, text]) => `${label}: ${text}`)
          .join('; '),
    },
    { title: 'FINGERPRINT', cell: ({ fingerprintSha256 }) => fingerprintSha256 },
    { title: 'CA CERT HASH', cell: ({ caPin }) => caPin ?? '' },
    { title: 'KUBELET ROTATES FROM', cell: ({ kubeletRotation }) => kubeletRotation?.earliest ?? '' },
    { title: 'TO', cell: ({ kubeletRotation }) => kubeletRotation?.latest ?? '' },
    { title: 'ISSUER PATH', cell: ({ issuerFound }) => (issuerFound ? placeText(issuerFound) : '') },
    { title: 'PRIVATE KEY', cell: ({ key }) => (key ? placeText(key) : '') },
    { title: 'MATCHES', cell: ({ key }) => (key ? (key.matches ? 'yes' : 'NO') : '') },
    { title: 'PATH', cell: placeText },
  ]
}

const requestColumns: readonly Column<RequestReport>[] = [
  { title: 'REQUEST', cell: ({ subject }) => subject.text },
  { title: 'KEY', cell: ({ publicKey }) => keyText(publicKey) },
  { title: 'KEY SHA-256', cell: ({ publicKey }) => publicKey.sha256 },
  { title: 'SIGNATURE', cell: ({ signatureAlgorithm }) => signatureAlgorithm },
  {
    title: 'VALID',
    cell: ({ signatureValid, signatureUnchecked }) =>
      signatureUnchecked ? 'unknown' : signatureValid ? 'yes' : 'NO',
  },
  { title: 'SANS', cell: ({ subjectAltNames }) => altNameList(subjectAltNames).join(',') },
  { title: 'KEY USAGE', cell: ({ keyUsage }) => keyUsage.join(',') },
  { title: 'EXTENDED KEY USAGE', cell: ({ extendedKeyUsage }) => extendedKeyUsage.join(',') },
  { title: 'SIGNER', cell: ({ signerName }) => signerName ?? '' },
  { title: 'USAGES', cell: ({ usages }) => usages?.join(',') ?? '' },
  { title: 'REQUESTER', cell: ({ username }) => username ?? '' },
  { title: 'CONDITION', cell: ({ condition }) => condition ?? '' },
  { title: 'PATH', cell: placeText },
]
