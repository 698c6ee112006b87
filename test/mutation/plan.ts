import { readFileSync } from 'node:fs'
import { join } from 'node:path'

// Files in one folder, through which test/mutation/mutate.ts passes its plan to the workers of vitest.

/** Folder of the plan, the mutated sources and the outcomes. */
export function planFolder(): string {
  const folder = process.env.KCERT_MUTATION
  if (folder === undefined) throw new Error('run it by npm run mutate')
  return folder
}

export interface Plan {
  /** Find the mutants that each test covers, or run the tests with mutants activated. */
  readonly mode: 'coverage' | 'mutants'
  /**
   * Test → the mutants to run in it, and how often the test covers each of them. With `fresh`, that mutant is active from the
   * first import on.
   */
  readonly tests: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly fresh?: string
}

/** The mutants that one test covers. The count of a mutant is the number of executions. */
export interface Reached {
  readonly test: string
  readonly file: string
  readonly ms: number
  readonly mutants: Readonly<Record<string, number>>
}

/** One line of outcomes.jsonl. */
export type Outcome =
  | { readonly kind: 'reached'; readonly of: Reached }
  /** Covered by a test file outside its tests: on import, or in a hook. */
  | {
      readonly kind: 'loaded'
      readonly file: string
      readonly ms: number
      readonly mutants: readonly string[]
    }
  | { readonly kind: 'killed' | 'survived'; readonly mutant: string; readonly test: string }
  /** The test fails without a mutant after mutants ran. Its results for mutants are ignored. */
  | { readonly kind: 'unclean'; readonly test: string }

/** Returns the path of a file of the plan. */
export function planFile(name: 'plan.json' | 'outcomes.jsonl' | 'current.json' | 'sources.json'): string {
  return join(planFolder(), name)
}

/** Returns the plan. */
export function readPlan(): Plan {
  return JSON.parse(readFileSync(planFile('plan.json'), 'utf8')) as Plan
}

/** Returns the outcomes so far. A line that was cut by a kill is ignored. */
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

/** Returns mutant → the test that killed it. Results of unclean tests are ignored. */
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
