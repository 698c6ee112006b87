import { readFileSync } from 'node:fs'
import { join } from 'node:path'

// What test/mutation/mutate.ts tells the workers of vitest, by files in one folder.

/** Folder of the plan, the mutated sources and the outcomes. */
export function planFolder(): string {
  const folder = process.env.KCERT_MUTATION
  if (folder === undefined) throw new Error('run it by npm run mutate')
  return folder
}

export interface Plan {
  /** Tell which mutants each test reaches; or run the tests with mutants switched on. */
  readonly mode: 'coverage' | 'mutants'
  /** Test → mutants to try in it and how often the test reaches each of them; absent: this mutant, from the first import on. */
  readonly tests: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly fresh?: string
}

/** What one test reached. A mutant's count says how often. */
export interface Reached {
  readonly test: string
  readonly file: string
  readonly ms: number
  readonly mutants: Readonly<Record<string, number>>
}

/** One line of outcomes.jsonl. */
export type Outcome =
  | { readonly kind: 'reached'; readonly of: Reached }
  /** Reached by a file of tests outside its tests: on import, or in a hook. */
  | {
      readonly kind: 'loaded'
      readonly file: string
      readonly ms: number
      readonly mutants: readonly string[]
    }
  | { readonly kind: 'killed' | 'survived'; readonly mutant: string; readonly test: string }
  /** The test fails without a mutant once mutants ran: what it says about them does not count. */
  | { readonly kind: 'unclean'; readonly test: string }

/** Returns the file that a part of the plan is in. */
export function planFile(name: 'plan.json' | 'outcomes.jsonl' | 'current.json' | 'sources.json'): string {
  return join(planFolder(), name)
}

/** Returns the plan. */
export function readPlan(): Plan {
  return JSON.parse(readFileSync(planFile('plan.json'), 'utf8')) as Plan
}

/** Returns what was found out until now; a line that a kill cut off counts for nothing. */
export function readOutcomes(): Outcome[] {
  let text = ''
  try {
    text = readFileSync(planFile('outcomes.jsonl'), 'utf8')
  } catch {
    return []
  }
  return text
    .split('\n')
    .slice(0, -1)
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as Outcome]
      } catch {
        return []
      }
    })
}

/** Returns mutant → the test that killed it. What an unclean test says does not count. */
export function killsIn(outcomes: readonly Outcome[]): Map<string, string> {
  const unclean = uncleanIn(outcomes)
  const kills = outcomes.filter((one) => one.kind === 'killed' && !unclean.has(one.test))
  return new Map(kills.map((one) => [(one as { mutant: string }).mutant, (one as { test: string }).test]))
}

/** Returns the tests that cannot be repeated in one process. */
export function uncleanIn(outcomes: readonly Outcome[]): Set<string> {
  return new Set(outcomes.flatMap((one) => (one.kind === 'unclean' ? [one.test] : [])))
}

/** Returns the file of a test. */
export function fileOf(test: string): string {
  return test.split(' > ')[0]!
}
