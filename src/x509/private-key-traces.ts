import { contentAt, tags } from './der.ts'

// Detects files that contain a private key. It is used to reject such files, so in doubt it returns true.

// PEM of any kind of key, and the same in base64, as in kubeconfigs and Secrets.
const armour =
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY|LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFURS|BFQyBQUklWQVRF|BFTkNSWVBURUQgUFJJVkFURS)/

/**
 * Returns whether the bytes contain a private key, encrypted or not: PEM, PEM in base64, DER, or a keystore (PKCS#12, JKS). False
 * for certificates, requests, revocation lists and PKCS#7.
 */
export function holdsPrivateKey(bytes: Uint8Array): boolean {
  if (bytes[0] === tags.sequence) return isKeyInDer(bytes)
  if (Buffer.from(bytes.subarray(0, 4)).toString('hex') === 'feedfeed') return true
  return armour.test(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1'))
}

// An unencrypted key and a PKCS#12 keystore begin with a version. An encrypted key begins with its encryption algorithm, a
// certificate with the tbsCertificate, and a request with the certificationRequestInfo.
function isKeyInDer(bytes: Uint8Array): boolean {
  const outer = contentAt(bytes, 0)
  if (bytes[outer] === tags.integer) return true
  return bytes[outer] === tags.sequence && bytes[contentAt(bytes, outer)] === tags.oid
}
