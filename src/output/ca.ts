import type {
  AuthorityReport,
  BundleReport,
  CertificateFacts,
  KeyReport,
  SignedCertificate,
  SigningReport,
} from '../ca/report.ts'
import { altNameList, keyText } from './names.ts'
import { noPaint } from './paint.ts'
import { tableLines } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf } from './time.ts'

// What `kcert key` and `kcert ca` did, for people. Never a private key: the reports have none.

/** Returns where the new key is and what it is. */
export function renderKey({ file, publicKey, format, encrypted }: KeyReport): string {
  const form = { pkcs8: 'PKCS#8', sec1: 'SEC1', pkcs1: 'PKCS#1' }[format]
  return facts([
    ['private key', file],
    ['type', keyText(publicKey)],
    ['format', encrypted ? `encrypted ${form}` : form],
    ['public key', `sha256:${publicKey.sha256}`],
  ])
}

/** Returns what the CA is, and where its files are. */
export function renderAuthority({ action, certificate, caPin, files }: AuthorityReport): string {
  const limit = certificate.pathLength
  return facts([
    [`CA ${action}`, certificate.subject],
    ['valid', lifetime(certificate)],
    ['key', keyText(certificate.publicKey)],
    ['below it', limit === undefined ? '' : limit === 0 ? 'no further CA' : `up to ${limit} CAs`],
    ['serial', certificate.serialNumber],
    ['CA pin', caPin],
    ['certificate', files.certificate ?? ''],
    ['private key', files.key ?? ''],
    ['before it', files.backup ?? ''],
    ['ledger', files.ledger ?? ''],
  ])
}

// Enough to look through; whoever signs more reads the JSON.
const mostRows = 40

/** Returns a table of what was signed. */
export function renderSigning({ ca, usages, certificates, files }: SigningReport): string {
  const columns = [
    { title: 'SUBJECT', cell: ({ subject }: SignedCertificate) => subject },
    {
      title: 'NAMES',
      cell: ({ subjectAltNames }: SignedCertificate) => altNameList(subjectAltNames).join(','),
    },
    { title: 'EXPIRES', cell: ({ notAfter }: SignedCertificate) => minuteOf(notAfter) },
    { title: 'SERIAL', cell: ({ serialNumber }: SignedCertificate) => serialNumber },
  ]
  const rows = certificates.slice(0, mostRows)
  const more = certificates.length - rows.length
  const lines = [
    `signed ${counted(certificates.length, 'certificate')} by ${printable(ca.subject)}`,
    '',
    ...tableLines(columns, rows, Number.POSITIVE_INFINITY, noPaint),
    ...(more > 0 ? [`… and ${more} more`] : []),
    '',
  ]
  const where = facts([
    ['usages', usages.join(', ')],
    [certificates.length === 1 ? 'certificate' : 'certificates', files.certificates ?? ''],
    ['ledger', files.ledger],
  ])
  return `${lines.join('\n')}\n${where}`
}

/** Returns what is in the bundle and what is not. */
export function renderBundle({ members, leftOut, file }: BundleReport): string {
  const rows = [
    ...members.map((member) => ({ ...member, state: 'in' })),
    ...leftOut.map(({ reason, ...member }) => ({ ...member, state: reason })),
  ]
  const columns = [
    { title: 'BUNDLE', cell: ({ state }: (typeof rows)[number]) => state },
    { title: 'SUBJECT', cell: ({ subject }: (typeof rows)[number]) => subject },
    { title: 'EXPIRES', cell: ({ notAfter }: (typeof rows)[number]) => minuteOf(notAfter) },
    {
      title: 'SHA-256',
      cell: ({ fingerprintSha256 }: (typeof rows)[number]) => fingerprintSha256.slice(0, 16),
    },
    { title: 'FROM', cell: ({ place }: (typeof rows)[number]) => place },
  ]
  const table = tableLines(columns, rows, Number.POSITIVE_INFINITY, noPaint).join('\n')
  return `${table}\n\n${facts([['bundle', file ?? '']])}`
}

function lifetime({ notBefore, notAfter }: CertificateFacts): string {
  return `${minuteOf(notBefore)} to ${minuteOf(notAfter)} UTC`
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}

/** Lines of a name and a value; what has no value has no line. */
function facts(pairs: readonly (readonly [name: string, value: string])[]): string {
  const given = pairs.filter(([, value]) => value !== '')
  const widest = Math.max(0, ...given.map(([name]) => name.length))
  return given.map(([name, value]) => `${name.padEnd(widest)}  ${printable(value)}\n`).join('')
}
