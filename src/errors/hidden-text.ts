// Characters that a reader does not see, or that change how the text around them is shown. Names in certificates and requests are
// written by the requester.

/**
 * Returns the pattern of these characters: controls (C0, DEL, C1), formats (bidirectional, zero-width, tags, byte order mark), lone
 * surrogates, line and paragraph separators, everything drawn as nothing (Braille's blank too), and code points that are no characters.
 * A function, because V8 takes longer to compile it than to print a table, and nearly every text is plain ASCII.
 */
export function hiddenCharacters(): RegExp {
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800]/gu
}

const visibleAscii = /^[\x20-\x7e]*$/

/** True for text that has none of these characters. */
export function isVisible(text: string): boolean {
  return visibleAscii.test(text) || !hiddenCharacters().test(text)
}

/** Returns JSON text in one line or many that shows each of these characters as an escape, and means the same. */
export function harmlessJson(json: string): string {
  // JSON.stringify has escaped C0 and surrogates; the newlines that are left are layout.
  return json.replace(new RegExp(`(?!\n)${hiddenCharacters().source}`, 'gu'), (character) => {
    let escapes = ''
    for (let i = 0; i < character.length; i++)
      escapes += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`
    return escapes
  })
}
