import { utf8Of } from '../x509/pem.ts'

/** The probable format of the bytes. The readers check whether they are well-formed. */
export type Shape = 'empty' | 'pem' | 'der' | 'document' | 'base64' | 'other'

const armour = '-----BEGIN '
const sequenceTag = 0x30
/** The number of bytes that are read to distinguish text from other content. */
const headLength = 4096

/**
 * Returns the probable format of the bytes. PEM takes precedence over YAML only if "-----BEGIN" starts a line: in a ConfigMap it
 * is indented or follows a key.
 */
export function shapeOf(bytes: Uint8Array): Shape {
  // Most files of a large folder are PEM. This check needs no second view of the bytes.
  if (beginsWithArmour(bytes)) return 'pem'
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const first = firstByte(buffer)
  if (first === -1) return 'empty'
  if (buffer[0] === sequenceTag && isDerLength(buffer)) return 'der'
  const text = utf8Of(buffer)
  if (text !== buffer) return shapeOf(text) === 'document' ? 'document' : 'pem'
  const hasArmour = buffer.includes(armour, 0, 'latin1')
  if (hasArmour && (startsLine(buffer) || !isDocument(buffer, first))) return 'pem'
  if (isDocument(buffer, first)) return 'document'
  if (isBase64(buffer)) return 'base64'
  return 'other'
}

function beginsWithArmour(bytes: Uint8Array): boolean {
  for (let i = 0; i < armour.length; i++) if (bytes[i] !== armour.charCodeAt(i)) return false
  return true
}

function firstByte(buffer: Buffer): number {
  for (let at = buffer[0] === 0xef && buffer[1] === 0xbb ? 3 : 0; at < buffer.length; at++) {
    const byte = buffer[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
  }
  return -1
}

/** The length bytes of the outer SEQUENCE match the size, are "indefinite" (BER), or exceed the available bytes. */
function isDerLength(buffer: Buffer): boolean {
  const length = buffer[1]
  if (length === undefined) return false
  if (length < 0x80)
    return (
      length + 2 === buffer.length ||
      (length > 0 && buffer.length > length + 2 && buffer[length + 2] === sequenceTag)
    )
  if (length === 0x80) return true
  return length <= 0x84 && buffer.length > 2
}

function startsLine(buffer: Buffer): boolean {
  for (
    let at = buffer.indexOf(armour, 0, 'latin1');
    at !== -1;
    at = buffer.indexOf(armour, at + 1, 'latin1')
  ) {
    if (at === 0 || buffer[at - 1] === 0x0a) return true
  }
  return false
}

const documentPattern = /^(?:---(?:\s|$)|[A-Za-z"'][\w"'./-]*\s*:(?:\s|$))/m

/** JSON, or a line that begins with a key, without control characters. */
function isDocument(buffer: Buffer, first: number): boolean {
  const head = buffer.toString('latin1', first, first + headLength)
  if (/[\0-\x08\x0e-\x1f]/.test(head)) return false
  return head[0] === '{' || head[0] === '[' || documentPattern.test(head)
}

/** Only base64 and white space, and enough of it for a key or a certificate. */
function isBase64(buffer: Buffer): boolean {
  const head = buffer.toString('latin1', 0, headLength)
  return head.length > 40 && /^[A-Za-z0-9+/=\s]+$/.test(head)
}

// A folder contains many documents that kcert does not read. The ones that it reads contain these words.
const words = [
  'clusters',
  'users',
  'contexts',
  'Secret',
  'ConfigMap',
  'CertificateSigningRequest',
  'PodCertificateRequest',
  'WebhookConfiguration',
  'APIService',
  'CustomResourceDefinition',
  'ClusterTrustBundle',
  'List',
]

/** False for a document that is certainly neither a kubeconfig nor a manifest that kcert reads. */
export function mayBeRelevant(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return words.some((word) => buffer.includes(word, 0, 'latin1'))
}
