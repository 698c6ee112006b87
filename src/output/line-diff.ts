import { createHash } from 'node:crypto'
import { diff } from 'node:util'

// The line-by-line difference of a short text. Long values are shortened, and credentials are never shown.

const context = 2
const longest = 60
/** util.diff's operation codes, from -1. */
const marks = ['+', ' ', '-']

/**
 * Returns the difference of two texts: "- " and "+ " lines between unchanged lines, without distant ones. Empty for equal texts.
 */
export function lineDiff(before: string, after: string): string[] {
  const marked = diff(linesOf(before), linesOf(after)).map(
    ([operation, line]) => [marks[operation + 1] ?? ' ', line] as const,
  )
  const isNear = marked.map((_, index) =>
    marked.slice(Math.max(0, index - context), index + context + 1).some(([mark]) => mark !== ' '),
  )
  return marked.flatMap(([mark, line], index) => {
    if (isNear[index]) return [`${mark} ${shown(line)}`.trimEnd()]
    return isNear[index - 1] === true && index > 0 ? ['  …'] : []
  })
}

function linesOf(text: string): string[] {
  const lines = text.split('\n')
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

const secretField =
  /\b(client-key-data|token|password|id-token|refresh-token|access-token)(["']?\s*:\s*)\S.*$/i

function shown(line: string): string {
  const hidden = line.replace(secretField, '$1$2(hidden)')
  // The rest of the line after a credential is hidden with it.
  return hidden.replace(/[A-Za-z0-9+/=_-]{60,}/g, (value) => {
    if (value.length <= longest) return value
    const digest = createHash('sha256').update(value).digest('hex').slice(0, 8)
    return `${value.slice(0, 16)}… (${value.length} characters, sha256 ${digest}…)`
  })
}
