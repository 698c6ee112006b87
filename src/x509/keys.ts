import { createPrivateKey, createPublicKey, type KeyObject, type PrivateKeyInput } from 'node:crypto'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { DerReader, tags } from './der.ts'
import { bitString, nullElement, oid, sequence } from './der-writer.ts'
import { oidOf } from './oids.ts'
import {
  decryptPbes2,
  type EncryptionScheme,
  KdfBudget,
  type RunKdfBudget,
  readEncryptionScheme,
  unsupported,
} from './pbe.ts'
import { looksLikePem, type PemBlock, readPem, writePem } from './pem.ts'
import { ecKey, pkcs8Key, rsaKey } from './private-key.ts'
import { type PublicKeyInfo, readSubjectPublicKeyInfo } from './public-key.ts'
import { quoted } from './strings.ts'

export type PrivateKeyFormat =
  | 'PKCS#1'
  | 'SEC1'
  | 'PKCS#8'
  | 'encrypted PKCS#1'
  | 'encrypted SEC1'
  | 'encrypted PKCS#8'

export interface PrivateKeyInfo {
  readonly format: PrivateKeyFormat
  readonly encrypted: boolean
  /** Computed from the private key; absent while it is encrypted. */
  readonly publicKey?: PublicKeyInfo
  readonly keyObject?: KeyObject
}

const privateLabels: Readonly<Record<string, PrivateKeyFormat | 'unsupported'>> = {
  'RSA PRIVATE KEY': 'PKCS#1',
  'EC PRIVATE KEY': 'SEC1',
  'PRIVATE KEY': 'PKCS#8',
  'ENCRYPTED PRIVATE KEY': 'encrypted PKCS#8',
  'DSA PRIVATE KEY': 'unsupported',
  'OPENSSH PRIVATE KEY': 'unsupported',
}

const publicLabels: ReadonlySet<string> = new Set(['PUBLIC KEY', 'RSA PUBLIC KEY'])

/** True for PEM labels of private keys. EC PARAMETERS, which OpenSSL writes before a key, is not one. */
export function isPrivateKeyLabel(label: string): boolean {
  return Object.hasOwn(privateLabels, label)
}

export function isPublicKeyLabel(label: string): boolean {
  return publicLabels.has(label)
}

/**
 * Returns the first private key of a file: DER, or PEM. Ignores other blocks before the key, as Kubernetes does. Throws as
 * `readPrivateKey` does, and KCERT_X509_MALFORMED when there is no key. `file` is its path, for advice.
 */
export function readPrivateKeyFile(bytes: Uint8Array, password?: string, file?: string): PrivateKeyInfo {
  if (!looksLikePem(bytes)) {
    // Every key in DER is a SEQUENCE. Text is a kubeconfig, or not a key.
    if (bytes[0] !== 0x30) throw new KcertError('KCERT_X509_MALFORMED', 'it is neither PEM nor DER')
    return readPrivateKey(bytes, password)
  }
  const { blocks, defects } = readPem(bytes)
  const block = blocks.find(({ label }) => isPrivateKeyLabel(label))
  if (block !== undefined) return readPrivateKey(block, password, undefined, file)
  const defect = defects.find(({ label }) => isPrivateKeyLabel(label))
  throw new KcertError(
    'KCERT_X509_MALFORMED',
    defect === undefined
      ? 'no private key found'
      : `${defect.label} at line ${defect.line}: ${defect.reason}`,
  )
}

/**
 * Returns a private key: RSA, ECDSA, Ed25519 and the other types that node:crypto supports. The formats are PKCS#1, SEC1, PKCS#8,
 * encrypted PKCS#8, and OpenSSL's encryption before PKCS#8 (Proc-Type). Without a password, an encrypted key is only reported as
 * encrypted. Throws KCERT_X509_MALFORMED, KCERT_KEY_UNSUPPORTED, or KCERT_PASSWORD_WRONG when the password does not open it.
 */
export function readPrivateKey(
  input: PemBlock | Uint8Array,
  password?: string,
  run?: RunKdfBudget,
  file?: string,
): PrivateKeyInfo {
  if (input instanceof Uint8Array) return readByFormat(formatOfDer(input), input, password, run)
  const format = privateLabels[input.label]
  if (format === undefined)
    throw new KcertError('KCERT_X509_MALFORMED', `PEM block ${input.label} is not a private key`)
  if (format === 'unsupported') {
    throw new KcertError('KCERT_KEY_UNSUPPORTED', `PEM block ${input.label} is not supported`, {
      ...(input.label.startsWith('OPENSSH') && { why: 'convert a copy of it to PKCS#8' }),
      ...(file !== undefined && {
        next: input.label.startsWith('OPENSSH')
          ? commandLine`ssh-keygen -p -m PKCS8 -f ${file}`
          : commandLine`kcert key generate --out ${`${file}.new`}`,
      }),
    })
  }
  return isLegacyEncrypted(input)
    ? readLegacyEncrypted(input, format, password)
    : readByFormat(format, input.der, password, run)
}

/** True when a PEM or DER file contains an encrypted private key, with any cipher. */
export function holdsEncryptedKey(bytes: Uint8Array): boolean {
  if (!looksLikePem(bytes)) return isEncryptedPkcs8(bytes)
  return readPem(bytes).blocks.some(
    (block) =>
      isPrivateKeyLabel(block.label) &&
      (privateLabels[block.label] === 'encrypted PKCS#8' || isLegacyEncrypted(block)),
  )
}

/** True for the structure EncryptedPrivateKeyInfo (RFC 5958 section 3). Nothing else is checked. */
function isEncryptedPkcs8(der: Uint8Array): boolean {
  try {
    const reader = new DerReader(der, 'encrypted private key')
    reader.within(tags.sequence, '', () => {
      reader.within(tags.sequence, 'encryptionAlgorithm', () => {
        reader.oid('encryptionAlgorithm')
        if (!reader.atEnd) reader.next('parameters')
      })
      reader.read(tags.octetString, 'encryptedData')
    })
    reader.finish('after the key')
    return true
  } catch {
    return false
  }
}

function isLegacyEncrypted({ headers }: PemBlock): boolean {
  return headers.get('Proc-Type')?.includes('ENCRYPTED') === true
}

function readByFormat(
  format: PrivateKeyFormat,
  der: Uint8Array,
  password: string | undefined,
  run?: RunKdfBudget,
): PrivateKeyInfo {
  switch (format) {
    case 'PKCS#1':
      return keyInfo(format, rsaKey(new DerReader(der, 'RSA private key')))
    case 'SEC1':
      return keyInfo(format, ecKey(new DerReader(der, 'EC private key'), undefined))
    case 'PKCS#8':
      return keyInfo(format, pkcs8Key(new DerReader(der, 'private key')))
    default:
      return readEncryptedPkcs8(der, password, run)
  }
}

function keyInfo(format: PrivateKeyFormat, keyObject: KeyObject): PrivateKeyInfo {
  const encrypted = format.startsWith('encrypted')
  const publicKey = readPublicKey(createPublicKey(keyObject).export({ format: 'der', type: 'spki' }))
  return { format, encrypted, publicKey, keyObject }
}

/** Distinguishes the formats by the first two members of the outer SEQUENCE. */
function formatOfDer(der: Uint8Array): PrivateKeyFormat {
  const reader = new DerReader(der, 'private key')
  reader.enter(tags.sequence, '')
  if (reader.next('version') === tags.sequence) return 'encrypted PKCS#8'
  const second = reader.next('')
  if (second === tags.integer) return 'PKCS#1'
  return second === tags.octetString ? 'SEC1' : 'PKCS#8'
}

/** EncryptedPrivateKeyInfo (RFC 5958 section 3). */
function readEncryptedPkcs8(
  der: Uint8Array,
  password: string | undefined,
  run: RunKdfBudget | undefined,
): PrivateKeyInfo {
  const reader = new DerReader(der, 'encrypted private key')
  const { scheme, ciphertext } = reader.within(tags.sequence, '', () => {
    const scheme = readEncryptionScheme(reader)
    reader.read(tags.octetString, 'encryptedData')
    return { scheme, ciphertext: reader.lastContent }
  })
  reader.finish('after the key')
  const format = 'encrypted PKCS#8'
  if (password === undefined) return { format, encrypted: true }
  return keyInfo(format, decryptPkcs8(scheme, der, ciphertext, password, new KdfBudget(run)))
}

// The schemes before PBES2 that OpenSSL 3 still supports. It has dropped single DES, RC2 and RC4.
const openSslSchemes: ReadonlySet<string> = new Set([
  'pbeWithSHAAnd3-KeyTripleDES-CBC',
  'pbeWithSHAAnd2-KeyTripleDES-CBC',
])

function decryptPkcs8(
  scheme: EncryptionScheme,
  der: Uint8Array,
  ciphertext: Uint8Array,
  password: string,
  budget: KdfBudget,
): KeyObject {
  if (scheme.kind === 'PBES2') {
    const plain = decryptPbes2(scheme, ciphertext, password, budget)
    return plain === undefined ? wrongPassword() : keyOfPlain(plain)
  }
  if (!openSslSchemes.has(scheme.name)) throw unsupported(`encryption ${scheme.name}`)
  budget.spend(scheme.iterations * 0.4, `${scheme.iterations} iterations`)
  return openedKey({ key: Buffer.from(der), format: 'der', type: 'pkcs8', passphrase: password })
}

/** Returns a key that OpenSSL decrypts. */
function openedKey(input: PrivateKeyInput): KeyObject {
  let opened: KeyObject
  try {
    opened = createPrivateKey(input)
  } catch (cause) {
    return wrongPassword(cause)
  }
  return keyOfPlain(opened.export({ format: 'der', type: 'pkcs8' }))
}

// The padding reveals a wrong password 255 times out of 256. Otherwise it decrypts to random bytes, which are not a key.
function keyOfPlain(plain: Uint8Array): KeyObject {
  try {
    return pkcs8Key(new DerReader(plain, 'private key'))
  } catch (cause) {
    if (cause instanceof KcertError && cause.code === 'KCERT_X509_MALFORMED') return wrongPassword(cause)
    throw cause
  }
}

function wrongPassword(cause?: unknown): never {
  throw new KcertError('KCERT_PASSWORD_WRONG', 'the password does not open the private key', { cause })
}

// The ciphers of OpenSSL's old PEM encryption that OpenSSL 3 still supports, with their block sizes in bytes.
const legacyCiphers: Readonly<Record<string, number>> = {
  'AES-128-CBC': 16,
  'AES-192-CBC': 16,
  'AES-256-CBC': 16,
  'DES-EDE3-CBC': 8,
}

/** RFC 1421 headers: Proc-Type: 4,ENCRYPTED and DEK-Info. Key derivation is one round of MD5, so it needs no limit. */
function readLegacyEncrypted(
  block: PemBlock,
  inner: PrivateKeyFormat,
  password: string | undefined,
): PrivateKeyInfo {
  const dekInfo = block.headers.get('DEK-Info') ?? ''
  const [cipher = '', iv = ''] = dekInfo.split(',').map((part) => part.trim())
  const blockLength = legacyCiphers[cipher]
  if (blockLength === undefined) throw unsupported(`encryption ${quoted(dekInfo)}`)
  const isMalformed =
    !/^[0-9a-fA-F]+$/.test(iv) || iv.length !== 2 * blockLength || block.der.length % blockLength !== 0
  if (isMalformed)
    throw new KcertError('KCERT_X509_MALFORMED', `DEK-Info ${quoted(dekInfo)} does not fit the encrypted key`)
  const format = inner === 'PKCS#1' ? 'encrypted PKCS#1' : 'encrypted SEC1'
  if (password === undefined) return { format, encrypted: true }
  const headers = `Proc-Type: 4,ENCRYPTED\nDEK-Info: ${cipher},${iv}\n\n`
  const text = writePem(block.label, block.der).replace('\n', `\n${headers}`)
  return keyInfo(format, openedKey({ key: text, format: 'pem', passphrase: password }))
}

/** Returns a public key: SubjectPublicKeyInfo (PEM label PUBLIC KEY) or RSAPublicKey (RSA PUBLIC KEY). */
export function readPublicKey(input: PemBlock | Uint8Array): PublicKeyInfo {
  const der = input instanceof Uint8Array ? input : input.der
  const outside = new DerReader(der, 'public key')
  outside.enter(tags.sequence, '')
  const spki = outside.peek(tags.integer)
    ? sequence(sequence(oid(oidOf('rsaEncryption')), nullElement), bitString(der))
    : der
  const reader = new DerReader(spki, 'public key')
  const key = readSubjectPublicKeyInfo(reader, 'SubjectPublicKeyInfo')
  reader.finish('after the key')
  return key
}
