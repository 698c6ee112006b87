// Characters that are invisible, or that change how the surrounding text is displayed. The requester chooses the names in
// certificates and requests.

/**
 * Returns the pattern of these characters: controls (C0, DEL, C1), formats (bidirectional, zero-width, tags, byte order mark),
 * lone surrogates, line and paragraph separators, all characters without a visible form (including the Braille blank), and
 * noncharacters. It is a function because V8 takes longer to compile the pattern than to print a table, and nearly every text is
 * plain ASCII.
 */
export function hiddenCharacters(): RegExp {
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800]/gu
}

const visibleAscii = /^[\x20-\x7e]*$/

/** True for text without these characters. */
export function isVisible(text: string): boolean {
  return visibleAscii.test(text) || !hiddenCharacters().test(text)
}

/** Returns equivalent JSON text, in one or several lines, with each of these characters escaped. */
export function harmlessJson(json: string): string {
  // JSON.stringify has escaped C0 and surrogates. The remaining newlines are layout.
  return json.replace(new RegExp(`(?!\n)${hiddenCharacters().source}`, 'gu'), (character) => {
    let escapes = ''
    for (let i = 0; i < character.length; i++)
      escapes += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`
    return escapes
  })
}
