import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { run } from './command.ts'
import { folders } from './state.ts'

// What `npm run rehearse -- --matrix` keeps of its rotations, so that a run that was stopped goes on where it was.

export interface Row {
  /** Ends in "-dirty" where the checkout had changes of its own. */
  readonly commit: string
  readonly name: string
  readonly isGood: boolean
  readonly cells: readonly string[]
}

/** Columns of docs/benchmarks.md, and where the evidence of a rotation has them. */
const columns: readonly (readonly [title: string, pattern: RegExp])[] = [
  ['wall time', /^whole command +(\S+ s)$/m],
  ['samples', /^samples +(\d+)$/m],
  ['unexpected', /^unexpected +(\d+)$/m],
  ['restarts of API servers and etcd', /^restarts, API server\/etcd (\d+)/m],
  ['NotReady', /^nodes NotReady +(\S+ s)/m],
]

/** The row of a rehearsal, from what it printed; "?" for what it did not come to. */
export function rowOf(of: Omit<Row, 'cells'>, evidence: string): Row {
  return { ...of, cells: columns.map(([, pattern]) => pattern.exec(evidence)?.[1] ?? '?') }
}

/** The rows of a commit, the last of each rehearsal. What was cut off by a kill is none. */
export function rowsOn(commit: string, text: string): Map<string, Row> {
  const rows = text.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as Row]
    } catch {
      return []
    }
  })
  return new Map(rows.filter((row) => row.commit === commit).map((row) => [row.name, row]))
}

/** Whether a rehearsal need not be run again: it was good, on these very sources. */
export function isDone(row: Row | undefined): boolean {
  return row?.isGood === true && !row.commit.endsWith('-dirty')
}

/** The rows as a table in Markdown. */
export function tableOf(rows: Iterable<Row>): string {
  const lines = [
    ['Kubernetes', ...columns.map(([title]) => title)],
    ['---', ...columns.map(() => '---')],
    ...[...rows].map(({ name, isGood, cells }) => [isGood ? name : `${name} (failed)`, ...cells]),
  ]
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('')
}

export async function currentCommit(): Promise<string> {
  const describe = ['git', 'describe', '--always', '--dirty', '--abbrev=40', '--exclude=*']
  return (await run(describe, { cwd: folders.checkout })).stdout.trim()
}

export function readRows(file: string, commit: string): Map<string, Row> {
  return rowsOn(commit, existsSync(file) ? readFileSync(file, 'utf8') : '')
}

/** A line that a kill cut off stays a line of its own. */
export function appendRow(file: string, row: Row): void {
  appendFileSync(file, `\n${JSON.stringify(row)}\n`)
}
