import type { Range } from '../../kubeconfig/node.ts'
import { type Splice, spliced } from './ca-text.ts'

// The unified diff of splices, for `git apply` and `patch -p1`. Comparing all lines would take long for hostile files.

const context = 3

/** Lines from `first` to before `end`, from 0, and their replacement. */
interface Change {
  readonly first: number
  readonly end: number
  readonly lines: readonly string[]
}

export interface Hunk {
  /** Offsets of its lines in the text. */
  readonly range: Range
  readonly splices: readonly Splice[]
  /** Lines with their marks and line ends, without the header. */
  readonly lines: readonly string[]
  readonly first: number
  readonly removed: number
  readonly added: number
}

/** Returns the hunks that splices, which are in order, produce in a text. */
export function hunksOf(text: string, splices: readonly Splice[]): readonly Hunk[] {
  const lines = text.split(/(?<=\n)/)
  const starts = [0]
  for (const line of lines) starts.push((starts.at(-1) ?? 0) + line.length)
  const startOf = (line: number): number => starts[line] ?? text.length
  const changes: (Change & { readonly splices: Splice[] })[] = []
  for (const group of together(splices, starts)) {
    const edited = spliced(
      text.slice(startOf(group.first), startOf(group.end)),
      group.splices.map((one) => ({
        ...one,
        start: one.start - startOf(group.first),
        end: one.end - startOf(group.first),
      })),
    )
    changes.push({ ...group, lines: edited === '' ? [] : edited.split(/(?<=\n)/) })
  }
  const nearby: (typeof changes)[] = []
  for (const change of changes) {
    const last = nearby.at(-1)
    if (last !== undefined && change.first - (last.at(-1)?.end ?? 0) <= 2 * context) last.push(change)
    else nearby.push([change])
  }
  return nearby.map((its) => {
    const from = Math.max(0, (its[0]?.first ?? 0) - context)
    const to = Math.min(lines.length, (its.at(-1)?.end ?? 0) + context)
    const marked: string[] = []
    const mark = (sign: string, some: readonly string[]) => {
      for (const line of some) marked.push(sign + line)
    }
    let at = from
    for (const { first, end, lines: added } of its) {
      mark(' ', lines.slice(at, first))
      mark('-', lines.slice(first, end))
      mark('+', added)
      at = end
    }
    mark(' ', lines.slice(at, to))
    const count = (sign: string): number => marked.filter((line) => line.startsWith(sign)).length
    return {
      range: [startOf(from), startOf(to)],
      splices: its.flatMap((change) => change.splices),
      lines: marked,
      first: from,
      removed: to - from,
      added: count(' ') + count('+'),
    }
  })
}

/** Groups splices that change the same lines. */
function together(splices: readonly Splice[], starts: readonly number[]) {
  const groups: { first: number; end: number; splices: Splice[] }[] = []
  let line = 0
  for (const splice of splices) {
    while ((starts[line + 1] ?? Number.POSITIVE_INFINITY) <= splice.start) line++
    const first = line
    while ((starts[line + 1] ?? Number.POSITIVE_INFINITY) <= splice.end) line++
    const last = groups.at(-1)
    if (last !== undefined && first < last.end) {
      last.end = Math.max(last.end, line + 1)
      last.splices.push(splice)
    } else groups.push({ first, end: line + 1, splices: [splice] })
    line = first
  }
  return groups
}

/** Returns the diff of one file; empty without hunks. `name` is its path with slashes, below the root. */
export function unifiedDiff(name: string, hunks: readonly Hunk[]): string {
  if (hunks.length === 0) return ''
  // As in git: a tab ends a name with spaces.
  const end = name.includes(' ') ? '\t' : ''
  let shift = 0
  const parts = hunks.map(({ first, removed, added, lines }) => {
    const header = `@@ -${first + 1},${removed} +${first + 1 + shift},${added} @@\n`
    shift += added - removed
    const body = lines.map((line) => (line.endsWith('\n') ? line : `${line}\n\\ No newline at end of file\n`))
    return header + body.join('')
  })
  return `--- a/${name}${end}\n+++ b/${name}${end}\n${parts.join('')}`
}
