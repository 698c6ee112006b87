import { KcertError } from '../errors/kcert-error.ts'
import { derFromBer } from './ber.ts'
import { constructedTag, contentAt, contextTag, DerReader, derLimits, tags } from './der.ts'
import {
  decryptCbc,
  decryptPbes2,
  derivePkcs12,
  type EncryptionScheme,
  KdfBudget,
  type RunKdfBudget,
  readEncryptionScheme,
  unsupported,
} from './pbe.ts'
import { isMacOf, type Password, passwordsOf, readExplicitBytes, readPfx } from './pfx.ts'
import { readString } from './strings.ts'

// PKCS#12 (RFC 7292). node-forge's reader rejects EC keys and follows any iteration count in the file. Therefore the structure is
// read here, and node:crypto reads the keys. forge is used only for RC2, which OpenSSL 3 has dropped, but Windows and old OpenSSL
// still encrypt certificates with it.

export interface Pkcs12Certificate extends BagAttributes {
  readonly der: Uint8Array
}

export interface Pkcs12Key extends BagAttributes {
  /** PKCS#8, for `readPrivateKey`. */
  readonly der: Uint8Array
  /** True when the file cannot be read without a password, which is not empty. */
  readonly encrypted: boolean
}

export interface Pkcs12Contents {
  readonly certificates: readonly Pkcs12Certificate[]
  readonly keys: readonly Pkcs12Key[]
}

/**
 * Returns the content of a PKCS#12 keystore (DER or BER). Without a password, keystores with no password or an empty one open.
 * Throws KCERT_KEY_ENCRYPTED when a password is needed, KCERT_PASSWORD_WRONG when the MAC does not match, KCERT_KEY_UNSUPPORTED
 * for obsolete ciphers, and KCERT_X509_MALFORMED for damaged input.
 */
export async function readPkcs12(
  bytes: Uint8Array,
  password?: string,
  run?: RunKdfBudget,
): Promise<Pkcs12Contents> {
  const pfx = readPfx(bytes)
  const budget = new KdfBudget(run)
  const secret = passwordsOf(password).find((candidate) => isMacOf(pfx, candidate, budget))
  if (secret === undefined) throw notOpened(password)
  return readAuthenticatedSafe(pfx.content, secret, password, pfx.mac !== undefined, budget)
}

/** True when the bytes look like a PFX: a SEQUENCE that begins with version 3 and a ContentInfo. */
export function looksLikePkcs12(bytes: Uint8Array): boolean {
  if (bytes[0] !== tags.sequence || bytes.length < 8) return false
  const at = contentAt(bytes, 0)
  return (
    bytes[at] === tags.integer &&
    bytes[at + 1] === 1 &&
    bytes[at + 2] === 3 &&
    bytes[at + 3] === tags.sequence
  )
}

function notOpened(password: string | undefined): KcertError {
  if (password === undefined) {
    return new KcertError('KCERT_KEY_ENCRYPTED', 'the PKCS#12 keystore is encrypted', {
      why: 'give its password with --password-file',
    })
  }
  return new KcertError('KCERT_PASSWORD_WRONG', 'the password does not open the PKCS#12 keystore')
}

/** Decrypts the AuthenticatedSafe. `given`: the caller's password; `isVerified`: the MAC matches it. */
async function readAuthenticatedSafe(
  authenticatedSafe: Uint8Array,
  password: Password,
  given: string | undefined,
  isVerified: boolean,
  budget: KdfBudget,
): Promise<Pkcs12Contents> {
  const certificates: Pkcs12Certificate[] = []
  const keys: Pkcs12Key[] = []
  const hasPassword = password.text !== ''
  let bags = 0

  const decrypt = async (scheme: EncryptionScheme, ciphertext: Uint8Array): Promise<Uint8Array> => {
    const plain =
      scheme.kind === 'PBES2'
        ? decryptPbes2(scheme, ciphertext, password.text, budget)
        : await decryptPkcs12(scheme, ciphertext, password.bmp, budget)
    // Without a MAC, random bytes indicate a wrong password.
    if (plain === undefined || !(isVerified || isBer(plain))) throw notOpened(given)
    return plain
  }

  const readSafeContents = async (
    content: Uint8Array,
    depth: number,
    isEncrypted: boolean,
  ): Promise<void> => {
    const reader = berReader(content, 'PKCS#12 SafeContents')
    if (depth > derLimits.depth) reader.fail('', `nested deeper than ${derLimits.depth}`)
    reader.enter(tags.sequence, '')
    while (!reader.atEnd) {
      const outer = reader.enter(tags.sequence, 'SafeBag')
      if (++bags > maxBags) reader.fail('SafeBag', `more than ${maxBags}`)
      const type = reader.oidName('bagId')
      reader.read(constructedTag(0), 'bagValue')
      const bag = reader.lastContent
      const attributes = readAttributes(reader)
      // kcert does not use revocation lists and secrets.
      if (type === 'keyBag') keys.push({ der: bag, encrypted: isEncrypted, ...attributes })
      else if (type === 'pkcs8ShroudedKeyBag') {
        const { scheme, ciphertext } = readKeyBag(bag)
        keys.push({ der: await decrypt(scheme, ciphertext), encrypted: hasPassword, ...attributes })
      } else if (type === 'certBag') {
        const der = readCertBag(bag)
        if (der !== undefined) certificates.push({ der, ...attributes })
      } else if (type === 'safeContentsBag') await readSafeContents(bag, depth + 1, isEncrypted)
      reader.leave(outer)
    }
  }

  const reader = berReader(authenticatedSafe, 'PKCS#12 AuthenticatedSafe')
  reader.enter(tags.sequence, '')
  while (!reader.atEnd) {
    const outer = reader.enter(tags.sequence, 'ContentInfo')
    const type = reader.oidName('contentType')
    if (type === 'data') await readSafeContents(readExplicitBytes(reader, 'content'), 0, false)
    else if (type === 'encryptedData') {
      const { scheme, ciphertext } = readEncryptedData(reader)
      await readSafeContents(await decrypt(scheme, ciphertext), 0, hasPassword)
    } else throw unsupported(`PKCS#12 content of type ${type}`)
    reader.leave(outer)
  }
  return { certificates, keys }
}

interface Encrypted {
  readonly scheme: EncryptionScheme
  readonly ciphertext: Uint8Array
}

/** EncryptedData (RFC 2315 section 13). */
function readEncryptedData(reader: DerReader): Encrypted {
  return reader.within(constructedTag(0), 'content', () =>
    reader.within(tags.sequence, 'EncryptedData', () => {
      reader.integer('version')
      return reader.within(tags.sequence, 'encryptedContentInfo', () => {
        reader.oid('contentType')
        return { scheme: readEncryptionScheme(reader), ciphertext: readImplicitBytes(reader) }
      })
    }),
  )
}

function readKeyBag(bag: Uint8Array): Encrypted {
  const reader = new DerReader(bag, 'PKCS#12 key bag', derLimits.containerBytes)
  reader.enter(tags.sequence, '')
  const scheme = readEncryptionScheme(reader)
  reader.read(tags.octetString, 'encryptedData')
  return { scheme, ciphertext: reader.lastContent }
}

/** Returns a reader for content that may be BER. */
function berReader(content: Uint8Array, document: string): DerReader {
  return new DerReader(derFromBer(content, document), document, derLimits.containerBytes)
}

function isBer(bytes: Uint8Array): boolean {
  try {
    return derFromBer(bytes, '')[0] === tags.sequence
  } catch {
    return false
  }
}

/** [0] IMPLICIT OCTET STRING, which BER may split into pieces. */
function readImplicitBytes(reader: DerReader): Uint8Array {
  if (reader.readOptional(contextTag(0), 'encryptedContent')) return reader.lastContent
  const pieces: Uint8Array[] = []
  reader.each(constructedTag(0), 'encryptedContent', () => {
    reader.read(tags.octetString, 'encryptedContent')
    pieces.push(reader.lastContent)
  })
  return Buffer.concat(pieces)
}

/** CertBag (RFC 7292 section 4.2.3); undefined for SDSI certificates. */
function readCertBag(bag: Uint8Array): Uint8Array | undefined {
  const reader = new DerReader(bag, 'PKCS#12 certificate bag', derLimits.containerBytes)
  reader.enter(tags.sequence, '')
  if (reader.oidName('certId') !== 'x509Certificate') return undefined
  return readExplicitBytes(reader, 'certValue')
}

// Trust stores of browsers contain some hundreds.
const maxBags = 50_000

interface BagAttributes {
  readonly friendlyName?: string
  /** Hexadecimal. A certificate and its key have the same one. */
  readonly localKeyId?: string
}

function readAttributes(reader: DerReader): BagAttributes {
  let attributes: BagAttributes = {}
  if (!reader.peek(tags.set)) return attributes
  reader.each(tags.set, 'bagAttributes', () => {
    reader.within(tags.sequence, 'attribute', () => {
      const type = reader.oidName('attrId')
      const tag = reader.within(tags.set, 'attrValues', () =>
        reader.atEnd ? tags.null : reader.next('attrValue'),
      )
      const { bytes, start, stop } = reader
      if (type === 'friendlyName' && tag === tags.bmpString)
        attributes = { ...attributes, friendlyName: readString(bytes, tag, start, stop) ?? '' }
      if (type === 'localKeyID' && tag === tags.octetString)
        attributes = { ...attributes, localKeyId: bytes.toString('hex', start, stop) }
    })
  })
  return attributes
}

/** Schemes of RFC 7292 appendix C, with the key sizes in bytes. */
const pkcs12KeyLengths: Readonly<Record<string, number>> = {
  'pbeWithSHAAnd3-KeyTripleDES-CBC': 24,
  'pbeWithSHAAnd2-KeyTripleDES-CBC': 16,
  'pbeWithSHAAnd128BitRC2-CBC': 16,
  'pbeWithSHAAnd40BitRC2-CBC': 5,
}

async function decryptPkcs12(
  { name, salt, iterations }: EncryptionScheme & { kind: 'PBES1' },
  ciphertext: Uint8Array,
  password: Uint8Array,
  budget: KdfBudget,
): Promise<Uint8Array | undefined> {
  const keyLength = pkcs12KeyLengths[name]
  if (keyLength === undefined) throw unsupported(`encryption ${name}`)
  const key = derivePkcs12('sha1', password, salt, 1, iterations, keyLength, budget)
  const iv = derivePkcs12('sha1', password, salt, 2, iterations, 8, budget)
  if (name.includes('RC2')) return decryptRc2(key, iv, ciphertext)
  // Two keys: the first one is also the third.
  return decryptCbc(
    'des-ede3-cbc',
    keyLength === 16 ? Buffer.concat([key, key.subarray(0, 8)]) : key,
    iv,
    ciphertext,
  )
}

// forge decrypts some megabytes per second. RC2 encrypts only certificates and small keys.
const maxRc2Bytes = 1024 * 1024

async function decryptRc2(key: Buffer, iv: Buffer, ciphertext: Uint8Array): Promise<Uint8Array | undefined> {
  if (ciphertext.length > maxRc2Bytes) throw unsupported(`RC2 over ${ciphertext.length} bytes`)
  if (ciphertext.length === 0 || ciphertext.length % 8 !== 0) return undefined
  const { default: forge } = await import('node-forge')
  const cipher = forge.rc2.createDecryptionCipher(key.toString('latin1'), key.length * 8)
  cipher.start(iv.toString('latin1'))
  cipher.update(forge.util.createBuffer(Buffer.from(ciphertext).toString('latin1')))
  if (!cipher.finish()) return undefined
  return Buffer.from(cipher.output.getBytes(), 'latin1')
}
