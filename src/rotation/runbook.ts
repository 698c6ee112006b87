import {
  type Action,
  actionsOf,
  type Lane,
  type PatchObject,
  type RestartComponent,
  type RollWorkload,
  type Step,
  type WriteFile,
} from './action.ts'
import { changesOf, nodeOf } from './effects.ts'
import { leafFlags } from './leaves.ts'
import type { Playbook } from './phase.ts'
import { apiServers, fileKey, type Snapshot } from './snapshot.ts'
import type { Target } from './target.ts'

// The actions of a phase's plan on nodes, combined so that each node has one script where that is safe. The plan determines the
// actions and what they replace. Only their order is decided here, and the model checks every order.

export type NodeAct = WriteFile | RestartComponent

/** The actions on one node, in order. */
export interface NodeScript {
  readonly node: string
  readonly acts: readonly NodeAct[]
}

/** Scripts that may run in parallel, up to a limit. */
export interface ScriptGroup {
  readonly atOnce: number
  readonly scripts: readonly NodeScript[]
}

export interface Runbook {
  /** Groups that run in sequence. */
  readonly groups: readonly ScriptGroup[]
  /** Set when an action on the cluster itself must come first. kcert performs it. */
  readonly first?: PatchObject | RollWorkload
}

/** A file that a script of a runbook needs. */
export interface ScriptFile {
  readonly name: string
  readonly content: Uint8Array | string
}

/** One node's script with its files. */
export interface PreparedScript {
  readonly node: string
  readonly files: readonly ScriptFile[]
}

/** The phase of a runbook, and the command to run after its scripts. */
export interface RunbookPhase {
  /** The command of the rotation. */
  readonly command: string
  readonly number: number
  readonly title: string
  readonly next: string
}

/** Returns the scripts of a runbook, group by group, with all content filled in. Changes nothing on a node. */
export type PrepareRunbook = (
  runbook: Runbook,
  phase: RunbookPhase,
) => Promise<readonly (readonly PreparedScript[])[]>

/** Returns true for an action on a node. */
export function isNodeAct(action: Action): action is NodeAct {
  return changesOf(action) === 'node'
}

/** Returns the next actions on nodes, up to the first later action on the cluster or a wait that they depend on. */
export function runbookOf(
  playbook: Pick<Playbook, 'check'>,
  observed: Snapshot,
  target: Target,
  steps: readonly Step[],
): Runbook {
  const { groups, cuts, first } = groupSteps(steps)
  const apis = apiServers(observed)
  // Processes that read a service account key restart through signals, all API servers before the first controller manager.
  const keepsOrder = steps.flatMap(actionsOf).some((act) => act.kind === 'restart' && act.how === 'signal')
  const leaves = new Set(
    apis.map((api) => fileKey(api.node, api.flags[leafFlags['kubelet-client'].flag] ?? '')),
  )
  for (const end of [groups.length, ...cuts.toReversed()]) {
    const some = groups.slice(0, end)
    const inParallel = oneScriptEach(some)
    const isParallel =
      !keepsOrder && (restartsKubeletsLast(inParallel, leaves) || !restartsKubeletsLast(some, leaves))
    const orders = isParallel ? [inParallel, some] : [some]
    const safe = orders.find((order) => playbook.check(observed, target, order.map(stepOf)) === undefined)
    if (safe !== undefined) return { groups: safe, ...(first && { first }) }
  }
  return { groups: groups.slice(0, 1), ...(first && { first }) }
}

function groupSteps(steps: readonly Step[]) {
  const groups: ScriptGroup[] = []
  /** Numbers of groups before a wait or a proof, where the runbook can be split. */
  const cuts: number[] = []
  let hasWritten = false
  for (const step of steps) {
    const actions = actionsOf(step)
    const first = actions.find((action) => action.kind === 'patch-object' || action.kind === 'rollout')
    if (first !== undefined) return groups.length === 0 ? { groups, cuts, first } : { groups, cuts }
    // The proofs need the files that are removed at the end.
    const isTidying = actions.some(isRemoval)
    if (isTidying && hasWritten) return { groups, cuts }
    const acts = actions.filter(isNodeAct)
    const [act] = acts
    hasWritten ||= !isTidying && act !== undefined
    if (act === undefined) {
      if (groups.length > 0 && cuts.at(-1) !== groups.length) cuts.push(groups.length)
    } else if (step.kind === 'together') groups.push({ atOnce: step.atOnce, scripts: scriptsOf(acts) })
    else append(groups, act)
  }
  return { groups, cuts }
}

function isRemoval(action: Action): boolean {
  return (
    action.kind === 'write-file' &&
    (action.content.kind === 'nothing' || action.content.kind === 'copies-over')
  )
}

function scriptsOf(acts: readonly NodeAct[]): NodeScript[] {
  const byNode = Map.groupBy(acts, (act) => nodeOf(act) ?? '')
  return Array.from(byNode, ([node, its]) => ({ node, acts: its }))
}

function append(groups: ScriptGroup[], act: NodeAct): void {
  const [only, ...others] = groups.at(-1)?.scripts ?? []
  const isSame = only !== undefined && others.length === 0 && only.node === nodeOf(act)
  if (isSame) groups.pop()
  groups.push({ atOnce: 1, scripts: scriptsOf(isSame ? [...only.acts, act] : [act]) })
}

/** Merges all actions of a node into the group of its first action. */
function oneScriptEach(groups: readonly ScriptGroup[]): readonly ScriptGroup[] {
  const all = new Map(scriptsOf(actsOf(groups)).map((script) => [script.node, script]))
  return groups.flatMap(({ atOnce, scripts }) => {
    const open = scripts.flatMap(({ node }) => {
      const script = all.get(node)
      all.delete(node)
      return script ?? []
    })
    return open.length === 0 ? [] : [{ atOnce, scripts: open }]
  })
}

/**
 * Returns true when no API server gets another client certificate after a kubelet restarted. The API server would keep the
 * earlier certificate for 5 minutes on its connection to that kubelet, both during the phase and during its undo.
 */
function restartsKubeletsLast(groups: readonly ScriptGroup[], leaves: ReadonlySet<string>): boolean {
  const acts = actsOf(groups)
  const isOfKubelet = (act: NodeAct): boolean => {
    if (act.kind !== 'restart') return false
    const { how, process: id } = act
    return how === 'service' && id.endsWith('/kubelet')
  }
  const writes = acts.slice(acts.findIndex(isOfKubelet)).filter((act) => act.kind === 'write-file')
  return !acts.some(isOfKubelet) || !writes.some(({ node, path }) => leaves.has(fileKey(node, path)))
}

function actsOf(groups: readonly ScriptGroup[]): readonly NodeAct[] {
  return groups.flatMap(({ scripts }) => scripts.flatMap(({ acts }) => acts))
}

function stepOf({ atOnce, scripts }: ScriptGroup): Step {
  const lanes = scripts.map(({ node, acts }): Lane => ({ name: node, steps: acts }))
  return { kind: 'together', atOnce, lanes }
}
