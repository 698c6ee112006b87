import { appendFileSync, writeFileSync } from 'node:fs'
import { type RunnerTask, type RunnerTestCase, type RunnerTestFile, TestRunner } from 'vitest'
import { killsIn, type Outcome, type Plan, planFile, readOutcomes, readPlan } from './plan.ts'

// Runs a test once for every mutant that it covers, in one process, with modules imported once. Each repetition of the test
// activates one mutant. The first and the last run without a mutant. `fresh` runs mutants whose effect requires a fresh import.

/** The state that Stryker's instrumented sources read. */
interface Switch {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  hitCount?: number | undefined
  hitLimit?: number | undefined
  mutantCoverage?: { static: Record<string, number>; perTest: Record<string, Record<string, number>> }
}

const globals = globalThis as { __stryker__?: Switch }
globals.__stryker__ ??= {}
const mutants = globals.__stryker__

/** A loop that executes its mutant this many times more often than without it is infinite. */
const hitLimitFactor = 100

/** A mutant that slows a test down this much hangs. */
const timeoutMs = 5_000
const timeoutFactor = 10

export default class MutantRunner extends TestRunner {
  private readonly plan: Plan = readPlan()
  private readonly killed = new Set(killsIn(readOutcomes()).keys())
  private readonly startedMs = performance.now()
  private queue: string[] = []
  private cleanMs = 0
  private isClean = true

  constructor(config: ConstructorParameters<typeof TestRunner>[0]) {
    super(config)
    mutants.activeMutant = this.plan.fresh
  }

  override async onBeforeRunTask(test: RunnerTask): Promise<void> {
    await super.onBeforeRunTask(test)
    if (this.plan.mode === 'coverage' || this.plan.fresh !== undefined) return
    this.queue = Object.keys(this.plan.tests[keyOf(test)] ?? {}).filter((one) => !this.killed.has(one))
    this.isClean = true
    if (this.queue.length === 0) test.mode = 'skip'
    else (test as { repeats?: number }).repeats = this.queue.length + 1
  }

  override onBeforeTryTask(test: RunnerTask, options: { retry: number; repeats: number }): void {
    super.onBeforeTryTask(test, options)
    if (this.plan.mode === 'coverage') mutants.currentTestId = keyOf(test)
    else if (this.plan.fresh === undefined) this.activate(this.queue[options.repeats - 1], keyOf(test))
  }

  private activate(mutant: string | undefined, test: string): void {
    mutants.activeMutant = this.isClean ? mutant : undefined
    if (mutant === undefined) return
    mutants.hitCount = 0
    mutants.hitLimit = hitLimitFactor * (this.plan.tests[test]![mutant]! + 10)
    const deadline = Date.now() + timeoutMs + timeoutFactor * this.cleanMs
    writeFileSync(planFile('current.json'), JSON.stringify({ mutant, test, deadline }))
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const run = TestRunner.getTestFn(test)!
    const mutant = mutants.activeMutant
    if (this.plan.mode === 'coverage' || this.plan.fresh !== undefined) return run()
    if (mutant === undefined && test.result?.repeatCount !== 0 && !this.isClean) return
    const started = performance.now()
    try {
      await run()
    } catch (error) {
      if (mutant === undefined) throw error
      this.recordOutcome({ kind: 'killed', mutant, test: keyOf(test) })
      return
    }
    if (test.result?.repeatCount === 0) this.cleanMs = performance.now() - started
    else if (mutant !== undefined) this.recordOutcome({ kind: 'survived', mutant, test: keyOf(test) })
  }

  override async onAfterRetryTask(
    test: RunnerTestCase,
    options: { retry: number; repeats: number },
  ): Promise<void> {
    await super.onAfterRetryTask(test, options)
    mutants.currentTestId = undefined
    if (this.plan.mode === 'coverage') return
    if (this.plan.fresh !== undefined) {
      if (test.result?.state === 'fail')
        this.recordOutcome({ kind: 'killed', mutant: this.plan.fresh, test: `${keyOf(test)} (fresh)` })
      return
    }
    if (test.result?.state === 'fail' && this.isClean) {
      const mutant = mutants.activeMutant
      if (mutant !== undefined) this.recordOutcome({ kind: 'killed', mutant, test: keyOf(test) })
      else {
        this.isClean = false
        this.recordOutcome({ kind: 'unclean', test: keyOf(test) })
      }
    }
    mutants.activeMutant = undefined
    mutants.hitCount = undefined
    if (test.result !== undefined) {
      delete test.result.errors
      test.result.state = 'pass'
    }
  }

  override onAfterRunFiles(files: RunnerTestFile[]): void {
    super.onAfterRunFiles(files)
    if (this.plan.mode !== 'coverage') return
    const { perTest = {}, static: loaded = {} } = mutants.mutantCoverage ?? {}
    const [file] = files
    const ms = performance.now() - this.startedMs
    this.recordOutcome({ kind: 'loaded', file: file!.name, ms, mutants: Object.keys(loaded) })
    for (const test of testsOf(files)) {
      const reached = perTest[keyOf(test)]
      if (reached === undefined || test.result?.state !== 'pass') continue
      const of = { test: keyOf(test), file: file!.name, ms: test.result.duration ?? 0, mutants: reached }
      this.recordOutcome({ kind: 'reached', of })
    }
  }

  private recordOutcome(outcome: Outcome): void {
    if (outcome.kind === 'killed') this.killed.add(outcome.mutant)
    appendFileSync(planFile('outcomes.jsonl'), `${JSON.stringify(outcome)}\n`)
  }
}

function keyOf(test: RunnerTask): string {
  return `${test.file.name} > ${test.fullTestName}`
}

function testsOf(tasks: readonly RunnerTask[]): RunnerTestCase[] {
  return tasks.flatMap((task) => ('tasks' in task ? testsOf(task.tasks) : [task as RunnerTestCase]))
}
