import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Mutant } from './mutants.ts'

// test/mutation/last-run.json: what was found out about each source, so that a later run repeats only what changed.

/** What is known about one source. Mutants are named by their index. */
export interface Measured {
  readonly digest: string
  readonly mutants: number
  /** File of tests that reaches the source → its digest, and the mutants that it killed. */
  readonly tests: Readonly<Record<string, { readonly digest: string; readonly killed: readonly number[] }>>
  /** Digest of all other files of tests. */
  readonly others: string
  readonly survivors: readonly Survivor[]
}

export interface Survivor {
  readonly index: number
  readonly line: number
  readonly mutator: string
  readonly original: string
  readonly replacement: string
  /** No test reaches it. */
  readonly isUnreached?: true
}

export type LastRun = Readonly<Record<string, Measured>>

const path = 'test/mutation/last-run.json'

/** Returns what the last run found, by source. */
export function readLastRun(): LastRun {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as LastRun) : {}
}

/** Writes down what was found about these sources; of others the earlier result stays. */
export function noteLastRun(found: LastRun): void {
  const all = Object.entries({ ...readLastRun(), ...found }).sort(([a], [b]) => (a < b ? -1 : 1))
  const text = JSON.stringify(Object.fromEntries(all), null, 2)
  // A list of numbers is one line: thousands of lines would say no more.
  const short = text.replace(/\[[\s\d,]+\]/g, (list) => list.replace(/\s+/g, '').replaceAll(',', ', '))
  writeFileSync(path, `${short}\n`)
}

/** Returns what a person needs to see of a mutant that no test killed. */
export function survivorOf(mutant: Mutant, isReached: boolean): Survivor {
  const { index, line, mutator, original, replacement } = mutant
  return { index, line, mutator, original, replacement, ...(!isReached && { isUnreached: true as const }) }
}
