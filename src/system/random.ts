import { randomBytes } from 'node:crypto'

/** Returns random bytes. Tests replace this source to fix serial numbers. OpenSSL generates keys and salts. */
export type RandomBytes = (count: number) => Uint8Array

export const systemRandom: RandomBytes = (count) => randomBytes(count)
