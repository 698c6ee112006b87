import { derFromBer } from './ber.ts'
import { constructedTag, contentAt, DerReader, derLimits, tags } from './der.ts'

// The largest public collections contain some thousands.
const maxCertificates = 50_000

/**
 * Returns the DER of each certificate in a PKCS#7 bundle (SignedData, RFC 2315 section 9), in order; none for an empty bundle.
 * Does not check signatures, because the bundle gives no trust. Throws KCERT_X509_MALFORMED.
 */
export function readPkcs7(bytes: Uint8Array): Uint8Array[] {
  try {
    return certificatesOf(bytes)
  } catch (error) {
    // Converted only if necessary, so that certificates keep the bytes of their fingerprints.
    const der = derFromBer(bytes, 'PKCS#7')
    if (der === bytes) throw error
    return certificatesOf(der)
  }
}

/** True when the bytes look like a PKCS#7 ContentInfo: a SEQUENCE that begins with one of PKCS#7's object identifiers. */
export function looksLikePkcs7(bytes: Uint8Array): boolean {
  try {
    // The length of the outer SEQUENCE may be indefinite.
    const reader = new DerReader(bytes.subarray(contentAt(bytes, 0)), 'PKCS#7', bytes.length)
    return bytes[0] === tags.sequence && reader.oidName('contentType').endsWith('Data')
  } catch {
    return false
  }
}

function certificatesOf(der: Uint8Array): Uint8Array[] {
  const reader = new DerReader(der, 'PKCS#7', derLimits.containerBytes)
  const certificates: Uint8Array[] = []
  reader.within(tags.sequence, 'ContentInfo', () => {
    const type = reader.oidName('contentType')
    if (type !== 'signedData')
      reader.fail('contentType', `${type}, where signedData contains certificates`, reader.start)
    reader.within(constructedTag(0), 'content', () => {
      reader.within(tags.sequence, 'SignedData', () => {
        reader.integer('version')
        reader.read(tags.set, 'digestAlgorithms')
        reader.read(tags.sequence, 'contentInfo')
        if (!reader.peek(constructedTag(0))) return
        reader.each(constructedTag(0), 'certificates', () => {
          // Attribute certificates have context tags. They are not X.509 certificates for TLS.
          if (reader.next('certificate') !== tags.sequence) return
          certificates.push(reader.lastElement)
          if (certificates.length > maxCertificates)
            reader.fail('certificates', `more than ${maxCertificates}`)
        })
      })
    })
  })
  reader.finish('after the bundle')
  return certificates
}
