// Finds public keys in files of any format: the last check before kcert says that a file does not contain an old CA.

// A certificate of the smallest supported key has more characters. Longer matches exceed V8's stack for regular expressions, so a longer
// run is several overlapping ones.
const run = /[A-Za-z0-9+/]{120,1000000}/g
const longestRun = 1_000_000
const overlap = 65_536
const escapes = /\\{1,9}[ux]0{0,4}(2[bB]|2[fF]|3[dD])/g
// A kubeconfig in base64 in a Secret has certificates in base64. No legitimate file is deeper.
const deepest = 3

/**
 * Returns which of these keys (SubjectPublicKeyInfo in DER) the bytes contain: as DER, as PEM or base64 in any layout, escaped, or
 * in base64 of these.
 */
export function keysIn(bytes: Uint8Array, keys: readonly Buffer[], depth = 0): Set<Buffer> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found = new Set(keys.filter((key) => buffer.includes(key)))
  if (depth > deepest) return found
  // Without zero bytes, UTF-16 is ASCII too.
  for (const base64 of runsIn(joinedBase64(buffer.toString('latin1').replaceAll('\0', '')))) {
    // Without white space, a word before the base64 is part of it, so each alignment is decoded.
    for (let offset = 0; offset < 4 && found.size < keys.length; offset++) {
      const decoded = Buffer.from(base64.slice(offset), 'base64')
      const isText = !/[\0-\x08\x0e-\x1f]/.test(decoded.toString('latin1', 0, 512))
      const inside = isText ? keysIn(decoded, keys, depth + 1) : keys.filter((key) => decoded.includes(key))
      for (const key of inside) found.add(key)
    }
  }
  return found
}

function* runsIn(text: string): Generator<string> {
  const runs = new RegExp(run)
  for (let match = runs.exec(text); match !== null; match = runs.exec(text)) {
    yield match[0]
    if (match[0].length === longestRun) runs.lastIndex -= overlap
  }
}

/** Returns the text without white space, quotes, line ends as escapes, and escapes of characters of base64. */
export function joinedBase64(text: string): string {
  return text
    .replace(escapes, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\\{1,9}[nrt]?|[\s"']{1,9999}/g, '')
}
