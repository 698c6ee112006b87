import type { BundleReport, CaReport, KeyReport, SigningReport } from '../ca/report.ts'
import { type Field, fieldLines } from './fields.ts'
import { altNameList, keyText } from './names.ts'
import { counted, joinSections } from './sections.ts'
import { table } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf } from './time.ts'
import { wholeWidth } from './view.ts'

// Text for the reports of `kcert key` and `kcert ca`. The reports contain no private key.

/** Returns the path and the parameters of the new key. */
export function renderKey({ file, publicKey, format, encrypted }: KeyReport): string {
  const form = { pkcs8: 'PKCS#8', sec1: 'SEC1', pkcs1: 'PKCS#1' }[format]
  return renderFacts([
    ['private key', file],
    ['type', keyText(publicKey)],
    ['format', encrypted ? `encrypted ${form}` : form],
    ['public key', `sha256:${publicKey.sha256}`],
  ])
}

/** Returns the CA and the paths of its files. */
export function renderCa({ action, certificate, caPin, files }: CaReport): string {
  const limit = certificate.pathLength
  return renderFacts([
    [`CA ${action}`, certificate.subject],
    ['valid', `${minuteOf(certificate.notBefore)} to ${minuteOf(certificate.notAfter)} UTC`],
    ['key', keyText(certificate.publicKey)],
    ['path length', limit === undefined ? '' : limit === 0 ? 'no further CA' : `up to ${limit} CAs`],
    ['serial', certificate.serialNumber],
    ['CA cert hash', caPin],
    ['certificate', files.certificate],
    ['private key', files.key],
    ['backup', files.backup],
    ['issuance log', files.issuanceLog],
  ])
}

// A readable number of rows; the JSON has all of them.
const mostRows = 40

/** Returns a table of the signed certificates. */
export function renderSigning({ ca, usages, certificates, files }: SigningReport): string {
  const rows = certificates.slice(0, mostRows)
  const more = certificates.length - rows.length
  const signed = table(wholeWidth, rows, [
    { title: 'SUBJECT', cell: ({ subject }) => subject },
    { title: 'SANS', cell: ({ subjectAltNames }) => altNameList(subjectAltNames).join(',') },
    { title: 'EXPIRES', cell: ({ notAfter }) => minuteOf(notAfter) },
    { title: 'SERIAL', cell: ({ serialNumber }) => serialNumber },
  ])
  return joinSections([
    [`signed ${counted(certificates.length, 'certificate')} by ${printable(ca.subject)}`],
    [...signed, ...(more > 0 ? [`… and ${more} more`] : [])],
    fieldLines(wholeWidth, [
      ['usages', usages.join(', ')],
      [certificates.length === 1 ? 'certificate' : 'certificates', files.certificates],
      ['issuance log', files.issuanceLog],
    ]),
  ])
}

/** Returns the certificates in the bundle and those left out. */
export function renderBundle({ members, skipped, file }: BundleReport): string {
  const rows = [
    ...members.map((member) => ({ ...member, state: 'in' })),
    ...skipped.map(({ reason, ...member }) => ({ ...member, state: reason })),
  ]
  return joinSections([
    table(wholeWidth, rows, [
      { title: 'BUNDLE', cell: ({ state }) => state },
      { title: 'SUBJECT', cell: ({ subject }) => subject },
      { title: 'EXPIRES', cell: ({ notAfter }) => minuteOf(notAfter) },
      { title: 'SHA-256', cell: ({ fingerprintSha256 }) => fingerprintSha256.slice(0, 16) },
      { title: 'FROM', cell: ({ location }) => location },
    ]),
    fieldLines(wholeWidth, [['bundle', file]]),
  ])
}

function renderFacts(fields: readonly Field[]): string {
  return joinSections([fieldLines(wholeWidth, fields)])
}
