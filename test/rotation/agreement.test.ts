import { expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type { Action, Step } from '../../src/rotation/action.ts'
import { describeAction } from '../../src/rotation/effects.ts'
import { checkPlan } from '../../src/rotation/model/check.ts'
import { phaseNumbered } from '../../src/rotation/playbook.ts'
import { sectionNames } from '../../src/rotation/snapshot.ts'
import type { Settings } from '../../src/rotation/target-reading.ts'
import { Scene } from './scene.ts'

// Corrupted plans: missing, moved or mixed steps, and skipped phases. If the model accepts such a plan and kcert runs any part of
// it, no simulated client may fail. The reverse is allowed: the model may refuse a harmless plan.

class Dice {
  private state: number

  constructor(seed: number) {
    this.state = Math.imul(seed, 2_654_435_761) >>> 0
  }

  /** 0 … sides - 1 */
  roll(sides: number): number {
    this.state = (Math.imul(this.state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((this.state / 0x1_0000_0000) * sides)
  }
}

const spoilers: readonly ((steps: Step[], dice: Dice) => Step[])[] = [
  (steps) => steps,
  // Without one step.
  (steps, dice) => steps.filter((_, i, all) => i !== (i === 0 ? dice.roll(all.length) : -1)),
  (steps, dice) => without(steps, dice.roll(steps.length)),
  // One step in another position.
  (steps, dice) => moved(steps, dice.roll(steps.length), dice.roll(steps.length)),
  (steps, dice) => moved(steps, dice.roll(steps.length), 0),
  (steps, dice) => moved(steps, dice.roll(steps.length), steps.length - 1),
  // Without waits and probes.
  (steps) => steps.filter(({ kind }) => kind !== 'wait' && kind !== 'probe'),
  // Without restarts and rollouts.
  (steps) => steps.filter(({ kind }) => kind !== 'restart' && kind !== 'rollout'),
  (steps) => [...steps].reverse(),
  (steps, dice) =>
    steps
      .map((step) => [dice.roll(1_000), step] as const)
      .sort(([a], [b]) => a - b)
      .map(([, step]) => step),
  // Two steps in other positions.
  (steps, dice) =>
    moved(
      moved(steps, dice.roll(steps.length), dice.roll(steps.length)),
      dice.roll(steps.length),
      dice.roll(steps.length),
    ),
  // All sequential steps in parallel.
  (steps) => [
    {
      kind: 'together',
      atOnce: 50,
      lanes: steps.flatMap((step, i) =>
        step.kind === 'together' ? step.lanes : [{ name: `${i}`, steps: [step] }],
      ),
    },
  ],
]

function without<Item>(items: readonly Item[], index: number): Item[] {
  return items.filter((_, i) => i !== index)
}

function moved<Item>(items: readonly Item[], from: number, to: number): Item[] {
  const rest = without(items, from)
  return items[from] === undefined ? rest : [...rest.slice(0, to), items[from], ...rest.slice(to)]
}

function flat(steps: readonly Step[]): Action[] {
  return steps.flatMap((step) =>
    step.kind === 'together' ? step.lanes.flatMap((lane) => lane.steps) : [step],
  )
}

const allSettings: readonly Partial<Settings>[] = [
  {},
  {},
  { withBridge: false },
  { cas: ['cluster'] },
  { cas: ['front-proxy'] },
]

/** Runs a phase as kcert does. Returns false when it is refused or does not finish. */
async function tryPhase(scene: Scene, phase: number): Promise<boolean> {
  try {
    await scene.run(phase)
    return true
  } catch (error) {
    if (error instanceof KcertError) return false
    throw error
  }
}

async function verdictOf(seed: number): Promise<'refused' | 'empty' | 'done' | 'stopped'> {
  const dice = new Dice(seed)
  const settings = allSettings[dice.roll(allSettings.length)]!
  const allFlags = dice.roll(3) === 0
  const scene = new Scene({ controlPlanes: 2, workers: 1, namespaces: 3, seed, allFlags }, settings)
  const phase = [2, 4, 5, 5, 7, 7, 9, 9, 9, 10, 12, 12, 12][dice.roll(13)]!
  const skipped = dice.roll(2) === 0 ? 2 + dice.roll(phase - 1) : 0
  for (let before = 1; before < phase; before++) {
    if (before !== skipped && !(await tryPhase(scene, before))) break
  }
  if (phase === 12) scene.clients.expectsBridge = false
  if (settings.withBridge === false) scene.clients.expectsBridge = false
  const reported: string[] = []
  const outcome = await scene.asProcess(async (rotation) => {
    const { observed, target } = await rotation.observe(sectionNames)
    const planned = phaseNumbered(phase).plan(observed, target)
    const apart = dice.roll(2) === 0 ? planned : flat(planned)
    const steps = spoilers[dice.roll(spoilers.length)]!([...apart], dice)
    if (steps.length === 0) return 'empty'
    reported.push(...flat(steps).map(describeAction))
    if (checkPlan(observed, target, steps) !== undefined) return 'refused'
    scene.clients.failures.length = 0
    try {
      await rotation.performAll(steps)
      return 'done'
    } catch (error) {
      if (!(error instanceof KcertError)) throw error
      return 'stopped'
    }
  })
  if (outcome === 'done' || outcome === 'stopped') {
    await scene.cluster.time.pass(400_000)
    expect(
      scene.clients.failures,
      `seed ${seed}, phase ${phase}, without ${skipped}, ${JSON.stringify(settings)}:\n${reported.join('\n')}`,
    ).toEqual([])
  }
  return outcome
}

// KCERT_SEEDS=1-2000 runs more seeds.
const [from = 1, to = 40] = (process.env.KCERT_SEEDS ?? '')
  .split('-')
  .map((text) => Number(text) || undefined)

test('no client fails on any corrupted plan that the model accepts', async () => {
  const counts = { refused: 0, empty: 0, done: 0, stopped: 0 }
  for (let seed = from; seed <= to; seed++) counts[await verdictOf(seed)]++
  expect(counts.refused).toBeGreaterThan((to - from) / 10)
  expect(counts.done).toBeGreaterThan((to - from) / 10)
}, 3_000_000)
