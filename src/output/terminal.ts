import { hiddenCharacters } from '../errors/hidden-text.ts'

// Names in certificates come from any client that requested a certificate. All text for a terminal passes through here.

const harmless = /^[\x20-\x7e]*$/

/** Returns true for text that is shown unchanged, with each character in one cell. This is nearly all text. */
export function isPlain(text: string): boolean {
  return harmless.test(text)
}

/**
 * Returns the text with every character that could move, hide or recolour terminal output as a visible escape: \u202e, \u{e0041}.
 */
export function printable(text: string): string {
  if (harmless.test(text)) return text
  // A mark without a letter before it would change the character to its left, and a tall stack of marks would cover adjacent
  // lines.
  const strayMarks = /^\p{M}+|(?<=\p{M}{4})\p{M}+/gu
  return text
    .replace(strayMarks, (marks) => Array.from(marks, escaped).join(''))
    .replace(hiddenCharacters(), escaped)
}

/** Returns the double-quoted YAML scalar of the text. Astral characters need \U, because YAML has no surrogate pairs. */
export function harmlessYamlString(text: string): string {
  return JSON.stringify(text.toWellFormed()).replace(hiddenCharacters(), (character) => {
    const point = character.codePointAt(0) ?? 0
    return point > 0xffff ? `\\U${hex(point, 8)}` : `\\u${hex(point, 4)}`
  })
}

function escaped(character: string): string {
  const point = character.codePointAt(0) ?? 0
  return point > 0xffff ? `\\u{${hex(point, 1)}}` : `\\u${hex(point, 4)}`
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}
