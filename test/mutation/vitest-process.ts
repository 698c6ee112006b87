import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Outcome, type Plan, planFile } from './plan.ts'
import { noSandbox, sandboxed } from './sandbox.ts'

const freshTimeoutMs = 120_000

/** Runs vitest once on these test files, until it ends. A hanging mutant is killed. Returns the exit status. */
export async function runVitest(plan: Plan, files: readonly string[]): Promise<number> {
  writeFileSync(planFile('plan.json'), JSON.stringify(plan))
  rmSync(planFile('current.json'), { force: true })
  const args = [
    'run',
    '--config',
    'test/mutation/vitest.config.ts',
    '--configLoader=native',
    '--reporter=dot',
    '--bail=1',
    ...files,
  ]
  const stdio = process.env.KCERT_MUTATION_LOUD === undefined ? 'ignore' : 'inherit'
  // In a separate process group, so that its workers end with it.
  const child = spawn(...sandboxed('vitest', ...args), {
    stdio,
    detached: true,
    // vitest writes a token there at its first start, and the sandbox has no other writable folder for it.
    env: { ...process.env, CI: '1', XDG_DATA_HOME: process.env.KCERT_MUTATION },
  })
  const ended = new Promise<number>((resolve) => child.once('close', (status) => resolve(status ?? 1)))
  const stop = (): void => stopGroup(child)
  process.once('exit', stop)
  const startedMs = Date.now()
  try {
    for (;;) {
      const status = await Promise.race([ended, sleep(500)])
      if (status === noSandbox) throw new Error('the sandbox cannot be set up: see KCERT_MUTATION_LOUD=1')
      if (status !== undefined) return status
      if (plan.fresh !== undefined && Date.now() - startedMs > freshTimeoutMs) {
        stop()
        recordOutcome({ kind: 'killed', mutant: plan.fresh, test: `${files[0]} > (it hangs)` })
        return ended
      }
      const hanging = currentOf()
      if (hanging === undefined || Date.now() < hanging.deadline) continue
      stop()
      recordOutcome({ kind: 'killed', mutant: hanging.mutant, test: hanging.test })
      return ended
    }
  } finally {
    process.removeListener('exit', stop)
  }
}

/** Appends an outcome to the results. */
export function recordOutcome(outcome: Outcome): void {
  appendFileSync(planFile('outcomes.jsonl'), `${JSON.stringify(outcome)}\n`)
}

function stopGroup({ pid, exitCode }: ChildProcess): void {
  if (pid !== undefined && exitCode === null) process.kill(-pid, 'SIGKILL')
}

function currentOf(): { mutant: string; test: string; deadline: number } | undefined {
  try {
    return JSON.parse(readFileSync(planFile('current.json'), 'utf8'))
  } catch {
    return undefined
  }
}
