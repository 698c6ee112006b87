import { KcertError } from '../errors/kcert-error.ts'
import { sourceName } from '../errors/source-name.ts'
import { looksLikePem, readPem } from '../x509/pem.ts'
import { newRequestAdvice } from './certificate-authority.ts'

/** A request in a file. */
export interface RequestEntry {
  /** The file, "-" for standard input. */
  readonly source: string
  /** "request 2" if the file has several; empty if it has one. */
  readonly entry: string
  readonly der: Uint8Array
}

// RFC 7468 section 7, and the label of older OpenSSL and cfssl versions.
const labels: ReadonlySet<string> = new Set(['CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST'])

/**
 * Returns all requests of a file: PEM, without other blocks, or one in DER. Throws KCERT_REQUEST_REFUSED when there is none
 * or one is damaged.
 */
export function requestsOf(source: string, bytes: Uint8Array): RequestEntry[] {
  if (!looksLikePem(bytes) && bytes[0] === 0x30) return [{ source, entry: '', der: bytes }]
  const { blocks, defects } = readPem(bytes)
  const defect = defects.find(({ label }) => label === '' || labels.has(label))
  if (defect !== undefined)
    throw refused(`${sourceName(source)}: line ${defect.line}: ${defect.reason}`, 'a CSR may be missing')
  const requests = blocks.filter(({ label }) => labels.has(label))
  if (requests.length > 0) {
    const entry = (index: number): string => (requests.length === 1 ? '' : `request ${index + 1}`)
    return requests.map(({ der }, index) => ({ source, entry: entry(index), der }))
  }
  const found = [...new Set(blocks.map(({ label }) => label))].join(', ')
  throw refused(
    `${sourceName(source)} contains no certificate request`,
    found === '' ? 'it is neither PEM nor DER' : `it contains: ${found}`,
  )
}

function refused(what: string, why: string): KcertError {
  return new KcertError('KCERT_REQUEST_REFUSED', what, { why, next: newRequestAdvice })
}
