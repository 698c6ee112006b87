// Splits words as systemd does in ExecStart= and in the value of a variable (systemd.service(5), "Command lines"). White space
// separates words, quotes join them, and backslashes escape. A line that ends with a backslash continues on the next one.

/** A word of a command line with its position in the text. */
export interface PlacedWord {
  /** After processing quotes and escapes. Variables and specifiers (%i) are unchanged. */
  readonly text: string
  readonly start: number
  readonly end: number
}

const escapes: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', s: ' ' },
  ...{ '\\': '\\', '"': '"', "'": "'" },
}

/**
 * Returns the words between two offsets of a text. Lines that begin with # or ; between continued lines are comments. An unknown
 * escape stays unchanged, and so does a quote that is never closed.
 */
export function systemdWords(text: string, from: number, to: number): PlacedWord[] {
  const words: PlacedWord[] = []
  let at = from
  for (;;) {
    at = afterSpace(text, at, to, from)
    if (at >= to) return words
    const start = at
    let word = ''
    let quote = ''
    while (at < to) {
      const code = text.charAt(at)
      if (code === '\\') {
        const continued = lineContinuation(text, at)
        if (continued !== undefined) {
          // Outside quotes, the line end is a space and ends the word.
          if (quote === '') break
          word += ' '
          at = continued
          continue
        }
        const [read, next] = unescaped(text, at)
        word += read
        at = next
      } else if (quote !== '' ? code === quote : code === '"' || code === "'") {
        quote = quote === '' ? code : ''
        at++
      } else if (quote === '' && /\s/.test(code)) {
        break
      } else {
        word += code
        at++
      }
    }
    words.push({ text: word, start, end: at })
  }
}

/** Returns a word in the form for ExecStart= that systemd reads as exactly this text, without variables or specifiers. */
export function systemdWord(text: string): string {
  const safe = text.replaceAll('%', '%%').replaceAll('$', '$$$$')
  if (safe !== '' && !/[\s"'\\;#]/.test(safe)) return safe
  const written = safe.replaceAll(/[\\"]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t')
  return `"${written}"`
}

function afterSpace(text: string, start: number, to: number, from: number): number {
  let at = start
  while (at < to) {
    const continued = text[at] === '\\' ? lineContinuation(text, at) : undefined
    if (continued !== undefined) at = continued
    else if (/\s/.test(text.charAt(at))) at++
    else if (at > from && /[#;]/.test(text.charAt(at)) && isLineStart(text, at)) at = endOfLine(text, at)
    else return at
  }
  return at
}

/** Returns the start of the next line if the backslash at `at` is the last character of its line. */
function lineContinuation(text: string, at: number): number | undefined {
  if (text[at + 1] === '\n') return at + 2
  return text.startsWith('\r\n', at + 1) ? at + 3 : undefined
}

function isLineStart(text: string, at: number): boolean {
  return text.slice(text.lastIndexOf('\n', at - 1) + 1, at).trim() === ''
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end
}

function unescaped(text: string, at: number): [string, number] {
  const code = text[at + 1] ?? ''
  const known = escapes[code]
  if (known !== undefined) return [known, at + 2]
  const hex = /^\\x([\da-fA-F]{2})|^\\u([\da-fA-F]{4})|^\\([0-7]{3})/.exec(text.slice(at, at + 6))
  if (hex === null) return [`\\${code}`, at + 1 + code.length]
  const value = Number.parseInt(hex[1] ?? hex[2] ?? hex[3] ?? '', hex[3] === undefined ? 16 : 8)
  return [String.fromCharCode(value), at + hex[0].length]
}
