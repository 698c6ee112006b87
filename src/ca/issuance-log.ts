import { orUndefined } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { harmlessJson } from '../errors/hidden-text.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import type { Certificate } from '../x509/certificate.ts'
import { drawSerialNumber, normalSerialNumber, type RandomBytes } from './serial.ts'

// The issuance log: every certificate that a CA has signed, one JSON object per line. It is written before kcert returns a
// certificate, so kcert did not sign any certificate that is missing from it, and no serial number is used twice.

/** The file of the log. The caller locks it while an IssuanceLog is open. */
export interface IssuanceLogStore {
  /** For messages: the path. */
  readonly name: string
  /** All bytes; none if there is no log yet. */
  read(): Uint8Array
  /** Appends bytes and returns once they are on disk. */
  append(bytes: Uint8Array): void
  /** Truncates the file to this many bytes. */
  cut(length: number): void
}

const newline = 0x0a

export class IssuanceLog {
  private readonly store: IssuanceLogStore
  private readonly taken: Set<string>

  /**
   * Reads the log. Removes a last line that a crash cut short: its certificate was never returned. Throws
   * KCERT_ISSUANCE_LOG_DAMAGED when any other line is not an entry.
   */
  constructor(store: IssuanceLogStore) {
    this.store = store
    const bytes = store.read()
    const complete = bytes.lastIndexOf(newline) + 1
    const { taken, lines } = readLines(store.name, bytes.subarray(0, complete))
    this.taken = taken
    this.repairEnd(bytes.subarray(complete), complete, lines + 1)
  }

  /** Returns a new serial number that neither the log nor the CA's own certificate has. */
  draw(random: RandomBytes, ca?: Certificate): string {
    const own = ca === undefined ? undefined : normalSerialNumber(ca.serialNumber)
    const drawn = drawSerialNumber(random, (candidate) => candidate === own || this.taken.has(candidate))
    this.taken.add(drawn)
    return drawn
  }

  /** Records signed certificates. Only then may they be returned. */
  record(certificates: readonly Certificate[], issuedAt: Date): void {
    const lines = certificates.map(
      (certificate) => `${harmlessJson(JSON.stringify(entryOf(certificate, issuedAt)))}\n`,
    )
    this.store.append(Buffer.from(lines.join('')))
  }

  private repairEnd(rest: Uint8Array, complete: number, line: number): void {
    if (rest.length === 0) return
    const text = Buffer.from(rest).toString('utf8')
    const serialNumber = serialNumberOf(text)
    if (serialNumber !== undefined) {
      // The entry is complete, but an editor removed the newline: the next entry needs a new line.
      this.taken.add(serialNumber)
      this.store.append(Uint8Array.of(newline))
    } else if (text.startsWith(entryStart) || entryStart.startsWith(text)) this.store.cut(complete)
    // Not written by kcert: perhaps the file is something else.
    else throw damaged(this.store.name, line)
  }
}

// The start of `entryOf`: what an interrupted write leaves.
const entryStart = '{"serialNumber":"'

/** A line of the log: the serial number in hexadecimal, names as in RFC 4514, times as in RFC 3339. */
function entryOf(certificate: Certificate, issuedAt: Date) {
  const { serialNumber, subject, issuer, authorityKeyId, notBefore, notAfter, fingerprintSha256 } =
    certificate
  return {
    serialNumber: normalSerialNumber(serialNumber),
    subject: subject.text,
    issuer: issuer.text,
    authorityKeyId,
    notBefore: rfc3339(notBefore),
    notAfter: rfc3339(notAfter),
    fingerprintSha256,
    issuedAt: rfc3339(issuedAt),
  }
}

/** A certificate as the log records it. Entries of older versions have no issuer. */
export interface LoggedCertificate {
  readonly fingerprintSha256: string
  readonly subject: string
  readonly issuer?: string
  readonly authorityKeyId?: string
  readonly expiresAtMs?: number
}

/** Returns the certificates in an issuance log; undefined for another file. Ignores lines that are not entries. */
export function issuedIn(bytes: Uint8Array): LoggedCertificate[] | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  if (!text.subarray(0, entryStart.length).equals(Buffer.from(entryStart))) return undefined
  return text
    .toString('utf8')
    .split('\n')
    .flatMap((line) => loggedCertificate(orUndefined(() => JSON.parse(line))) ?? [])
}

function loggedCertificate(entry: unknown): LoggedCertificate | undefined {
  if (typeof entry !== 'object' || entry === null) return undefined
  const { fingerprintSha256, subject, issuer, authorityKeyId, notAfter } = entry as Record<string, unknown>
  if (typeof fingerprintSha256 !== 'string' || typeof subject !== 'string') return undefined
  const expiresAtMs = Date.parse(String(notAfter))
  return {
    ...{ fingerprintSha256, subject },
    ...(typeof issuer === 'string' && { issuer }),
    ...(typeof authorityKeyId === 'string' && { authorityKeyId }),
    ...(!Number.isNaN(expiresAtMs) && { expiresAtMs }),
  }
}

function readLines(name: string, content: Uint8Array): { taken: Set<string>; lines: number } {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length)
  const taken = new Set<string>()
  let line = 1
  for (let at = 0; at < bytes.length; line++) {
    const end = bytes.indexOf(newline, at)
    const text = bytes.toString('utf8', at, end)
    at = end + 1
    if (text.trim() === '') continue
    const serialNumber = serialNumberOf(text)
    if (serialNumber === undefined) throw damaged(name, line)
    taken.add(serialNumber)
  }
  return { taken, lines: line - 1 }
}

function serialNumberOf(line: string): string | undefined {
  const entry: unknown = orUndefined(() => JSON.parse(line))
  if (typeof entry !== 'object' || entry === null || !('serialNumber' in entry)) return undefined
  const { serialNumber } = entry
  const isSerialNumber = typeof serialNumber === 'string' && /^[0-9a-fA-F]{1,40}$/.test(serialNumber)
  return isSerialNumber ? normalSerialNumber(serialNumber) : undefined
}

function damaged(name: string, line: number): KcertError {
  return new KcertError(
    'KCERT_ISSUANCE_LOG_DAMAGED',
    `line ${line} of the issuance log ${name} is not an entry`,
    {
      why: 'each line is JSON with "serialNumber", so that no serial number is used twice; repair the line from a backup',
      next: commandLine`sed -n ${line}p ${name}`,
    },
  )
}
