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
import { checkPlan } from './model/check.ts'
import { apiServers, fileKey, type Snapshot } from './snapshot.ts'
import type { Target } from './target.ts'

// What of a phase's plan is done on nodes, gathered so that each node has one script where that is safe. Which acts there are and
// what they replace is the plan's; only their order is looked at here, and every order is checked on the model.

export type NodeAct = WriteFile | RestartComponent

/** The acts of one node, in order. */
export interface NodeScript {
  readonly node: string
  readonly acts: readonly NodeAct[]
}

/** Scripts that may run side by side, so many at once. */
export interface ScriptGroup {
  readonly atOnce: number
  readonly scripts: readonly NodeScript[]
}

export interface Runbook {
  /** One after the other. */
  readonly groups: readonly ScriptGroup[]
  /** Set when an act on the cluster itself comes before all of them: that one is kcert's own. */
  readonly first?: PatchObject | RollWorkload
}

/** A file of a runbook, beside others of its script. */
export interface ScriptFile {
  readonly name: string
  readonly content: Uint8Array | string
}

/** One node's script with what lies beside it. */
export interface PreparedScript {
  readonly node: string
  readonly files: readonly ScriptFile[]
}

/** What a runbook is of, and the command that comes when its scripts have been run. */
export interface RunbookPhase {
  readonly number: number
  readonly title: string
  readonly next: string
}

/** Returns the scripts of a runbook, group by group: content filled in, nothing changed on a node. */
export type PrepareRunbook = (
  runbook: Runbook,
  phase: RunbookPhase,
) => Promise<readonly (readonly PreparedScript[])[]>

/** True for what is done on a node. */
export function isNodeAct(action: Action): action is NodeAct {
  return changesOf(action) === 'node'
}

/** Returns the acts on nodes that come next: up to the first act on the cluster behind them, or to a wait that they need. */
export function runbookOf(observed: Snapshot, target: Target, steps: readonly Step[]): Runbook {
  const { groups, cuts, first } = gathered(steps)
  const apis = apiServers(observed)
  const leaves = new Set(
    apis.map((api) => fileKey(api.node, api.flags[leafFlags['kubelet-client'].flag] ?? '')),
  )
  for (const end of [groups.length, ...cuts.toReversed()]) {
    const some = groups.slice(0, end)
    const inParallel = oneScriptEach(some)
    const ways =
      restartsKubeletsLast(inParallel, leaves) || !restartsKubeletsLast(some, leaves)
        ? [inParallel, some]
        : [some]
    const safe = ways.find((way) => checkPlan(observed, target, way.map(stepOf)) === undefined)
    if (safe !== undefined) return { groups: safe, ...(first && { first }) }
  }
  return { groups: groups.slice(0, 1), ...(first && { first }) }
}

function gathered(steps: readonly Step[]) {
  const groups: ScriptGroup[] = []
  /** Numbers of groups before a wait or a proof: there it can be cut. */
  const cuts: number[] = []
  let hasWritten = false
  for (const step of steps) {
    const actions = actionsOf(step)
    const first = actions.find((action) => action.kind === 'patch-object' || action.kind === 'roll')
    if (first !== undefined) return groups.length === 0 ? { groups, cuts, first } : { groups, cuts }
    // What is taken away at the end is needed by the proofs before it.
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

/** All that one node has to do at the place where it has something to do first. */
function oneScriptEach(groups: readonly ScriptGroup[]): readonly ScriptGroup[] {
  const all = new Map<string, NodeScript>()
  const every = groups.flatMap(({ scripts }) => scripts.flatMap(({ acts }) => acts))
  for (const script of scriptsOf(every)) all.set(script.node, script)
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
 * True when no API server gets another client certificate once a kubelet was restarted: it would keep the one before on its
 * connection to that kubelet for 5 minutes, on the way there and on the way back.
 */
function restartsKubeletsLast(groups: readonly ScriptGroup[], leaves: ReadonlySet<string>): boolean {
  let isRestarted = false
  for (const { scripts } of groups) {
    for (const act of scripts.flatMap(({ acts }) => acts)) {
      if (act.kind === 'restart') isRestarted ||= isKubeletRestart(act)
      else if (isRestarted && leaves.has(fileKey(act.node, act.path))) return false
    }
  }
  return true
}

function stepOf({ atOnce, scripts }: ScriptGroup): Step {
  const lanes = scripts.map(({ node, acts }): Lane => ({ name: node, steps: acts }))
  return { kind: 'together', atOnce, lanes }
}

function isKubeletRestart({ how, process: id }: RestartComponent): boolean {
  return how === 'service' && id.endsWith('/kubelet')
}
