import { globSync, readFileSync } from 'node:fs'
import { publish, tableOf } from '../reliability/page.ts'
import { readLastRun, type Survivor } from './last-run.ts'
import { digestOf } from './mutants.ts'
import type { Target } from './targets.ts'

/** A mutant with the same behaviour as the original. */
interface Equivalent {
  readonly file: string
  readonly original: string
  readonly replacement: string
  readonly why: string
}

/** The percentage of mutants that the tests must kill. */
const requiredScore = 95

/**
 * Prints score and survivors of the selected sources. Returns the exit status: 3 when the score is too low, or nothing was
 * measured.
 */
export function report(targets: readonly Target[], isSelected: (file: string) => boolean): number {
  const last = readLastRun()
  const equivalents = JSON.parse(readFileSync('test/mutation/equivalent.json', 'utf8')) as Equivalent[]
  const reasonOf = (file: string, { original, replacement }: Survivor): string | undefined =>
    equivalents.find(
      (one) => one.file === file && one.original === original && one.replacement === replacement,
    )?.why
  const files = [...new Set(targets.flatMap(({ sources }) => globSync([...sources])))]
    .filter(isSelected)
    .sort()
  const measured = files.filter((file) => last[file]?.digest === digestOf(file))
  const rows = measured.map((file) => {
    const { mutants, survivors } = last[file]!
    const explained = survivors.filter((one) => reasonOf(file, one) !== undefined).length
    for (const one of survivors) {
      const why = reasonOf(file, one) ?? (one.isUnreached ? 'NO TEST REACHES IT' : 'SURVIVES')
      const [from, to] = [one.original, one.replacement].map((text) =>
        text.replace(/\s+/g, ' ').slice(0, 100),
      )
      process.stdout.write(`${file}:${one.line} ${one.mutator}: ${from} → ${to}: ${why}\n`)
    }
    return { file, mutants, killed: mutants - survivors.length, survivors: survivors.length, explained }
  })
  const sum = (key: 'mutants' | 'killed' | 'survivors' | 'explained'): number =>
    rows.reduce((total, row) => total + row[key], 0)
  const cells = (row: Omit<(typeof rows)[number], 'file'>): (string | number)[] => [
    row.mutants,
    row.killed,
    `${scoreOf(row).toFixed(1)} %`,
    row.survivors,
    row.explained,
  ]
  const all = {
    mutants: sum('mutants'),
    killed: sum('killed'),
    survivors: sum('survivors'),
    explained: sum('explained'),
  }
  const head = ['source', 'mutants', 'killed', 'score', 'survivors', 'of these equivalent']
  const table = tableOf(head, [...rows.map((row) => [row.file, ...cells(row)]), ['all', ...cells(all)]])
  const open = files.filter((file) => !measured.includes(file))
  const missing = open.length === 0 ? '' : `\n\nNot measured: ${open.join(', ')}.`
  publish('mutation', `${table}${missing}`)
  return scoreOf(all) >= requiredScore ? 0 : 3
}

/** The score of no mutants is 0, because nothing was measured. */
function scoreOf({ mutants, killed }: { mutants: number; killed: number }): number {
  return (100 * killed) / Math.max(mutants, 1)
}
