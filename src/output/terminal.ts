// Names in certificates are written by whoever asked for the certificate. What reaches a terminal goes through here.

// What is hidden and what stacks is said within functions, for to read such classes takes V8 longer than to print a table, and
// nearly every text is harmless.
const harmless = /^[\x20-\x7e]*$/

/** True for text that is shown as it is, each character in one cell: nearly all there is. */
export function isPlain(text: string): boolean {
  return harmless.test(text)
}

/** Returns the text with every character that could move, hide or recolour what a terminal shows as a visible escape: \u202e, \u{e0041}. */
export function printable(text: string): string {
  if (harmless.test(text)) return text
  // A mark without a letter before it would change what stands to its left, and a tall stack of them the lines around.
  const strayMarks = /^\p{M}+|(?<=\p{M}{4})\p{M}+/gu
  // Controls (C0, DEL, C1), formats (bidirectional, zero-width, tags, BOM), lone surrogates, line and paragraph separators,
  // everything that is drawn as nothing, and code points that are no characters.
  const hidden =
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu
  return text.replace(strayMarks, (marks) => Array.from(marks, escaped).join('')).replace(hidden, escaped)
}

/** Returns JSON text that is harmless on a terminal too, and means the same. Takes what JSON.stringify made. */
export function harmlessJson(json: string): string {
  return json.replace(hiddenInJson(), (character) => {
    let escapes = ''
    for (let i = 0; i < character.length; i++) escapes += `\\u${hex(character.charCodeAt(i), 4)}`
    return escapes
  })
}

/** Returns the double-quoted YAML scalar of the text. Astral characters need \U there: YAML knows no surrogate pairs. */
export function harmlessYamlString(text: string): string {
  return JSON.stringify(text.toWellFormed()).replace(hiddenInJson(), (character) => {
    const point = character.codePointAt(0)!
    return point > 0xffff ? `\\U${hex(point, 8)}` : `\\u${hex(point, 4)}`
  })
}

/** As `hidden` above without C0 and surrogates: JSON.stringify has escaped those, and the newlines that are left are layout. */
function hiddenInJson(): RegExp {
  return /[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu
}

function escaped(character: string): string {
  const point = character.codePointAt(0)!
  return point > 0xffff ? `\\u{${hex(point, 1)}}` : `\\u${hex(point, 4)}`
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}
