import { createCipheriv, generateKeyPairSync, type KeyObject, pbkdf2Sync, randomBytes } from 'node:crypto'
import { KcertError } from '../errors/kcert-error.ts'
import { integer, nullElement, octetString, oid, sequence } from './der-writer.ts'
import { oidOf } from './oids.ts'
import { writePem } from './pem.ts'
import type { PublicKeyInfo } from './public-key.ts'

// Generates and writes private keys. keys.ts reads them.

export type KeyType =
  | { readonly algorithm: 'RSA'; readonly bits: number }
  | { readonly algorithm: 'ECDSA'; readonly curve: 'P-256' | 'P-384' | 'P-521' }
  | { readonly algorithm: 'Ed25519' }

/** Formats of a key file. `kubernetes` is SEC1 for ECDSA and PKCS#1 for RSA (keyutil.MarshalPrivateKeyToPEM). */
export const keyFormats = ['pkcs8', 'sec1', 'pkcs1', 'kubernetes'] as const

export type KeyFormat = (typeof keyFormats)[number]

/** The values of kubeadm's encryptionAlgorithm, case-sensitive as in kubeadm. */
export const kubeadmKeyTypes = ['RSA-2048', 'RSA-3072', 'RSA-4096', 'ECDSA-P256', 'ECDSA-P384'] as const

export type KubeadmKeyType = (typeof kubeadmKeyTypes)[number]

/** Key types that `parseKeyType` accepts, for help texts: kubeadm's, and two more. */
export const keyTypeNames = [...kubeadmKeyTypes, 'ECDSA-P521', 'Ed25519'] as const

/** Returns the key type of a name such as "RSA-2048", "ECDSA-P256" or "Ed25519", in any case. Throws KCERT_USAGE. */
export function parseKeyType(name: string): KeyType {
  const plain = name.toUpperCase().replaceAll(/[-_ ]/g, '')
  const rsaBits = /^RSA(\d{3,5})$/.exec(plain)
  // Whole bytes, as every reader expects. Above 4096, signing slows down handshakes noticeably.
  if (rsaBits !== null && isRsaLength(Number(rsaBits[1]), 4096))
    return { algorithm: 'RSA', bits: Number(rsaBits[1]) }
  const curve = /^(?:ECDSA|EC)?P(256|384|521)$/.exec(plain)
  if (curve !== null) return { algorithm: 'ECDSA', curve: `P-${curve[1] as '256' | '384' | '521'}` }
  if (plain === 'ED25519') return { algorithm: 'Ed25519' }
  throw new KcertError('KCERT_USAGE', `unsupported key type "${name}"`, {
    why: `kcert creates ${keyTypeNames.join(', ')}, and RSA keys from 2048 to 4096 bits whose length is a multiple of 8`,
  })
}

/** True for an RSA modulus of whole bytes, from 2048 bits up to the limit. */
export function isRsaLength(bits: number, atMost: number): boolean {
  return Number.isInteger(bits) && bits >= 2048 && bits <= atMost && bits % 8 === 0
}

/** Returns the name of a key type as kubeadm writes it: "RSA-2048", "ECDSA-P256", "Ed25519". */
export function keyTypeName(type: KeyType): string {
  if (type.algorithm === 'RSA') return `RSA-${type.bits}`
  return type.algorithm === 'ECDSA' ? `ECDSA-${type.curve.replace('-', '')}` : 'Ed25519'
}

/** Returns the key type for a replacement of a key: RSA with 2048 bits if kcert does not generate its type. */
export function keyTypeLike({ algorithm, bits, curve }: PublicKeyInfo): KeyType {
  if (algorithm === 'ECDSA' && (curve === 'P-256' || curve === 'P-384' || curve === 'P-521'))
    return { algorithm, curve }
  if (algorithm === 'Ed25519') return { algorithm }
  return { algorithm: 'RSA', bits: Math.min(4096, Math.max(2048, bits ?? 2048)) }
}

/** Returns a new private key that replaces another: of this key type, or else of the type of the replaced key. */
export function replacementKey(replaced: PublicKeyInfo, keyType?: KubeadmKeyType): KeyObject {
  return generatePrivateKey(keyType === undefined ? keyTypeLike(replaced) : parseKeyType(keyType))
}

/** Returns a new private key. An RSA key of 4096 bits may take some seconds. */
export function generatePrivateKey(type: KeyType): KeyObject {
  if (type.algorithm === 'RSA') return generateKeyPairSync('rsa', { modulusLength: type.bits }).privateKey
  if (type.algorithm === 'ECDSA') return generateKeyPairSync('ec', { namedCurve: type.curve }).privateKey
  return generateKeyPairSync('ed25519').privateKey
}

/**
 * Returns the PEM text of a private key. With a password it is encrypted PKCS#8. Throws KCERT_USAGE for a format that the key
 * type does not have, and for a password with any format but PKCS#8.
 */
export function writePrivateKey(key: KeyObject, format: KeyFormat, password?: string): string {
  const chosen = formatOfKey(key, format)
  if (password !== undefined) {
    if (format !== 'pkcs8')
      throw new KcertError('KCERT_USAGE', `a key in format ${format} cannot be encrypted`, {
        why: 'only PKCS#8 has an encryption that is still considered safe',
        fix: 'use pkcs8, or omit the password',
      })
    const plain = key.export({ format: 'der', type: 'pkcs8' })
    const pem = writePem('ENCRYPTED PRIVATE KEY', encryptPkcs8(plain, password))
    plain.fill(0)
    return pem
  }
  const needed = { pkcs8: undefined, sec1: 'ec', pkcs1: 'rsa' }[chosen]
  if (needed !== undefined && key.asymmetricKeyType !== needed) throw unfitFormat(chosen, key)
  return key.export({ format: 'pem', type: chosen }).toString()
}

/** Returns the format for a key. `kubernetes` is replaced by the format of the key's type. */
export function formatOfKey(key: KeyObject, format: KeyFormat): Exclude<KeyFormat, 'kubernetes'> {
  if (format !== 'kubernetes') return format
  // Go's keyutil has no special format for Ed25519. It reads PKCS#8.
  const formats: Readonly<Record<string, 'sec1' | 'pkcs1'>> = { ec: 'sec1', rsa: 'pkcs1' }
  return formats[key.asymmetricKeyType ?? ''] ?? 'pkcs8'
}

// OWASP's count for PBKDF2 with HMAC-SHA-256 (2023). With OpenSSL's default, 2048, a laptop tries 100,000 passwords a second.
const iterations = 600_000

/** Returns an EncryptedPrivateKeyInfo (RFC 5958 section 3) with PBES2: PBKDF2 with HMAC-SHA-256, and AES-256-CBC. */
function encryptPkcs8(plain: Uint8Array, password: string): Uint8Array {
  if (password === '')
    throw new KcertError('KCERT_USAGE', 'the password is empty', { why: 'it would protect nothing' })
  const salt = randomBytes(16)
  const iv = randomBytes(16)
  const secret = pbkdf2Sync(password, salt, iterations, 32, 'sha256')
  const cipher = createCipheriv('aes-256-cbc', secret, iv)
  const encrypted = Buffer.concat([cipher.update(plain), cipher.final()])
  secret.fill(0)
  const prf = sequence(oid(oidOf('hmacWithSHA256')), nullElement)
  const kdf = sequence(oid(oidOf('PBKDF2')), sequence(octetString(salt), integer(iterations), prf))
  const scheme = sequence(oid(oidOf('AES-256-CBC')), octetString(iv))
  return sequence(sequence(oid(oidOf('PBES2')), sequence(kdf, scheme)), octetString(encrypted))
}

function unfitFormat(format: string, key: KeyObject): KcertError {
  const owner = format === 'sec1' ? 'ECDSA' : 'RSA'
  return new KcertError('KCERT_USAGE', `format ${format} does not support ${key.asymmetricKeyType} keys`, {
    why: `${format} is only for ${owner} keys; pkcs8 supports every type`,
    fix: 'use pkcs8, or kubernetes for the formats that its own tools write',
  })
}
