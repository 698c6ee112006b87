import { type Action, actionsOf, type Step } from './action.ts'
import { changeLines } from './change-lines.ts'
import { durationOf, effectsOf } from './effects.ts'
import { type ForecastPhase, forecast } from './model/forecast.ts'
import { firstOf, type Playbook, type Refusal } from './phase.ts'
import type { PhasePlanView, RotationPlan, StepView } from './report.ts'
import type { PlannedPhase } from './runner.ts'
import type { Snapshot } from './snapshot.ts'
import type { Target } from './target.ts'
import { caViews, keyView, timeOf } from './views.ts'

/**
 * Returns the plan of every phase, each on the snapshot that the earlier phases will leave (model/forecast.ts), with the
 * connections that it would break. `rollEveryMs`: interval between the starts of two rollouts. Writes nothing.
 */
export function wholePlan(
  playbook: Playbook,
  observed: Snapshot,
  target: Target,
  rollEveryMs = 0,
): RotationPlan {
  const phases: PhasePlanView[] = []
  const blockers: Refusal[] = []
  for (const foreseen of forecast(playbook, observed, target)) {
    const { phase, broken } = foreseen
    phases.push(foreseenView(foreseen, rollEveryMs))
    blockers.push(
      ...playbook.preflight(observed, target, phase),
      ...phase.refusals(foreseen.observed, foreseen.target),
      ...(broken === undefined ? [] : [broken]),
    )
  }
  const distinct = new Map(blockers.map((refusal) => [refusal.what, refusal]))
  return planOf(playbook, 'all', phases, observed, target, [...distinct.values()])
}

function foreseenView(foreseen: ForecastPhase, rollEveryMs: number): PhasePlanView {
  const { phase, open, durationMs, observed, target } = foreseen
  const view = phaseView({ ...phase, ...foreseen }, observed, target)
  const rolls = view.steps.filter(({ kind }) => kind === 'rollout').length
  const stays = open.length === 0 ? [] : [`would stay incomplete: ${firstOf(open)}`]
  return {
    ...view,
    estimatedSeconds: Math.round(Math.max(durationMs, rolls * rollEveryMs) / 1000),
    remarks: [...view.remarks, ...stays],
  }
}

/** Returns the plan of only these phases; for the first one, exactly what it would do. */
export function phasePlan(
  playbook: Playbook,
  planned: readonly PlannedPhase[],
  observed: Snapshot,
  target: Target,
): RotationPlan {
  const phases = planned.map((one) => phaseView(one, observed, target))
  return planOf(playbook, 'phase', phases, observed, target, [])
}

/** Returns one phase's plan in the form of reports. */
export function phaseView(
  { number, title, risk, gaps, steps, remarks }: PlannedPhase,
  observed: Snapshot,
  target: Target,
): PhasePlanView {
  // 5,000 nodes have the same lines, so only one copy of them is kept.
  const shared = new Map<string, string[]>()
  return {
    number,
    title,
    // With --etcd-clients unknown, a phase that otherwise only writes restarts members of etcd.
    risk: risk === 'writes' && steps.flatMap(actionsOf).some(isRestart) ? 'restarts' : risk,
    pending: gaps.map(({ at, what }) => ({ at, what })),
    steps: steps.flatMap((step, group) => stepViews(step, group, observed, target, shared)),
    remarks: [...remarks],
    estimatedSeconds: Math.round(durationOf(steps, observed.atMs)),
  }
}

function isRestart({ kind }: Action): boolean {
  return kind === 'restart' || kind === 'rollout'
}

function planOf(
  playbook: Playbook,
  scope: RotationPlan['scope'],
  phases: readonly PhasePlanView[],
  observed: Snapshot,
  target: Target,
  blockers: readonly Refusal[],
): RotationPlan {
  // A playbook without rollouts does not observe pods.
  const byUid = new Map((observed.pods ?? []).map((pod) => [pod.uid, pod]))
  const pods = Map.groupBy(byUid.values(), ({ workload }) => workload)
  return {
    apiVersion: 'kcert/v1',
    kind: 'RotationPlan',
    generatedAt: timeOf(observed.atMs),
    scope,
    cas: caViews(target),
    ...keyView(target),
    ...playbook.impactOf(observed, target),
    phases: [...phases],
    restarts: byPhase(phases, 'restart').map(([process, numbers]) => ({ process, phases: numbers })),
    rollouts: byPhase(phases, 'rollout').map(([workload, numbers]) => {
      return { workload, phases: numbers, pods: pods.get(workload)?.length ?? 0 }
    }),
    blockers: blockers.map(({ what, why, next }) => ({ what, why, next })),
    estimatedSeconds: phases.reduce((sum, { estimatedSeconds }) => sum + estimatedSeconds, 0),
  }
}

function byPhase(phases: readonly PhasePlanView[], kind: StepView['kind']): [string, number[]][] {
  const found = phases.flatMap(({ number, steps }) =>
    steps.filter((step) => step.kind === kind).map(({ at }) => ({ at, number })),
  )
  const byPlace = Map.groupBy(found, ({ at }) => at)
  return Array.from(byPlace, ([at, its]) => [at, [...new Set(its.map(({ number }) => number))]])
}

function stepViews(
  step: Step,
  group: number,
  observed: Snapshot,
  target: Target,
  shared: Map<string, string[]>,
): StepView[] {
  const viewOf = (action: Action, lane: Pick<StepView, 'lane' | 'group'> = {}): StepView => {
    const changes = changeLines(action, observed, target)
    const { words, place } = effectsOf(action)
    return {
      ...{ kind: action.kind, what: words(action), at: place(action), ...lane },
      ...(changes.length > 0 && { changes: sharedLines(shared, changes) }),
    }
  }
  if (step.kind !== 'together') return [viewOf(step)]
  return step.lanes.flatMap(({ name, steps }) => steps.map((action) => viewOf(action, { lane: name, group })))
}

function sharedLines(shared: Map<string, string[]>, lines: readonly string[]): string[] {
  const key = lines.join('\n')
  const known = shared.get(key) ?? [...lines]
  shared.set(key, known)
  return known
}
