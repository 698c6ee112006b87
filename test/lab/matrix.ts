import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, globSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { withImports } from '../../scripts/imports.ts'
import { run } from './command.ts'
import { folders } from './state.ts'

// The results of `npm run rehearse -- --matrix`, so that an interrupted run can resume.

export interface Row {
  readonly commit: string
  /** Digest of the sources of a rotation, which other commits may share. Ends in "-dirty" where the checkout had uncommitted changes. */
  readonly sources: string
  readonly name: string
  readonly isGood: boolean
  readonly cells: readonly string[]
}

/** Columns of docs/benchmarks.md, and the patterns of their values in the evidence of a rotation. */
const columns: readonly (readonly [title: string, pattern: RegExp])[] = [
  ['wall time', /^whole command +(\S+ s)$/m],
  ['samples', /^samples +(\d+)$/m],
  ['unexpected', /^unexpected +(\d+)$/m],
  ['restarts of API servers and etcd', /^restarts, API server\/etcd (\d+)/m],
  ['NotReady', /^nodes NotReady +(\S+ s)/m],
]

/** Returns the row of a rehearsal from its output; "?" for missing values. */
export function rowOf(of: Omit<Row, 'cells'>, evidence: string): Row {
  return { ...of, cells: columns.map(([, pattern]) => pattern.exec(evidence)?.[1] ?? '?') }
}

/** Returns the rows of these sources, the last of each rehearsal. Truncated lines are ignored. */
function rowsOn(sources: string, text: string): Map<string, Row> {
  const rows = text.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as Row]
    } catch {
      return []
    }
  })
  return new Map(rows.filter((row) => row.sources === sources).map((row) => [row.name, row]))
}

/** Returns whether a rehearsal can be skipped: it passed on exactly these sources. */
export function isDone(row: Row | undefined): boolean {
  return row?.isGood === true && !row.sources.endsWith('-dirty')
}

/** Returns the rows as a Markdown table. */
export function tableOf(rows: Iterable<Row>): string {
  const lines = [
    ['Kubernetes', ...columns.map(([title]) => title), 'commit'],
    ['---', ...columns.map(() => '---'), '---'],
    ...[...rows].map(({ name, isGood, cells, commit }) => [
      isGood ? name : `${name} (failed)`,
      ...cells,
      commit.slice(0, 8),
    ]),
  ]
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('')
}

/** Returns the commit of this checkout and the digest of all that the commands of `rotate-ca` load. */
export async function currentSources(): Promise<Pick<Row, 'commit' | 'sources'>> {
  const git = async (...args: string[]): Promise<string> =>
    (await run(['git', ...args], { cwd: folders.checkout })).stdout.trim()
  const changed = await git('status', '--porcelain', '--untracked-files=no')
  return {
    commit: await git('rev-parse', 'HEAD'),
    sources: `${sourcesOfRotation(folders.checkout)}${changed === '' ? '' : '-dirty'}`,
  }
}

/** The manifest is left out: it is generated, and holds the help of every command. */
export function sourcesOfRotation(checkout: string): string {
  const commands = globSync(`${checkout}/src/commands/rotate-ca{,/**/*}.ts`, {
    exclude: (path) => path.endsWith('.test.ts'),
  })
  const hash = createHash('sha256')
  for (const file of withImports([...commands, `${checkout}/src/main.ts`])) {
    if (!file.endsWith('.json')) hash.update(`${relative(checkout, file)}\n`).update(readFileSync(file))
  }
  return hash.digest('hex').slice(0, 40)
}

export function readRows(file: string, sources: string): Map<string, Row> {
  return rowsOn(sources, existsSync(file) ? readFileSync(file, 'utf8') : '')
}

/** A line truncated by a kill stays separate. */
export function appendRow(file: string, row: Row): void {
  appendFileSync(file, `\n${JSON.stringify(row)}\n`)
}
