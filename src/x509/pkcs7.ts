import { derFromBer } from './ber.ts'
import { constructedTag, DerReader, derLimits, tags } from './der.ts'
import { nameOfOid } from './oids.ts'

// The largest public collections have some thousands.
const maxCertificates = 50_000

/**
 * Returns the certificates of a PKCS#7 bundle (SignedData, RFC 2315 section 9), each in DER, in order; none for an empty bundle.
 * Signatures in it are not looked at: what is in a bundle is trusted for nothing. Throws KCERT_X509_MALFORMED.
 */
export function readPkcs7(bytes: Uint8Array): Uint8Array[] {
  try {
    return certificatesOf(bytes)
  } catch (error) {
    // Rewritten only where it must be, so that certificates keep the octets that their fingerprints are of.
    const der = derFromBer(bytes, 'PKCS#7')
    if (der === bytes) throw error
    return certificatesOf(der)
  }
}

/** True when the octets look like a PKCS#7 ContentInfo: a SEQUENCE that begins with one of PKCS#7's object identifiers. */
export function looksLikePkcs7(bytes: Uint8Array): boolean {
  try {
    const reader = new DerReader(derPrefix(bytes), 'PKCS#7', bytes.length)
    return (nameOfOid(reader.oid('contentType')) ?? '').endsWith('Data')
  } catch {
    return false
  }
}

/** What follows the header of the outer SEQUENCE, whose length may be indefinite. */
function derPrefix(bytes: Uint8Array): Uint8Array {
  if (bytes[0] !== tags.sequence || bytes.length < 2) return bytes.subarray(0, 0)
  const first = bytes[1]!
  return bytes.subarray(first <= 0x80 ? 2 : 2 + (first & 0x7f))
}

function certificatesOf(der: Uint8Array): Uint8Array[] {
  const reader = new DerReader(der, 'PKCS#7', derLimits.containerBytes)
  const outer = reader.enter(tags.sequence, 'ContentInfo')
  const oid = reader.oid('contentType')
  const type = nameOfOid(oid) ?? oid
  if (type !== 'signedData')
    reader.fail('contentType', `${type}, where signedData holds certificates`, reader.start)
  const content = reader.enter(constructedTag(0), 'content')
  const signedData = reader.enter(tags.sequence, 'SignedData')
  reader.integer('version')
  reader.read(tags.set, 'digestAlgorithms')
  reader.read(tags.sequence, 'contentInfo')
  const certificates: Uint8Array[] = []
  if (reader.readOptional(constructedTag(0), 'certificates')) {
    const list = reader.enterLast('certificates')
    while (!reader.atEnd) {
      // Attribute certificates have context tags; they are no X.509 certificates of anybody's TLS.
      if (reader.next('certificate') !== tags.sequence) continue
      certificates.push(reader.lastElement)
      if (certificates.length > maxCertificates) reader.fail('certificates', `more than ${maxCertificates}`)
    }
    reader.leave(list)
  }
  reader.leave(signedData)
  reader.leave(content)
  reader.leave(outer)
  reader.finish('after the bundle')
  return certificates
}
