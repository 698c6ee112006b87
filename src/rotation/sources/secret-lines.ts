import { isVisible } from '../../errors/hidden-text.ts'
import type { Range } from '../../kubeconfig/node.ts'
import type { CaText } from './ca-text.ts'
import type { Hunk } from './unified-diff.ts'

// Which lines of a file a diff may show. When in doubt, the line is not shown, and the operator edits the file.

const largestHunk = 256 * 1024
const opaque = /(?<![A-Za-z0-9+/_=-])(?!sha256:)[A-Za-z0-9+/_=-]{40,}|^\s*[A-Za-z0-9+/]{4,}=*\s*$|-----/
const secretKey =
  /passw|passphrase|secret(?!Name|Ref|KeyRef)|token|credential|private|(?:^|[-_.])key\b|[a-z]Key\b|apikey|key-data|client-key|\bauth\b/i
const keys = /([\w./-]+)\\*["']?\s*:(?=\s|["'\\{[]|$)\s*([^\s,}]?)/g
/** Fields of a Secret beside its values. */
const fieldOfSecret =
  /^\s*(?:["']?(?:apiVersion|kind|name|namespace|type)["']?\s*:\s*["']?[\w./-]{1,80}["']?|["']?(?:metadata|data|stringData|[\w-]*ca[\w-]*\.(?:crt|pem)|tls\.crt)["']?\s*:[\s"'|>+-]*)?[\s{}[\],"']*$|^\s*#|^---/

/** Returns why a diff may not contain this hunk; undefined if it may. */
export function hiddenIn(text: string, { shown }: CaText, hunk: Hunk): string | undefined {
  const [from, to] = hunk.range
  if (hunk.lines.reduce((sum, { length }) => sum + length, 0) > largestHunk)
    return 'its lines are too long for a diff'
  const secret = 'a line beside it may contain a private key or another secret'
  const masked = withoutRanges(text, shown, [from, to])
  const isSecret = /\bkind\\*["']?\s*:\s*\\*["']?Secret\b/.test(documentAround(text, from, to))
  if (masked.split('\n').some((line) => isSecretLine(line) || (isSecret && !fieldOfSecret.test(line))))
    return secret
  // A value of more lines than this would be a certificate or a key, which is found as such.
  if (isBelowSecret(withoutRanges(text, shown, [Math.max(0, from - 65_536), from]))) return secret
  return hunk.lines.every((line) => isVisible(line.replace(/\r?\n$/, '').replaceAll('\t', '')))
    ? undefined
    : 'a line beside it contains control characters'
}

function isSecretLine(line: string): boolean {
  if (opaque.test(line.replace(/sha256:[0-9a-f]{64}/g, ''))) return true
  return [...line.matchAll(keys)].some(([, key = '']) => secretKey.test(key))
}

/** Returns true if the lines after this text continue the value of a secret field in it. */
function isBelowSecret(before: string): boolean {
  let least = Number.POSITIVE_INFINITY
  for (const line of before.split('\n').reverse()) {
    const indent = line.search(/\S/)
    if (indent === -1 || indent >= least) continue
    least = indent
    if (isSecretLine(line)) return true
    if (indent === 0) return false
  }
  return false
}

function documentAround(text: string, from: number, to: number): string {
  const start = text.lastIndexOf('\n---', from)
  const end = text.indexOf('\n---', to)
  return text.slice(Math.max(0, start), end === -1 ? text.length : end)
}

function withoutRanges(text: string, ranges: readonly Range[], [from, to]: Range): string {
  let at = from
  let kept = ''
  for (const [start, end] of ranges) {
    if (end <= from || start >= to) continue
    kept += text.slice(at, Math.max(at, start))
    at = Math.max(at, end)
  }
  return kept + text.slice(at, Math.max(at, to))
}
