// The number of terminal cells of a text. Expects printable text (terminal.ts), without control or invisible characters.

// East_Asian_Width W and F of Unicode 16, with adjacent ranges joined over unassigned gaps. Emoji are covered by their own
// property.
const wide: readonly (readonly [first: number, last: number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2630, 0x2637],
  [0x268a, 0x268f],
  [0x2e80, 0x303e],
  [0x3041, 0x3247],
  [0x3250, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18dff],
  [0x1aff0, 0x1b2ff],
  [0x1d300, 0x1d376],
  [0x1f200, 0x1f2ff],
  [0x20000, 0x3fffd],
]
const ascii = /^[\x20-\x7e]*$/

/** Returns the number of terminal cells: East Asian wide characters and emoji take two, combining marks none. */
export function displayWidth(text: string): number {
  if (ascii.test(text)) return text.length
  let cells = 0
  for (const character of text) cells += characterWidth(character)
  return cells
}

function characterWidth(character: string): 0 | 1 | 2 {
  const point = character.codePointAt(0) ?? 0
  if (point < 0x300) return 1
  if (isOnTop(character)) return 0
  // vowels and final consonants of decomposed Hangul join the syllable that began before them
  if (point >= 0x1160 && point <= 0x11ff) return 0
  for (const [first, last] of wide) {
    if (point < first) break
    if (point <= last) return 2
  }
  return /\p{Emoji_Presentation}/u.test(character) ? 2 : 1
}

// In a function, because V8 compiles such a class on first use, and ASCII text never uses it.
function isOnTop(character: string): boolean {
  return /[\p{Mn}\p{Me}]/u.test(character)
}

/** Returns the text padded with spaces to the width. Longer text is returned unchanged. */
export function padded(text: string, width: number): string {
  const missing = width - displayWidth(text)
  return missing > 0 ? text + ' '.repeat(missing) : text
}

/** The part of a too long text that is cut. */
export type Cut = 'end' | 'middle' | 'start'

/**
 * Returns at most `width` cells of the text, with "…" for the part that is cut: the end, the start (for paths, whose end matters
 * more), or the middle.
 */
export function shortened(text: string, width: number, cut: Cut = 'end'): string {
  if (displayWidth(text) <= width) return text
  if (width < 1) return ''
  const characters = Array.from(text)
  const kept = width - 1
  const before = cut === 'end' ? kept : cut === 'start' ? 0 : Math.floor(kept / 2)
  return `${head(characters, before)}…${tail(characters, kept - before)}`
}

function head(characters: string[], width: number): string {
  let cells = 0
  let count = 0
  for (const character of characters) {
    cells += characterWidth(character)
    if (cells > width) break
    count++
  }
  return characters.slice(0, count).join('')
}

function tail(characters: string[], width: number): string {
  const kept: string[] = []
  let cells = 0
  for (const character of characters.toReversed()) {
    cells += characterWidth(character)
    if (cells > width) break
    kept.push(character)
  }
  // a mark without its letter would combine with the "…"
  const first = kept.findLastIndex((character) => !isOnTop(character))
  return kept
    .slice(0, first + 1)
    .reverse()
    .join('')
}

/**
 * Returns the text in lines of at most `width` cells, broken at spaces only. A longer word stays whole, so that a fingerprint or
 * a command can still be copied.
 */
export function wrapped(text: string, width: number): string[] {
  if (displayWidth(text) <= width) return [text]
  const [first = '', ...words] = text.split(' ')
  const lines: string[] = []
  let line = first
  let cells = displayWidth(first)
  for (const word of words) {
    const size = displayWidth(word)
    if (cells > 0 && cells + 1 + size > width) {
      lines.push(line)
      line = word
      cells = size
    } else {
      line += ` ${word}`
      cells += 1 + size
    }
  }
  lines.push(line)
  return lines
}
