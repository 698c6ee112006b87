// Finds known phrases in a text. Terminals, chats and log viewers break lines anywhere, JSON puts a backslash before a quote, and
// Terraform frames its quotes. OpenSSL, BoringSSL and Java write the same alert with spaces or underscores. Therefore all of
// these characters, and the case of ASCII letters, are ignored on both sides of the comparison.

/** The text without separators, and the original offset of each of its characters. */
export interface NormalizedText {
  readonly text: string
  readonly positions: Uint32Array
}

/** A range of the text, from the first character to after the last. */
export interface Span {
  readonly start: number
  readonly end: number
}

const underscore = 0x5f
const backslash = 0x5c
const frame = 0x2502

/** Returns a text ready to be searched. */
export function normalize(text: string): NormalizedText {
  const codes = new Uint16Array(text.length)
  const positions = new Uint32Array(text.length)
  let length = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code <= 0x20 || code === 0xa0 || code === underscore || code === backslash || code === frame) continue
    // ' and its typographic variants are equal.
    codes[length] = code >= 0x41 && code <= 0x5a ? code + 0x20 : code === 0x2019 ? 0x27 : code
    positions[length++] = i
  }
  return { text: new TextDecoder('utf-16le').decode(codes.subarray(0, length)), positions }
}

/** Returns every location of a phrase, in order. */
export function placesOf(words: string, { text, positions }: NormalizedText): Span[] {
  const wanted = normalize(words).text
  const spans: Span[] = []
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length))
    spans.push({ start: positions[at] ?? 0, end: (positions[at + wanted.length - 1] ?? 0) + 1 })
  return spans
}

/** Returns the spans that no other one covers: of two overlapping ones the earlier is kept, then the longer. */
export function withoutOverlaps<Marked extends Span>(spans: readonly Marked[]): Marked[] {
  const ordered = [...spans].sort((a, b) => a.start - b.start || b.end - a.end)
  const kept: Marked[] = []
  for (const span of ordered) {
    const last = kept.at(-1)
    if (last === undefined || span.start >= last.end) kept.push(span)
  }
  return kept
}
