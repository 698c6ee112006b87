import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { Mutant } from './mutants.ts'

// test/mutation/last-run: the results for each source, so that a later run repeats only what changed. One file for each source,
// because several people measure different sources at the same time.

/** The results for one source. Mutants are identified by their index. */
export interface Measured {
  readonly digest: string
  readonly mutants: number
  /** Test file that covers the source → its digest, and the mutants that it killed. */
  readonly tests: Readonly<Record<string, { readonly digest: string; readonly killed: readonly number[] }>>
  /** Digest of all other test files. */
  readonly others: string
  readonly survivors: readonly Survivor[]
}

export interface Survivor {
  readonly index: number
  readonly line: number
  readonly mutator: string
  readonly original: string
  readonly replacement: string
  /** No test covers it. */
  readonly isUnreached?: true
}

export type LastRun = Readonly<Record<string, Measured>>

const folder = 'test/mutation/last-run'

/** Returns the results of the last run, by source. */
export function readLastRun(): LastRun {
  const sourceOf = (path: string): string => relative(folder, path).replace(/\.json$/, '')
  return Object.fromEntries(
    globSync(`${folder}/**/*.json`).map((path) => [
      sourceOf(path),
      JSON.parse(readFileSync(path, 'utf8')) as Measured,
    ]),
  )
}

/** Writes the results for a source. */
export function writeLastRun(source: string, measured: Measured): void {
  const text = JSON.stringify(measured, null, 2)
  // A list of numbers takes one line instead of thousands.
  const short = text.replace(/\[[\s\d,]+\]/g, (list) => list.replace(/\s+/g, '').replaceAll(',', ', '))
  const path = join(folder, `${source}.json`)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${short}\n`)
}

/** Returns the report of a mutant that no test killed. */
export function survivorOf(mutant: Mutant, isCovered: boolean): Survivor {
  const { index, line, mutator, original, replacement } = mutant
  return { index, line, mutator, original, replacement, ...(!isCovered && { isUnreached: true as const }) }
}
