import { createHash } from 'node:crypto'

// What changes in a short text, line by line. Long values are shortened, and credentials are never shown.

const context = 2
const longest = 60

/** Returns what separates two texts: "- " and "+ " lines between lines that stay, far ones left out. None where they are equal. */
export function lineDiff(before: string, after: string): string[] {
  const [old, now] = [linesOf(before), linesOf(after)]
  const marked = compared(old, now)
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

type Marked = readonly [mark: ' ' | '-' | '+', line: string]

/** The longest common subsequence keeps its place. Texts are a few hundred lines at most. */
function compared(old: readonly string[], now: readonly string[]): Marked[] {
  const lengths = old.map(() => new Uint32Array(now.length + 1))
  lengths.push(new Uint32Array(now.length + 1))
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      lengths[i]![j] =
        old[i] === now[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!)
  const marked: Marked[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      marked.push([' ', old[i]!])
      i++
      j++
    } else if (i < old.length && (j === now.length || lengths[i + 1]![j]! >= lengths[i]![j + 1]!)) {
      marked.push(['-', old[i++]!])
    } else marked.push(['+', now[j++]!])
  }
  return marked
}

const secretField =
  /\b(client-key-data|token|password|id-token|refresh-token|access-token)(["']?\s*:\s*)\S.*$/i

function shown(line: string): string {
  const hidden = line.replace(secretField, '$1$2(hidden)')
  // What follows a credential on its line is hidden with it.
  return hidden.replace(/[A-Za-z0-9+/=_-]{60,}/g, (value) => {
    if (value.length <= longest) return value
    const digest = createHash('sha256').update(value).digest('hex').slice(0, 8)
    return `${value.slice(0, 16)}… (${value.length} characters, sha256 ${digest}…)`
  })
}
