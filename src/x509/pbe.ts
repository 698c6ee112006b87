import { createDecipheriv, hash, pbkdf2Sync, scryptSync } from 'node:crypto'
import { KcertError } from '../errors/kcert-error.ts'
import { type DerReader, tags } from './der.ts'

// Password-based encryption: PKCS#5 (RFC 8018) and PKCS#12 (RFC 7292 appendices B and C). The parameters are read first, so that
// a file cannot make kcert compute for hours.

export type HashName = 'sha1' | 'sha224' | 'sha256' | 'sha384' | 'sha512'

export interface Kdf {
  /** Key length from the parameters; absent when the cipher determines it. */
  readonly keyLength: number | undefined
  readonly derive: (password: string, length: number, budget: KdfBudget) => Buffer
}

type CipherName = 'aes-128-cbc' | 'aes-192-cbc' | 'aes-256-cbc' | 'des-ede3-cbc'

export type EncryptionScheme =
  | { readonly kind: 'PBES2'; readonly kdf: Kdf; readonly cipher: CipherName; readonly iv: Uint8Array }
  /** PKCS#5 version 1 and PKCS#12 schemes, by name. */
  | { readonly kind: 'PBES1'; readonly name: string; readonly salt: Uint8Array; readonly iterations: number }

const keyLengths: Readonly<Record<CipherName, number>> = {
  'aes-128-cbc': 16,
  'aes-192-cbc': 24,
  'aes-256-cbc': 32,
  'des-ede3-cbc': 24,
}

/** Digest sizes in bytes. */
export const hashLengths: Readonly<Record<HashName, number>> = {
  sha1: 20,
  sha224: 28,
  sha256: 32,
  sha384: 48,
  sha512: 64,
}

/**
 * Limits the cost of key derivation in one file. The unit is a microsecond on a slow machine: 0.4 for an iteration of PBKDF2
 * (measured 0.13 to 0.44), 0.45 for one of scrypt's N·r·p (0.36), 1 for one of PKCS#12 (0.95). The total of one second allows
 * 2,500,000 iterations of PBKDF2, four times OWASP's count. A machine four times slower stays near 2 s.
 */
export class KdfBudget {
  private leftMicros = 1_000_000
  private readonly run: RunKdfBudget | undefined

  /** `run`: the remaining budget of all files in a run. */
  constructor(run?: RunKdfBudget) {
    this.run = run
  }

  spend(micros: number, what: string): void {
    this.leftMicros -= micros
    if (this.leftMicros < 0)
      throw tooCostly(what, {
        why: 'kcert spends at most one second on a file',
        fix: 'write it again with a usual count, such as openssl pkcs8 -iter 600000',
      })
    if (this.run?.takes(micros) === false)
      throw tooCostly(what, {
        why: `the files before it used up the ${runMicros / 1e6} s that kcert spends on passwords in one run`,
        fix: 'read this file alone',
      })
  }
}

// Thirty keystores of less than a second each took 24 s.
const runMicros = 5_000_000

/**
 * Limits the cost of key derivation in all files of one run. A file that is cheap enough for the remaining budget is still
 * opened.
 */
export class RunKdfBudget {
  private leftMicros = runMicros

  /** Returns true and subtracts the cost if enough budget is left. */
  takes(micros: number): boolean {
    if (micros > this.leftMicros) return false
    this.leftMicros -= micros
    return true
  }
}

function tooCostly(what: string, words: { readonly why: string; readonly fix: string }): KcertError {
  return new KcertError(
    'KCERT_KEY_UNSUPPORTED',
    `${what}: the password's key derivation costs too much`,
    words,
  )
}

// 128·N·r bytes are allocated at once. OpenSSL's default limit is 32 MiB.
const maxScryptBytes = 128 * 1024 * 1024

/**
 * Reads the AlgorithmIdentifier of an encryption. Throws KCERT_KEY_UNSUPPORTED for one that neither OpenSSL nor kcert supports.
 */
export function readEncryptionScheme(reader: DerReader): EncryptionScheme {
  return reader.within(tags.sequence, 'encryptionAlgorithm', () => {
    const name = reader.oidName('encryptionAlgorithm')
    return reader.within(tags.sequence, 'parameters', () =>
      name === 'PBES2' ? readPbes2(reader) : readPbes1(reader, name),
    )
  })
}

function readPbes1(reader: DerReader, name: string): EncryptionScheme {
  if (!name.startsWith('pbeWith')) throw unsupported(`encryption ${name}`)
  reader.read(tags.octetString, 'salt')
  const salt = reader.lastContent
  return { kind: 'PBES1', name, salt, iterations: readIterations(reader) }
}

function readPbes2(reader: DerReader): EncryptionScheme {
  const kdf = readKdf(reader)
  return reader.within(tags.sequence, 'encryptionScheme', () => {
    const cipher = reader.oidName('encryptionScheme').toLowerCase()
    if (!isCipherName(cipher)) throw unsupported(`cipher ${cipher}`)
    reader.read(tags.octetString, 'iv')
    const iv = reader.lastContent
    if (iv.length !== (cipher === 'des-ede3-cbc' ? 8 : 16))
      reader.fail('iv', `${iv.length} bytes`, reader.start)
    return { kind: 'PBES2', kdf, cipher, iv }
  })
}

function isCipherName(name: string): name is CipherName {
  return Object.hasOwn(keyLengths, name)
}

/** Returns the key derivation function of an AlgorithmIdentifier. */
export function readKdf(reader: DerReader): Kdf {
  return reader.within(tags.sequence, 'keyDerivationFunc', () => {
    const name = reader.oidName('keyDerivationFunc')
    return reader.within(tags.sequence, 'keyDerivationFunc.parameters', () => {
      if (name === 'PBKDF2') return readPbkdf2(reader)
      if (name === 'scrypt') return readScrypt(reader)
      throw unsupported(`key derivation ${name}`)
    })
  })
}

/** RFC 8018 appendix A.2. */
function readPbkdf2(reader: DerReader): Kdf {
  reader.read(tags.octetString, 'salt')
  const salt = reader.lastContent
  const iterations = readIterations(reader)
  const keyLength = readKeyLength(reader)
  const prf = reader.peek(tags.sequence) ? readPrf(reader) : 'sha1'
  return {
    keyLength,
    derive: (password, length, budget) => {
      budget.spend(iterations * Math.ceil(length / hashLengths[prf]) * 0.4, `${iterations} iterations`)
      return pbkdf2Sync(password, salt, iterations, length, prf)
    },
  }
}

function readKeyLength(reader: DerReader): number | undefined {
  if (!reader.peek(tags.integer)) return undefined
  const keyLength = reader.int64('keyLength')
  if (keyLength < 1) reader.fail('keyLength', 'below one', reader.start)
  return keyLength
}

/** Returns the hash of an HMAC AlgorithmIdentifier. */
export function readPrf(reader: DerReader): HashName {
  const name = reader.within(tags.sequence, 'prf', () => reader.oidName('prf'))
  const hashName = name.replace('hmacWith', '').toLowerCase()
  if (!isHashName(hashName)) throw unsupported(`message authentication ${name}`)
  return hashName
}

export function isHashName(name: string): name is HashName {
  return Object.hasOwn(hashLengths, name)
}

/** RFC 7914 section 7. */
function readScrypt(reader: DerReader): Kdf {
  reader.read(tags.octetString, 'salt')
  const salt = reader.lastContent
  const iterations = reader.int64('costParameter')
  const r = reader.int64('blockSize')
  const p = reader.int64('parallelizationParameter')
  const keyLength = readKeyLength(reader)
  const isValid = iterations > 1 && Number.isInteger(Math.log2(iterations)) && r > 0 && p > 0
  if (!isValid) reader.fail('keyDerivationFunc.parameters', 'no parameters of scrypt')
  return {
    keyLength,
    derive: (password, length, budget) => {
      const what = `scrypt with N=${iterations}, r=${r}, p=${p}`
      budget.spend(128 * iterations * r > maxScryptBytes ? Infinity : iterations * r * p * 0.45, what)
      return scryptSync(password, salt, length, { N: iterations, r, p, maxmem: 2 * maxScryptBytes })
    },
  }
}

/** Reads an iteration count. */
export function readIterations(reader: DerReader): number {
  const iterations = reader.int64('iterationCount')
  if (iterations < 1) reader.fail('iterationCount', 'below one', reader.start)
  return iterations
}

/** Decrypts PBES2; returns undefined when the password is wrong. */
export function decryptPbes2(
  scheme: EncryptionScheme & { kind: 'PBES2' },
  ciphertext: Uint8Array,
  password: string,
  budget: KdfBudget,
): Buffer | undefined {
  const { kdf, cipher, iv } = scheme
  if (kdf.keyLength !== undefined && kdf.keyLength !== keyLengths[cipher]) {
    throw unsupported(`${cipher} with a key of ${kdf.keyLength} bytes`)
  }
  return decryptCbc(cipher, kdf.derive(password, keyLengths[cipher], budget), iv, ciphertext)
}

/** Decrypts a CBC cipher with PKCS#7 padding; returns undefined when the padding is wrong. */
export function decryptCbc(
  cipher: CipherName,
  key: Uint8Array,
  iv: Uint8Array,
  ciphertext: Uint8Array,
): Buffer | undefined {
  try {
    const decipher = createDecipheriv(cipher, key, iv)
    return Buffer.concat([decipher.update(ciphertext), decipher.final()])
  } catch {
    return undefined
  }
}

/** RFC 7292 appendix B.2. `purpose` is 1 for a key, 2 for an initialization vector, 3 for a MAC key. */
export function derivePkcs12(
  hashName: HashName,
  password: Uint8Array,
  salt: Uint8Array,
  purpose: 1 | 2 | 3,
  iterations: number,
  length: number,
  budget: KdfBudget,
): Buffer {
  const blockLength = hashLengths[hashName] > 32 ? 128 : 64
  const rounds = Math.ceil(length / hashLengths[hashName])
  budget.spend(iterations * rounds, `${iterations} iterations`)
  const diversifier = Buffer.alloc(blockLength, purpose)
  const input = Buffer.concat([repeated(salt, blockLength), repeated(password, blockLength)])
  const derived: Buffer[] = []
  for (let round = 0; round < rounds; round++) {
    let block = hash(hashName, Buffer.concat([diversifier, input]), 'buffer')
    for (let i = 1; i < iterations; i++) block = hash(hashName, block, 'buffer')
    derived.push(block)
    addToEach(input, repeated(block, blockLength).subarray(0, blockLength))
  }
  return Buffer.concat(derived).subarray(0, length)
}

/** Repeats the bytes up to the next multiple of a block. Empty stays empty. */
function repeated(bytes: Uint8Array, blockLength: number): Buffer {
  const filled = Buffer.alloc(Math.ceil(bytes.length / blockLength) * blockLength)
  return bytes.length === 0 ? filled : filled.fill(bytes)
}

/** Adds the block plus one to each block of the input, as big-endian numbers. */
function addToEach(input: Buffer, block: Buffer): void {
  for (let from = 0; from < input.length; from += block.length) {
    let carry = 1
    for (let i = block.length - 1; i >= 0; i--) {
      carry += input.readUInt8(from + i) + block.readUInt8(i)
      input[from + i] = carry
      carry >>= 8
    }
  }
}

export function unsupported(what: string): KcertError {
  return new KcertError('KCERT_KEY_UNSUPPORTED', `${what} is not supported`, {
    why: 'write the keystore again with openssl pkcs12 -export, or the key with openssl pkcs8 -topk8',
  })
}
