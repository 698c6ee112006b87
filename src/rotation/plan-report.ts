import type { Action, Step } from './action.ts'
import { blastRadiusOf } from './blast-radius.ts'
import { changeLines } from './change-lines.ts'
import { rereadMs } from './convergence.ts'
import { durationOf } from './duration.ts'
import { describeAction } from './journal.ts'
import { presentersOf, verifiersOf } from './parties.ts'
import type { Gap, Phase, Refusal } from './phase.ts'
import type { Picture } from './picture.ts'
import { playbook } from './playbook.ts'
import { preflight } from './refusals.ts'
import type { PhasePlanView, RotationPlan, StepView } from './report.ts'
import type { PlannedPhase } from './runner.ts'
import { standingOf } from './standing.ts'
import type { Target } from './target.ts'
import { authorityViews, timeOf } from './views.ts'

/**
 * Returns the plan of every phase, as far as it can be told from the cluster as it is now: each phase plans for what it would find
 * today, so that what is named is what it changes; what an earlier phase brings about is not foreseen. Nothing is written.
 */
export function wholePlan(seen: Picture, target: Target): RotationPlan {
  const { phases: standing } = standingOf(seen, target)
  const rolled = new Set<string>()
  const phases = playbook.map((phase, index): PhasePlanView => {
    const { gaps, remarks } = standing[index]!
    const steps = gaps.length === 0 ? [] : rolledOnce(phase.plan(seen, target), rolled)
    const { number, title, risk } = phase
    return phaseView({ number, title, risk, gaps, steps, remarks }, seen, target)
  })
  return planOf('whole', withWaitForReaders(phases, seen), seen, target, blockersOf(seen, target))
}

/** Pods that one phase replaces know both CAs: a later phase leaves them. Notes what these steps roll. */
function rolledOnce(steps: readonly Step[], rolled: Set<string>): readonly Step[] {
  const isDone = new Set(rolled)
  const keeps = (action: Action): boolean => {
    if (action.kind === 'roll') rolled.add(action.workload)
    if (action.kind === 'roll') return !isDone.has(action.workload)
    return (
      action.kind !== 'wait' ||
      action.until.kind !== 'pods-converged' ||
      !isDone.has(action.until.workload ?? '')
    )
  }
  return steps.flatMap((step): Step[] => {
    if (step.kind !== 'together') return keeps(step) ? [step] : []
    const lanes = step.lanes
      .map((lane) => ({ ...lane, steps: lane.steps.filter(keeps) }))
      .filter((lane) => lane.steps.length > 0)
    return lanes.length === 0 ? [] : [{ ...step, lanes }]
  })
}

/** Returns the plan of these phases alone; of the first exactly what would be done. */
export function phasePlan(planned: readonly PlannedPhase[], seen: Picture, target: Target): RotationPlan {
  return planOf(
    'phase',
    planned.map((one) => phaseView(one, seen, target)),
    seen,
    target,
    [],
  )
}

/** Returns one phase's plan as reports show it. */
export function phaseView(
  { number, title, risk, gaps, steps, remarks }: PlannedPhase,
  seen: Picture,
  target: Target,
): PhasePlanView {
  return {
    number,
    title,
    risk,
    gaps: gaps.map(({ at, what }: Gap) => ({ at, what })),
    steps: steps.flatMap((step, group) => stepViews(step, group, seen, target)),
    remarks: [...remarks],
    estimatedSeconds: Math.round(durationOf(steps, seen.atMs)),
  }
}

function planOf(
  scope: RotationPlan['scope'],
  phases: readonly PhasePlanView[],
  seen: Picture,
  target: Target,
  blockers: readonly Refusal[],
): RotationPlan {
  const pods = new Map<string, number>()
  for (const { workload = '' } of seen.pods) pods.set(workload, (pods.get(workload) ?? 0) + 1)
  return {
    apiVersion: 'kcert/v1',
    kind: 'RotationPlan',
    generatedAt: timeOf(seen.atMs),
    scope,
    authorities: authorityViews(target),
    verifiers: [...verifiersOf(seen, target)],
    presenters: [...presentersOf(seen, target)],
    phases: [...phases],
    restarts: byPhase(phases, 'restart').map(([at, numbers]) => ({ process: at, phases: numbers })),
    rolls: byPhase(phases, 'roll').map(([at, numbers]) => ({
      workload: at,
      phases: numbers,
      pods: pods.get(at) ?? 0,
    })),
    blastRadius: blastRadiusOf(seen, target),
    blockers: blockers.map(({ what, why, next }) => ({ what, why, next })),
    estimatedSeconds: phases.reduce((sum, { estimatedSeconds }) => sum + estimatedSeconds, 0),
  }
}

/** Servers keep the bridge until every client has had time to read its CA file again: phase 11 waits for what is left of that. */
function withWaitForReaders(phases: readonly PhasePlanView[], seen: Picture): readonly PhasePlanView[] {
  if (!seen.pods.some(({ volume }) => volume !== undefined)) return phases
  const since = phases
    .filter(({ number }) => number >= 5 && number <= 10)
    .reduce((sum, { estimatedSeconds }) => sum + estimatedSeconds, 0)
  const left = Math.max(0, Math.round(rereadMs / 1000 - since))
  return phases.map((phase) =>
    phase.number === 11 && phase.gaps.length > 0
      ? { ...phase, estimatedSeconds: Math.max(left, phase.estimatedSeconds) }
      : phase,
  )
}

function blockersOf(seen: Picture, target: Target): readonly Refusal[] {
  const phases: readonly Phase[] = playbook
  const preflights = phases.flatMap((phase) => preflight(seen, target, phase))
  // What a later phase says of pods and presenters is what the phases before it see to.
  const own = phases
    .filter(({ number }) => number < 11)
    .flatMap((phase) => phase.refusals?.(seen, target) ?? [])
  return [...new Map([...preflights, ...own].map((refusal) => [refusal.what, refusal])).values()]
}

function byPhase(phases: readonly PhasePlanView[], kind: StepView['kind']): [string, number[]][] {
  const found = new Map<string, number[]>()
  for (const { number, steps } of phases) {
    for (const step of steps) {
      if (step.kind !== kind) continue
      const numbers = found.get(step.at)
      if (numbers === undefined) found.set(step.at, [number])
      else if (numbers.at(-1) !== number) numbers.push(number)
    }
  }
  return [...found]
}

function stepViews(step: Step, group: number, seen: Picture, target: Target): StepView[] {
  if (step.kind !== 'together') return [stepView(step, seen, target)]
  return step.lanes.flatMap(({ name, steps }) =>
    steps.map((action) => ({ ...stepView(action, seen, target), lane: name, group })),
  )
}

function stepView(action: Action, seen: Picture, target: Target): StepView {
  const changes = changeLines(action, seen, target)
  return {
    kind: action.kind,
    what: describeAction(action),
    at: placeOf(action),
    ...(changes.length > 0 ? { changes: [...changes] } : {}),
  }
}

/** Returns the node, process, workload or object that an action is about. */
export function placeOf(action: Action): string {
  switch (action.kind) {
    case 'write-file':
      return action.node
    case 'patch-object': {
      const { kind, namespace, name } = action.object
      return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
    }
    case 'restart':
      return action.process
    case 'roll':
      return action.workload
    case 'wait':
      return placeOfWait(action)
    case 'probe':
      return placeOfProbe(action)
    case 'ask':
      return action.id
  }
}

function placeOfWait({ until }: Extract<Action, { kind: 'wait' }>): string {
  switch (until.kind) {
    case 'serves':
      return until.presenter
    case 'node-ready':
      return until.node
    case 'pods-started':
      return until.workload
    case 'pods-converged':
      return until.workload ?? 'pods'
    default:
      return 'cluster'
  }
}

function placeOfProbe({ subject }: Extract<Action, { kind: 'probe' }>): string {
  if ('at' in subject) return subject.at
  if ('node' in subject) return subject.node
  return subject.kind === 'kubeconfig' ? subject.id : 'cluster'
}

/** Returns the node on which an action does something; undefined for what concerns the cluster. */
export function nodeOf(action: Action): string | undefined {
  const place = placeOf(action)
  switch (action.kind) {
    case 'write-file':
      return place
    case 'restart':
      return place.slice(0, place.indexOf('/'))
    case 'probe':
      return 'at' in action.subject
        ? place.slice(0, place.indexOf('/'))
        : 'node' in action.subject
          ? place
          : undefined
    case 'wait':
      return action.until.kind === 'node-ready' ? place : undefined
    default:
      return undefined
  }
}
