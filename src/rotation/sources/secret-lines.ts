import { isVisible } from '../../errors/hidden-text.ts'
import type { Range } from '../../kubeconfig/node.ts'
import type { CaText } from './ca-text.ts'
import type { Hunk } from './unified-diff.ts'

// Which lines of a file a diff may show. When in doubt, the line is not shown, and the operator edits the file.

const largestHunk = 256 * 1024
const opaque = /(?<![A-Za-z0-9+/_=-])(?!sha256:)[A-Za-z0-9+/_=-]{40,}|-----|(?:[0-9A-Fa-f]{2}:){8}/
/** A line of base64, and a quoted value that continues on the next line. */
const part =
  /^\s*["']?[A-Za-z0-9+/]{4,}=*["',\\]*\s*$|^[\s"'#,+-]*[A-Za-z0-9+/]{16,}=*["',\\]*\s*$|\\\s*$|:\s*"[^"]*$|:\s*'[^']*$/
const secretWord =
  /passw|passphrase|\bpass\b|pwd|secret(?!Name|Ref|KeyRef)|token|credential|private|(?:^|[-_./"'\s])key\b|[a-z]Key\b|apikey|key-data|client-key|\bauth\b|:\/\/[^\s/@]*:[^\s/@]*@/i
/** Lines that name a kind or type, such as `kind: Secret`, have no secret. */
const kindLine = /^\s*["']?(?:apiVersion|kind|type)["']?\s*:\s*["']?[\w./-]{1,80}["']?,?\s*$/
const privateKey = /[\w-]\.key\\{0,9}["']?\s{0,99}:/
// The time of the patterns grows with the square of a line's length.
const longestLine = 1_000
/** Fields of a Secret beside its values. */
const fieldOfSecret =
  /^\s*(?:["']?(?:apiVersion|kind|name|namespace|type)["']?\s*:\s*["']?[\w./-]{1,80}["']?|["']?(?:metadata|data|stringData|[\w-]*ca[\w-]*\.(?:crt|pem)|tls\.crt)["']?\s*:[\s"'|>+-]*)?[\s{}[\],"']*$|^\s*#|^---/

/** Returns why a diff may not contain this hunk; undefined if it may. */
export function hiddenIn(text: string, { shown }: CaText, hunk: Hunk): string | undefined {
  const [from, to] = hunk.range
  if (hunk.lines.reduce((sum, { length }) => sum + length, 0) > largestHunk)
    return 'its lines are too long for a diff'
  const secret = 'a line beside it may contain a private key or another secret'
  // The line before and the line after show whether a value continues there.
  const around: Range = [text.lastIndexOf('\n', from - 2) + 1, endOfLine(text, to)]
  const masked = withoutRanges(text, shown, around)
  const document = documentAround(text, from, to)
  const isSecret = /\bkind\\{0,9}["']?\s{0,99}:\s{0,99}\\{0,9}["']?Secret\b/.test(document)
  if (isSecret && privateKey.test(document))
    return 'the Secret has a private key too, and both belong together'
  if (masked.split('\n').some((line) => isSecretLine(line) || (isSecret && !fieldOfSecret.test(line))))
    return secret
  // A value of more lines than this would be a certificate or a key, which is found as such.
  if (isBelowSecret(withoutRanges(text, shown, [Math.max(0, from - 65_536), from]))) return secret
  return hunk.lines.every((line) => isShowable(line.replace(/\r?\n$/, '').replaceAll('\t', '')))
    ? undefined
    : 'a line beside it contains control characters'
}

/** Returns true if a terminal shows the text as it is. A tall stack of marks would cover other lines. */
export function isShowable(text: string): boolean {
  return isVisible(text) && !/\p{M}{5}|^.?\p{M}/u.test(text)
}

function isSecretLine(line: string): boolean {
  if (line.length > longestLine || part.test(line)) return true
  if (opaque.test(line.replace(/sha256:[0-9a-f]{64}/g, ''))) return true
  return secretWord.test(line) && !kindLine.test(line)
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

/** Returns the YAML documents around these lines. */
function documentAround(text: string, from: number, to: number): string {
  const marks = Array.from(text.matchAll(/^---(?=\s)/gm), ({ index }) => index)
  return text.slice(
    marks.findLast((mark) => mark <= from) ?? 0,
    marks.find((mark) => mark >= to) ?? text.length,
  )
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end
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
