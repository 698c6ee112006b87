import { createDecipheriv, createHmac } from 'node:crypto'

// Reads Certificate and CertificateRequest from the server's messages. node:tls returns a reordered chain, and omits certificates
// that do not fit, such as a bridge certificate next to a root with the same name, or an extra intermediate. It does not return
// the CAs in a CertificateRequest. The served chain must be shown unchanged.

const contentType = { handshake: 22, applicationData: 23 }
const messageType = {
  serverHello: 2,
  certificate: 11,
  certificateRequest: 13,
  serverHelloDone: 14,
  finished: 20,
}
const extensionType = { supportedVersions: 43, certificateAuthorities: 47 }
const tls13 = 0x0304
const tagBytes = 16
// RFC 8446, 4.1.3: a ServerHello with this random asks the client to begin again; the real one follows.
const helloRetryRandom = 'cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c'

interface Suite {
  readonly name: string
  readonly cipher: 'aes-128-gcm' | 'aes-256-gcm' | 'chacha20-poly1305'
  readonly hash: 'sha256' | 'sha384'
  readonly keyBytes: number
}

/** RFC 8446, B.4 */
export const tls13Suites: ReadonlyMap<number, Suite> = new Map([
  [0x1301, { name: 'TLS_AES_128_GCM_SHA256', cipher: 'aes-128-gcm', hash: 'sha256', keyBytes: 16 }],
  [0x1302, { name: 'TLS_AES_256_GCM_SHA384', cipher: 'aes-256-gcm', hash: 'sha384', keyBytes: 32 }],
  [
    0x1303,
    { name: 'TLS_CHACHA20_POLY1305_SHA256', cipher: 'chacha20-poly1305', hash: 'sha256', keyBytes: 32 },
  ],
])

/** The data ends before the field does, or the secret does not decrypt it: a truncated connection, or not TLS. */
class Unreadable extends Error {}

/** The server's first flight, as far as it describes the server and the client certificate. */
export interface ServerFlight {
  /** By its number in RFC 8446, B.4 or in TLS 1.2. */
  readonly suite: number
  readonly isTls13: boolean
  /** DER, in the order that the server sent. */
  readonly certificates: readonly Buffer[]
  /** Names (DER) of the CAs whose client certificates the server accepts, in its order; undefined when it requests none. */
  readonly clientAuthorities?: readonly Buffer[]
}

/**
 * Returns what the server sent, or undefined when the bytes do not hold a whole Certificate message of TLS 1.2 or 1.3.
 * @param received what the server sent, from the first byte
 * @param handshakeSecret of TLS 1.3, SERVER_HANDSHAKE_TRAFFIC_SECRET: the messages are encrypted there
 */
export function serverFlight(received: Buffer, handshakeSecret?: Buffer): ServerFlight | undefined {
  const flight: Partial<Writable<ServerFlight>> = {}
  try {
    readFlight(received, handshakeSecret, flight)
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
  }
  const { suite, isTls13, certificates } = flight
  return suite === undefined || isTls13 === undefined || certificates === undefined
    ? undefined
    : { ...flight, suite, isTls13, certificates }
}

type Writable<Of> = { -readonly [Key in keyof Of]: Of[Key] }

function readFlight(
  received: Buffer,
  handshakeSecret: Buffer | undefined,
  flight: Partial<Writable<ServerFlight>>,
): void {
  let open: Opener | undefined
  let fragments: Buffer[] = []
  let size = 0
  // The minimum size of the next message. Received data is joined once, however small its fragments are.
  let needed = 4
  for (const record of records(received)) {
    const fragment = plainFragment(record, open)
    if (fragment === undefined) continue
    fragments.push(fragment)
    size += fragment.length
    if (size < needed) continue
    let messages: Buffer = Buffer.concat(fragments)
    for (let message = firstMessage(messages); message; message = firstMessage(messages)) {
      const { type, body } = message
      messages = messages.subarray(4 + body.length)
      if (type === messageType.serverHello) {
        Object.assign(flight, readServerHello(body))
        if (flight.isTls13 && flight.suite !== undefined)
          open = opener(tls13Suites.get(flight.suite), handshakeSecret)
        continue
      }
      if (flight.isTls13 === undefined) continue
      if (type === messageType.certificate) flight.certificates = readCertificates(body, flight.isTls13)
      if (type === messageType.certificateRequest)
        flight.clientAuthorities = readAuthorities(body, flight.isTls13)
      // The following messages are encrypted with other keys.
      if (type === messageType.serverHelloDone || type === messageType.finished) return
    }
    fragments = [messages]
    size = messages.length
    needed = size < 4 ? 4 : 4 + messages.readUIntBE(1, 3)
  }
}

interface TlsRecord {
  readonly header: Buffer
  readonly type: number
  readonly fragment: Buffer
}

function* records(received: Buffer): Generator<TlsRecord> {
  const reader = new Reader(received)
  while (reader.left >= 5) {
    const header = reader.bytes(5)
    yield { header, type: header.readUInt8(), fragment: reader.bytes(header.readUInt16BE(3)) }
  }
}

// Returns unencrypted handshake bytes; undefined for alerts and ChangeCipherSpec.
function plainFragment(record: TlsRecord, open: Opener | undefined): Buffer | undefined {
  if (record.type === contentType.handshake) return record.fragment
  if (record.type !== contentType.applicationData || !open) return undefined
  const inner = open(record)
  // RFC 8446, 5.2: content, its type, then zeros
  let end = inner.length - 1
  while (end > 0 && inner[end] === 0) end--
  return inner[end] === contentType.handshake ? inner.subarray(0, end) : undefined
}

function firstMessage(messages: Buffer): { type: number; body: Buffer } | undefined {
  if (messages.length < 4) return undefined
  const length = messages.readUIntBE(1, 3)
  return messages.length < 4 + length
    ? undefined
    : { type: messages.readUInt8(), body: messages.subarray(4, 4 + length) }
}

function readServerHello(body: Buffer): { suite: number; isTls13: boolean } | undefined {
  const reader = new Reader(body)
  reader.bytes(2)
  if (reader.bytes(32).toString('hex') === helloRetryRandom) return undefined
  reader.vector(1)
  const suite = reader.number(2)
  reader.bytes(1)
  if (reader.left === 0) return { suite, isTls13: false }
  const chosen = extensionIn(reader, extensionType.supportedVersions)
  return { suite, isTls13: chosen?.length === 2 && chosen.readUInt16BE(0) === tls13 }
}

function readCertificates(body: Buffer, isTls13: boolean): Buffer[] {
  const message = new Reader(body)
  if (isTls13) message.vector(1)
  const list = new Reader(message.vector(3))
  const certificates: Buffer[] = []
  while (list.left > 0) {
    certificates.push(list.vector(3))
    if (isTls13) list.vector(2)
  }
  return certificates
}

// RFC 5246, 7.4.4 and RFC 8446, 4.3.2. Without the extension of 1.3 a server accepts a certificate of any CA.
function readAuthorities(body: Buffer, isTls13: boolean): Buffer[] {
  const message = new Reader(body)
  message.vector(1)
  if (!isTls13) {
    message.vector(2)
    return readNames(message)
  }
  const names = extensionIn(message, extensionType.certificateAuthorities)
  return names === undefined ? [] : readNames(new Reader(names))
}

/** Returns the value of an extension of a message that ends with its extensions. */
function extensionIn(message: Reader, wanted: number): Buffer | undefined {
  const extensions = new Reader(message.vector(2))
  while (extensions.left > 0) {
    const [type, value] = [extensions.number(2), extensions.vector(2)]
    if (type === wanted) return value
  }
  return undefined
}

function readNames(message: Reader): Buffer[] {
  const list = new Reader(message.vector(2))
  const names: Buffer[] = []
  while (list.left > 0) names.push(list.vector(2))
  return names
}

type Opener = (record: TlsRecord) => Buffer

// RFC 8446, 5.2 and 5.3
function opener(suite: Suite | undefined, secret: Buffer | undefined): Opener | undefined {
  if (!suite || !secret) return undefined
  const key = expandLabel(suite.hash, secret, 'key', suite.keyBytes)
  const iv = expandLabel(suite.hash, secret, 'iv', 12)
  let sequence = 0
  return ({ header, fragment }) => {
    if (fragment.length <= tagBytes) throw new Unreadable()
    const nonce = Buffer.from(iv)
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ sequence++) >>> 0, 8)
    // chacha20-poly1305 takes the same options. The types include only the overload for GCM.
    const decipher = createDecipheriv(suite.cipher as 'aes-256-gcm', key, nonce, { authTagLength: tagBytes })
    decipher.setAAD(header)
    decipher.setAuthTag(fragment.subarray(-tagBytes))
    try {
      return Buffer.concat([decipher.update(fragment.subarray(0, -tagBytes)), decipher.final()])
    } catch {
      throw new Unreadable()
    }
  }
}

// RFC 8446, 7.1. One block of HKDF-Expand is enough, because no key is longer than the hash.
function expandLabel(hash: Suite['hash'], secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`)
  const info = Buffer.concat([Buffer.from([0, length, name.length]), name, Buffer.from([0, 1])])
  return createHmac(hash, secret).update(info).digest().subarray(0, length)
}

class Reader {
  readonly #bytes: Buffer
  #offset = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get left(): number {
    return this.#bytes.length - this.#offset
  }

  bytes(length: number): Buffer {
    if (length > this.left) throw new Unreadable()
    this.#offset += length
    return this.#bytes.subarray(this.#offset - length, this.#offset)
  }

  number(length: number): number {
    return this.bytes(length).readUIntBE(0, length)
  }

  /** Reads a field that is preceded by its length. */
  vector(lengthBytes: number): Buffer {
    return this.bytes(this.number(lengthBytes))
  }
}
