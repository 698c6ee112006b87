import { createHmac } from 'node:crypto'
import { derFromBer } from './ber.ts'
import { constructedTag, DerReader, derLimits, tags } from './der.ts'
import {
  derivePkcs12,
  type HashName,
  hashLengths,
  isHashName,
  type KdfBudget,
  readIterations,
  readKdf,
  readPrf,
  unsupported,
} from './pbe.ts'

// The outer structure of a PKCS#12 keystore: its passwords, and the MAC that verifies them.

/** A password in the two encodings that PKCS#12 uses. */
export interface Password {
  readonly text: string
  /** UTF-16, big-endian, with a terminating NUL (RFC 7292 appendix B.1). */
  readonly bmp: Uint8Array
}

/** Some programs write an empty password as a lone NUL, others as nothing. OpenSSL tries both, and so does kcert. */
export function passwordsOf(password = ''): Password[] {
  const encoded = { text: password, bmp: Buffer.from(`${password}\0`, 'utf16le').swap16() }
  return password === '' ? [encoded, { text: '', bmp: new Uint8Array(0) }] : [encoded]
}

/** RFC 7292 section 4. */
export interface Pfx {
  /** The AuthenticatedSafe, which the MAC covers. */
  readonly content: Uint8Array
  readonly mac: Mac | undefined
}

interface Mac {
  readonly hash: HashName
  readonly digest: Uint8Array
  readonly keyOf: (password: Password, budget: KdfBudget) => Uint8Array
}

/** Returns the outer structure of a keystore. */
export function readPfx(bytes: Uint8Array): Pfx {
  const reader = new DerReader(derFromBer(bytes, 'PKCS#12'), 'PKCS#12', derLimits.containerBytes)
  reader.enter(tags.sequence, 'PFX')
  const version = reader.int64('version')
  if (version !== 3) reader.fail('version', `unknown version ${version}`, reader.start)
  const content = reader.within(tags.sequence, 'authSafe', () => {
    const type = reader.oidName('authSafe.contentType')
    if (type === 'signedData')
      throw unsupported('a PKCS#12 keystore that is signed instead of protected by a password')
    if (type !== 'data') reader.fail('authSafe.contentType', type, reader.start)
    return readExplicitBytes(reader, 'authSafe.content')
  })
  return { content, mac: reader.atEnd ? undefined : readMac(reader) }
}

/** Returns the content of an EXPLICIT [0] OCTET STRING. */
export function readExplicitBytes(reader: DerReader, field: string): Uint8Array {
  return reader.within(constructedTag(0), field, () => {
    reader.read(tags.octetString, field)
    return reader.lastContent
  })
}

function readMac(reader: DerReader): Mac {
  reader.path = 'macData.'
  reader.enter(tags.sequence, '')
  const { name, pbmac, digest } = reader.within(tags.sequence, 'mac', () => {
    const algorithm = reader.within(tags.sequence, 'digestAlgorithm', () => {
      const name = reader.oidName('digestAlgorithm')
      if (name !== 'PBMAC1') return { name, pbmac: undefined }
      const readParameters = () => ({ kdf: readKdf(reader), hash: readPrf(reader) })
      return { name, pbmac: reader.within(tags.sequence, 'PBMAC1-params', readParameters) }
    })
    reader.read(tags.octetString, 'digest')
    return { ...algorithm, digest: reader.lastContent }
  })
  // RFC 9579.
  if (pbmac !== undefined) {
    const { kdf, hash } = pbmac
    const length = kdf.keyLength ?? hashLengths[hash]
    return { hash, digest, keyOf: ({ text }, budget) => kdf.derive(text, length, budget) }
  }
  if (!isHashName(name)) throw unsupported(`PKCS#12 MAC with ${name}`)
  reader.read(tags.octetString, 'macSalt')
  const salt = reader.lastContent
  const iterations = reader.atEnd ? 1 : readIterations(reader)
  const keyOf: Mac['keyOf'] = ({ bmp }, budget) =>
    derivePkcs12(name, bmp, salt, 3, iterations, hashLengths[name], budget)
  return { hash: name, digest, keyOf }
}

/** True when the password matches the MAC, or when there is no MAC and only decrypting the bags can verify it. */
export function isMacOf({ content, mac }: Pfx, password: Password, budget: KdfBudget): boolean {
  if (mac === undefined) return true
  return createHmac(mac.hash, mac.keyOf(password, budget)).update(content).digest().equals(mac.digest)
}
