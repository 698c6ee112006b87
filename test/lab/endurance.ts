import { rmSync } from 'node:fs'
import { down, up } from './cluster.ts'
import { describeError } from './lab-error.ts'
import { restore, save } from './save.ts'
import { paths } from './state.ts'
import { type Steps, silentSteps } from './steps.ts'

/**
 * Runs `up`, `save`, `restore` and `down` repeatedly. Prints a line for each round and the number of successful ones. Uses the
 * cluster that tests use most, with one control plane and one worker. Returns 0 when all rounds succeed.
 */
export async function endure(times: number, steps: Steps): Promise<number> {
  const name = 'endurance'
  const begun = performance.now()
  const worst = { up: 0, restore: 0 }
  let passed = 0
  for (let round = 1; round <= times; round++) {
    try {
      const upMs = await timed(() => up({ controlPlanes: 1, workers: 1 }, silentSteps))
      await save(name, silentSteps)
      const restoreMs = await timed(() => restore(name, silentSteps))
      const downMs = await timed(() => down(silentSteps))
      worst.up = Math.max(worst.up, upMs)
      worst.restore = Math.max(worst.restore, restoreMs)
      passed++
      steps.note(`${round}: up ${seconds(upMs)}, restore ${seconds(restoreMs)}, down ${seconds(downMs)}`)
    } catch (error) {
      steps.note(`${round}: ${describeError(error)}`)
    }
  }
  rmSync(paths.save(name), { recursive: true, force: true })
  const total = seconds(performance.now() - begun)
  steps.note(
    `${passed} of ${times} came through in ${total}; worst up ${seconds(worst.up)}, worst restore ${seconds(worst.restore)}`,
  )
  return passed === times ? 0 : 1
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
