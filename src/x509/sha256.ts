// biome-ignore-all lint/style/noNonNullAssertion: fixed indexes into arrays of a fixed size, in the loop for every byte
import { hash } from 'node:crypto'

// Loading node:crypto takes longer than all other work for one certificate, and many commands need it only for a fingerprint.
// Therefore the first few digests are computed here. After that, OpenSSL is many times faster and worth the load time.
const mostHere = 6
const largestHere = 4096
let madeHere = 0

/** SHA-256 (FIPS 180-4) in hexadecimal. */
export function sha256Hex(bytes: Uint8Array): string {
  if (bytes.length > largestHere || madeHere >= mostHere) return hash('sha256', bytes, 'hex')
  madeHere++
  return sha256HexHere(bytes)
}

/** Returns the same without node:crypto, for a few small inputs. Exported for the test that compares it with node:crypto. */
export function sha256HexHere(bytes: Uint8Array): string {
  const padded = pad(bytes)
  const view = new DataView(padded.buffer)
  const state = Int32Array.from(initial)
  const schedule = new Int32Array(64)
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) schedule[i] = view.getInt32(at + 4 * i)
    compress(state, schedule)
  }
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

// One bit, zeros, and the length in bits at the end of the last 64 bytes (section 5.1.1).
function pad(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64)
  padded.set(bytes)
  padded[bytes.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29))
  view.setUint32(padded.length - 4, bytes.length << 3)
  return padded
}

// Section 6.2.2.
function compress(state: Int32Array, w: Int32Array): void {
  for (let i = 16; i < 64; i++) {
    const a = w[i - 15]!
    const b = w[i - 2]!
    const small0 = rotated(a, 7) ^ rotated(a, 18) ^ (a >>> 3)
    const small1 = rotated(b, 17) ^ rotated(b, 19) ^ (b >>> 10)
    w[i] = w[i - 16]! + small0 + w[i - 7]! + small1
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let i = 0; i < 64; i++) {
    const big1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
    const chosen = (e & f) ^ (~e & g)
    const first = (h + big1 + chosen + constants[i]! + w[i]!) | 0
    const big0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)
    const majority = (a & b) ^ (a & c) ^ (b & c)
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + big0 + majority) | 0
  }
  const after = [a, b, c, d, e, f, g, h]
  for (let i = 0; i < 8; i++) state[i] = state[i]! + after[i]!
}

function rotated(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by))
}

// Sections 5.3.3 and 4.2.2: the first 32 bits of the fractional parts of the square and cube roots of the first primes.
// biome-ignore format: a table
const initial = Int32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
)
// biome-ignore format: a table
const constants = Int32Array.of(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
)
