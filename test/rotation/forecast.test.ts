import { expect, test } from 'vitest'
import type { Step } from '../../src/rotation/action.ts'
import { describeAction } from '../../src/rotation/effects.ts'
import { forecast } from '../../src/rotation/model/forecast.ts'
import { playbook } from '../../src/rotation/playbook.ts'
import { sectionNames } from '../../src/rotation/snapshot.ts'
import type { Settings } from '../../src/rotation/target-reading.ts'
import type { ClusterShape } from '../fakes/simulated-cluster.ts'
import { Scene } from './scene.ts'

// The forecast predicts the whole rotation, phase by phase, before any change. The rotation then performs the predicted actions.

const variants: readonly {
  readonly name: string
  readonly shape: ClusterShape
  readonly settings?: Partial<Settings>
}[] = [
  { name: 'kubeadm', shape: { controlPlanes: 2, workers: 1 } },
  { name: 'every flag', shape: { controlPlanes: 2, workers: 1, allFlags: true } },
  { name: 'units', shape: { controlPlanes: 2, workers: 1, isPlain: true } },
  { name: 'laid out by hand', shape: { controlPlanes: 2, workers: 1, isByHand: true } },
  {
    name: 'laid out by hand, no bridge',
    shape: { controlPlanes: 2, workers: 1, isByHand: true },
    settings: { withBridge: false },
  },
  { name: 'no bridge', shape: { controlPlanes: 2, workers: 1 }, settings: { withBridge: false } },
  { name: 'a leaked key', shape: { controlPlanes: 2, workers: 1 }, settings: { reason: 'compromise' } },
  { name: 'the cluster CA alone', shape: { controlPlanes: 2, workers: 1 }, settings: { cas: ['cluster'] } },
  {
    name: 'the front-proxy CA alone',
    shape: { controlPlanes: 2, workers: 1 },
    settings: { cas: ['front-proxy'] },
  },
]

function reported(steps: readonly Step[]): string[] {
  return (
    steps
      .flatMap((step) => (step.kind === 'together' ? step.lanes.flatMap((lane) => lane.steps) : [step]))
      // The plan omits a wait that has already finished.
      .filter(({ kind }) => kind !== 'wait')
      .map((action) => describeAction(action).replace(/-20\d\d(-\d\d){5}/g, '-DATE'))
      .sort()
  )
}

test.for(variants)(
  '$name: predicts every action of every phase, and none breaks a connection',
  async ({ shape, settings }) => {
    const scene = new Scene(shape, settings)
    scene.clients.expectsBridge = settings?.withBridge !== false && settings?.reason !== 'compromise'
    const { observed, target } = await scene.asProcess((rotation) => rotation.observe(sectionNames))
    const phases = [...forecast(playbook, observed, target)]
    for (const { phase, broken, open } of phases)
      expect([phase.number, broken, open]).toEqual([phase.number, undefined, []])
    for (const { phase, steps } of phases) {
      const { number } = phase
      scene.events.length = 0
      if (number === 12) scene.clients.expectsBridge = false
      await scene.run(number)
      const done = scene.events.flatMap((event) => (event.kind === 'action-started' ? [event.action] : []))
      expect([number, ...reported(done)]).toEqual([number, ...reported(steps)])
    }
    expect(scene.clients.failures).toEqual([])
  },
)
