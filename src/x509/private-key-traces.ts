import { contentAt, tags } from './der.ts'

// What a file with a private key in it looks like from outside. Made for refusing: it errs on the side of "yes".

// PEM of any kind of key, and the same in base64, as kubeconfigs and Secrets hold it.
const armour =
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY|LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFURS|BFQyBQUklWQVRF|BFTkNSWVBURUQgUFJJVkFURS)/

/**
 * Returns whether the bytes contain a private key, in the clear or encrypted: PEM, PEM in base64, DER, or a keystore (PKCS#12,
 * JKS). Certificates, requests, revocation lists and PKCS#7 hold none.
 */
export function holdsPrivateKey(bytes: Uint8Array): boolean {
  if (bytes[0] === tags.sequence) return isKeyInDer(bytes)
  if (Buffer.from(bytes.subarray(0, 4)).toString('hex') === 'feedfeed') return true
  return armour.test(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1'))
}

// A key in the clear and a PKCS#12 store begin with a version; an encrypted key with the algorithm that opens it, where a
// certificate has its tbsCertificate and a request its certificationRequestInfo.
function isKeyInDer(bytes: Uint8Array): boolean {
  const outer = contentAt(bytes, 0)
  if (bytes[outer] === tags.integer) return true
  return bytes[outer] === tags.sequence && bytes[contentAt(bytes, outer)] === tags.oid
}
