import { commandLine } from '../errors/command-line.ts'
import { harmlessJson } from '../errors/hidden-text.ts'
import { attempt, KcertError } from '../errors/kcert-error.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import type { Certificate } from '../x509/certificate.ts'
import { drawSerialNumber, normalSerialNumber, type RandomOctets } from './serial.ts'

// Every certificate that a CA has signed, one JSON object a line. It is written before a certificate leaves kcert, so a
// certificate that is not in it was not signed by kcert, and no serial number is given twice.

export interface LedgerEntry {
  /** Hexadecimal. */
  readonly serialNumber: string
  /** RFC 4514. */
  readonly subject: string
  /** RFC 3339, as the times below. */
  readonly notBefore: string
  readonly notAfter: string
  readonly fingerprintSha256: string
  readonly issuedAt: string
}

/** Where the lines are kept. The caller holds the lock on it while a Ledger is open. */
export interface LedgerStore {
  /** For messages: the path. */
  readonly name: string
  /** All octets; none when there is no ledger yet. */
  read(): Uint8Array
  /** Adds octets at the end and returns once they are on the disk. */
  append(octets: Uint8Array): void
  /** Cuts off what is behind this many octets. */
  cut(length: number): void
}

const newline = 0x0a

export class Ledger {
  private readonly store: LedgerStore
  private readonly taken: Set<string>

  /**
   * Reads the ledger. A last line that a crash cut short is removed: its certificate never left. Throws
   * KCERT_LEDGER_DAMAGED when any other line is no entry.
   */
  constructor(store: LedgerStore) {
    this.store = store
    const octets = store.read()
    const complete = octets.lastIndexOf(newline) + 1
    const { taken, lines } = readLines(store.name, octets.subarray(0, complete))
    this.taken = taken
    this.mendEnd(octets.subarray(complete), complete, lines + 1)
  }

  /** Returns a serial number that neither the ledger nor the CA's own certificate has, and keeps it from being drawn again. */
  draw(random: RandomOctets, ca?: Certificate): string {
    const own = ca === undefined ? undefined : normalSerialNumber(ca.serialNumber)
    const drawn = drawSerialNumber(random, (candidate) => candidate === own || this.taken.has(candidate))
    this.taken.add(drawn)
    return drawn
  }

  /** Writes down what was signed. Only then may a certificate be handed out. */
  record(certificates: readonly Certificate[], issuedAt: Date): void {
    const lines = certificates.map(
      (certificate) => `${harmlessJson(JSON.stringify(entryOf(certificate, issuedAt)))}\n`,
    )
    this.store.append(Buffer.from(lines.join('')))
  }

  private mendEnd(rest: Uint8Array, complete: number, line: number): void {
    if (rest.length === 0) return
    const text = Buffer.from(rest).toString('utf8')
    const serialNumber = serialNumberOf(text)
    if (serialNumber !== undefined) {
      // Whole, but an editor took the newline away: what follows must not be glued to it.
      this.taken.add(serialNumber)
      this.store.append(Uint8Array.of(newline))
    } else if (text.startsWith(entryStart) || entryStart.startsWith(text)) this.store.cut(complete)
    // Not begun by kcert: perhaps a file of something else was named.
    else throw damaged(this.store.name, line)
  }
}

// How `entryOf` begins: what a write that was cut short leaves.
const entryStart = '{"serialNumber":"'

function entryOf(certificate: Certificate, issuedAt: Date): LedgerEntry {
  const { serialNumber, subject, notBefore, notAfter, fingerprintSha256 } = certificate
  return {
    serialNumber: normalSerialNumber(serialNumber),
    subject: subject.text,
    notBefore: rfc3339(notBefore),
    notAfter: rfc3339(notAfter),
    fingerprintSha256,
    issuedAt: rfc3339(issuedAt),
  }
}

function readLines(name: string, octets: Uint8Array): { taken: Set<string>; lines: number } {
  const bytes = Buffer.from(octets.buffer, octets.byteOffset, octets.length)
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
  const entry: unknown = attempt(() => JSON.parse(line))
  if (typeof entry !== 'object' || entry === null || !('serialNumber' in entry)) return undefined
  const { serialNumber } = entry
  const isSerialNumber = typeof serialNumber === 'string' && /^[0-9a-fA-F]{1,40}$/.test(serialNumber)
  return isSerialNumber ? normalSerialNumber(serialNumber) : undefined
}

function damaged(name: string, line: number): KcertError {
  return new KcertError('KCERT_LEDGER_DAMAGED', `line ${line} of the ledger ${name} is no entry`, {
    why: 'a serial number may be lost with it, and none must be given twice',
    next: commandLine`repair the line (it is JSON with "serialNumber"), or move ${name} away to begin a new ledger`,
  })
}
