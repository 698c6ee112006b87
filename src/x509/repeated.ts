// biome-ignore-all lint/style/noNonNullAssertion: at < stop; the hash is computed for every name and extension
import { type DerReader, sameBytes } from './der.ts'

// A power of two. A folder has a few CAs and a few profiles, each with its name, key identifier and usages.
const slotCount = 64
// Repeated values are short. Comparing long bytes takes as long as reading them.
const longest = 256

interface Seen<Value> {
  readonly bytes: Uint8Array
  readonly value: Value
}

/**
 * Reads fields that are equal in many certificates, such as the CA's name, only once. Equal bytes have the same value, so the
 * first one is shared. Values must never change. Rejected values are not kept.
 */
export class Repeated<Value> {
  private readonly slots: (Seen<Value> | undefined)[] = new Array<undefined>(slotCount).fill(undefined)
  private readonly read: (reader: DerReader) => Value

  constructor(read: (reader: DerReader) => Value) {
    this.read = read
  }

  /** Returns the value of the bytes from the reader's offset to its end. The reader stops where `read` stopped. */
  of(reader: DerReader): Value {
    const { bytes, offset, end } = reader
    const slot = hashOf(bytes, offset, end) & (slotCount - 1)
    const seen = this.slots[slot]
    if (seen !== undefined && sameBytes(seen.bytes, 0, seen.bytes.length, bytes, offset, end)) {
      reader.offset = end
      return seen.value
    }
    const value = this.read(reader)
    // A copy, so that the bytes of one certificate do not keep a whole file in memory.
    if (end - offset <= longest)
      this.slots[slot] = { bytes: Uint8Array.prototype.slice.call(bytes, offset, end), value }
    return value
  }
}

// Names, key identifiers and usages differ mostly at their end.
const hashed = 6

/** Returns a hash of the length and the last bytes. Values that share a slot replace each other and are read again each time. */
function hashOf(bytes: Uint8Array, start: number, stop: number): number {
  let hash = stop - start
  for (let at = Math.max(start, stop - hashed); at < stop; at++) hash = (hash * 31 + bytes[at]!) & 0xffffff
  return hash ^ (hash >>> 12)
}
