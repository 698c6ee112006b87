export type Base64Outcome = { readonly bytes: Uint8Array } | { readonly reason: string }

/**
 * Returns the bytes, or why the text is invalid. Accepts what Go's encoding/json accepts for a byte slice: RFC 4648 section 4
 * with padding. Line ends between the characters are ignored; all other characters are rejected. (Buffer.from ignores all of
 * them.)
 */
export function decodeBase64(text: string): Base64Outcome {
  const joined = text.includes('\n') || text.includes('\r') ? text.replace(/[\r\n]+/g, '') : text
  const bad = joined.search(/[^A-Za-z0-9+/=]/)
  if (bad !== -1) return { reason: `not base64: character ${bad + 1} is ${JSON.stringify(joined[bad])}` }
  const padding = joined.indexOf('=')
  if (padding !== -1 && (padding < joined.length - 2 || !joined.endsWith('='))) {
    return { reason: `not base64: character ${padding + 1} is a "=" in the middle` }
  }
  if (joined.length % 4 !== 0)
    return { reason: `not base64: ${joined.length} characters are not a multiple of four` }
  return { bytes: Buffer.from(joined, 'base64') }
}
