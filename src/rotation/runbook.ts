import type {
  Action,
  PatchObject,
  RestartComponent,
  RollWorkload,
  Step,
  Together,
  WriteFile,
} from './action.ts'
import { leafFlags } from './leaves.ts'
import { checkPlan } from './model/check.ts'
import { apiServers, fileKey, type Picture } from './picture.ts'
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
  return action.kind === 'write-file' || action.kind === 'restart'
}

/** Returns the acts on nodes that come next: up to the first act on the cluster behind them, or to a wait that they need. */
export function runbookOf(seen: Picture, target: Target, steps: readonly Step[]): Runbook {
  const { groups, cuts, first } = gathered(steps)
  const apis = apiServers(seen)
  const leaves = new Set(
    apis.map((api) => fileKey(api.node, api.flags[leafFlags['kubelet-client'].flag] ?? '')),
  )
  for (const end of [groups.length, ...cuts.toReversed()]) {
    const some = groups.slice(0, end)
    const together = oneScriptEach(some)
    const ways =
      restartsKubeletsLast(together, leaves) || !restartsKubeletsLast(some, leaves)
        ? [together, some]
        : [some]
    const safe = ways.find((way) => checkPlan(seen, target, way.map(stepOf)) === undefined)
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
    const actions = step.kind === 'together' ? step.lanes.flatMap((lane) => lane.steps) : [step]
    const first = actions.find((action) => action.kind === 'patch-object' || action.kind === 'roll')
    if (first !== undefined) return groups.length === 0 ? { groups, cuts, first } : { groups, cuts }
    // What is taken away at the end is needed by the proofs before it.
    const isTidying = actions.some(isRemoval)
    if (isTidying && hasWritten) return { groups, cuts }
    hasWritten ||= !isTidying && actions.some(isNodeAct)
    if (!actions.some(isNodeAct)) {
      if (groups.length > 0 && cuts.at(-1) !== groups.length) cuts.push(groups.length)
    } else if (step.kind === 'together') groups.push(sideBySide(step))
    else append(groups, actions[0] as NodeAct)
  }
  return { groups, cuts }
}

function isRemoval(action: Action): boolean {
  return (
    action.kind === 'write-file' &&
    (action.content.kind === 'nothing' || action.content.kind === 'copies-over')
  )
}

function sideBySide({ atOnce, lanes }: Together): ScriptGroup {
  const byNode = new Map<string, NodeAct[]>()
  for (const { steps } of lanes) {
    for (const act of steps.filter(isNodeAct)) {
      const node = nodeOfAct(act)
      const its = byNode.get(node)
      if (its === undefined) byNode.set(node, [act])
      else its.push(act)
    }
  }
  return { atOnce, scripts: [...byNode].map(([node, acts]) => ({ node, acts })) }
}

function append(groups: ScriptGroup[], act: NodeAct): void {
  const node = nodeOfAct(act)
  const last = groups.at(-1)
  const [only, ...others] = last?.scripts ?? []
  if (only?.node === node && others.length === 0) {
    groups[groups.length - 1] = { atOnce: 1, scripts: [{ node, acts: [...only.acts, act] }] }
  } else groups.push({ atOnce: 1, scripts: [{ node, acts: [act] }] })
}

/** All that one node has to do at the place where it has something to do first. */
function oneScriptEach(groups: readonly ScriptGroup[]): readonly ScriptGroup[] {
  const all = new Map<string, NodeAct[]>()
  for (const { scripts } of groups) {
    for (const { node, acts } of scripts) {
      const its = all.get(node)
      if (its === undefined) all.set(node, [...acts])
      else its.push(...acts)
    }
  }
  return groups.flatMap(({ atOnce, scripts }) => {
    const open = scripts.flatMap(({ node }) => {
      const acts = all.get(node)
      all.delete(node)
      return acts === undefined ? [] : [{ node, acts }]
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
      if (act.kind === 'restart') isRestarted ||= act.how === 'service' && programOf(act) === 'kubelet'
      else if (isRestarted && leaves.has(fileKey(act.node, act.path))) return false
    }
  }
  return true
}

function stepOf({ atOnce, scripts }: ScriptGroup): Step {
  return { kind: 'together', atOnce, lanes: scripts.map(({ node, acts }) => ({ name: node, steps: acts })) }
}

function nodeOfAct(act: NodeAct): string {
  return act.kind === 'write-file' ? act.node : splitId(act)[0]!
}

function programOf(act: RestartComponent): string {
  return splitId(act)[1]!
}

/** Node and component. */
function splitId({ process: id }: RestartComponent): string[] {
  return id.split('/')
}
