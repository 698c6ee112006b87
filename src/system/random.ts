import { randomBytes } from 'node:crypto'

/** Returns that many random bytes. The one source of what tests fix: serial numbers. Keys and salts are drawn by OpenSSL. */
export type RandomBytes = (count: number) => Uint8Array

export const systemRandom: RandomBytes = (count) => randomBytes(count)
