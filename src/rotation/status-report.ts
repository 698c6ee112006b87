import { given } from '../errors/given.ts'
import type { JournalEntry } from './journal.ts'
import { firstOf, type Playbook } from './phase.ts'
import { phaseCommand } from './phase-table.ts'
import { progressOf, type RotationProgress } from './progress.ts'
import type { EvidenceView, NextView, RotationStatus } from './report.ts'
import type { Snapshot } from './snapshot.ts'
import type { Target } from './target.ts'
import { caViews, evidenceView, keyView, timeOf } from './views.ts'

/** Returns the state of a rotation, phase by phase and node by node. */
export function statusReport(
  playbook: Playbook,
  observed: Snapshot,
  target: Target,
  history: readonly JournalEntry[],
): RotationStatus {
  const progress = progressOf(playbook, observed, target)
  const evidence = evidenceByPhase(history, observed.atMs)
  const next = nextOf(progress)
  return {
    apiVersion: 'kcert/v1',
    kind: 'RotationStatus',
    generatedAt: timeOf(observed.atMs),
    state: progress.state,
    position: progress.position,
    cas: caViews(target),
    ...keyView(target),
    ...(next && { next }),
    phases: progress.phases.map(({ phase: { number, id, title, risk }, state, gaps, remarks }) => ({
      number,
      id,
      title,
      risk,
      state,
      pending: gaps.map(({ at, what }) => ({ at, what })),
      remarks: [...remarks],
      evidence: evidence.get(number) ?? [],
      ...lastRun(history, number),
    })),
    nodes: nodesOf(observed, progress),
    blockers: progress.blockers.map(({ what, why, next: cure }) => ({ what, why, next: cure })),
  }
}

/** Returns the next command, and why; undefined when nothing is left. */
export function nextOf({ playbook, state, next, phases, blockers }: RotationProgress): NextView | undefined {
  if (next === undefined) return undefined
  const [blocker] = blockers
  if (blocker !== undefined) return { command: blocker.next, why: blocker.what }
  const why = state === 'not-started' ? 'nothing has changed yet' : firstOf(phases[next - 1]?.gaps ?? [])
  return { command: phaseCommand(playbook, next), why }
}

/** Returns the last result of each probe, by the phase that last ran it. */
function evidenceByPhase(history: readonly JournalEntry[], nowMs: number): Map<number, EvidenceView[]> {
  const last = new Map<string, Extract<JournalEntry, { kind: 'evidence' }>>()
  for (const entry of history) if (entry.kind === 'evidence') last.set(entry.key, entry)
  const byPhase = Map.groupBy(last.values(), ({ phase }) => phase).entries()
  return new Map(byPhase.map(([phase, its]) => [phase, its.map((entry) => evidenceView(entry, nowMs))]))
}

function lastRun(history: readonly JournalEntry[], number: number) {
  const last = history.findLast((entry) => entry.kind === 'phase' && entry.phase === number)
  if (last?.kind !== 'phase') return {}
  const { event, time: at, detail } = last
  return { lastRun: given({ event, at, detail }) }
}

function nodesOf(observed: Snapshot, { phases }: RotationProgress): RotationStatus['nodes'] {
  const open = new Map<string, Set<number>>()
  const names = new Set(observed.nodes.map(({ name }) => name))
  for (const { phase, gaps, state } of phases) {
    if (state === 'waiting') continue
    for (const { at } of gaps) {
      // "cp1", "cp1/kubelet", "cp1:/etc/kubernetes/pki/ca.crt"
      const node = at.replace(/[/:].*/s, '')
      if (!names.has(node)) continue
      const its = open.get(node) ?? new Set()
      open.set(node, its.add(phase.number))
    }
  }
  return observed.nodes.map(({ name, isControlPlane, isEtcdMachine, isReady, unreachable, clockSkewMs }) => {
    const clockSkewSeconds = clockSkewMs === undefined ? undefined : clockSkewMs / 1000
    const pendingPhases = [...(open.get(name) ?? [])]
    return given({
      name,
      isControlPlane,
      isEtcdMachine,
      isReady,
      unreachable,
      clockSkewSeconds,
      pendingPhases,
    })
  })
}
