// Changes to bytes, drawn from a seed. They must cost less than the tested reader.

/** A source of numbers, the same for the same seed (xorshift32). */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e3779b1) >>> 0 || 1
  }

  /** Returns a number from 0 to `below` - 1. */
  draw(below: number): number {
    let state = this.#state
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    this.#state = state >>> 0
    return this.#state % below
  }

  of<Item>(items: readonly Item[]): Item {
    return items[this.draw(items.length)]!
  }
}

const interesting = [
  0, 1, 2, 3, 4, 5, 6, 0x0c, 0x13, 0x30, 0x31, 0x7f, 0x80, 0x81, 0x82, 0x84, 0xa0, 0xa3, 0xbf, 0xc3, 0xff,
]

/**
 * Returns an input with a few changes: single bytes, pieces removed, doubled or copied from another input, words, DER lengths.
 */
export function mutated(
  input: Uint8Array,
  other: Uint8Array,
  words: readonly Uint8Array[],
  dice: Dice,
  longest: number,
): Uint8Array {
  let bytes = Buffer.from(input)
  for (let changes = 1 + dice.draw(1 << dice.draw(5)); changes > 0; changes--) {
    const at = dice.draw(bytes.length + 1)
    const length = 1 + dice.draw(1 << dice.draw(7))
    switch (dice.draw(9)) {
      case 0:
        if (at < bytes.length) bytes[at]! ^= 1 << dice.draw(8)
        break
      case 1:
        if (at < bytes.length) bytes[at] = dice.draw(256)
        break
      case 2:
        if (at < bytes.length) bytes[at] = dice.of(interesting)
        break
      case 3:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)])
        break
      case 4:
        bytes = inserted(bytes, at, bytes.subarray(dice.draw(bytes.length + 1)).subarray(0, length))
        break
      case 5:
        bytes = inserted(bytes, at, other.subarray(dice.draw(other.length + 1)).subarray(0, length))
        break
      case 6:
        bytes = inserted(bytes, at, dice.of(words))
        break
      case 7: {
        const word = dice.of(words)
        bytes = Buffer.concat([bytes.subarray(0, at), word, bytes.subarray(at + word.length)])
        break
      }
      default:
        shiftLength(bytes, at, dice.draw(16) - 8)
    }
  }
  return bytes.length > longest ? bytes.subarray(0, longest) : bytes
}

function inserted(bytes: Buffer, at: number, piece: Uint8Array): Buffer<ArrayBuffer> {
  return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)])
}

/** Increases or decreases the next byte that looks like a length after a tag. */
function shiftLength(bytes: Buffer, from: number, by: number): void {
  for (let at = from; at + 1 < Math.min(bytes.length, from + 64); at++) {
    if (bytes[at] !== 0x30 && bytes[at] !== 0x31 && bytes[at] !== 0x04 && bytes[at] !== 0x02) continue
    bytes[at + 1] = (bytes[at + 1]! + by) & 0xff
    return
  }
}
