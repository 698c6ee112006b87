import { type Action, actionsOf, type Lane, type Step } from '../action.ts'
import { changesOf, describeAction } from '../effects.ts'
import type { Refusal } from '../phase.ts'
import { manualRotation, rowNumbered } from '../phase-table.ts'
import type { SectionName, Snapshot } from '../snapshot.ts'
import type { Target } from '../target.ts'
import type { BrokenPair, Cell } from './board.ts'
import { perform } from './effects.ts'
import { type ModelState, pass } from './passing.ts'
import { World } from './world.ts'

// kcert runs the whole plan on a model before it changes anything. After every action, and in every order in which parallel lanes
// can run, each verifier must accept each certificate, both as Go builds paths and as OpenSSL does. kcert may be killed between
// any two actions. The possible values of a cell cover what processes do independently in the meantime.

/** A connection that a plan would break. */
export interface BrokenEdge extends BrokenPair {
  readonly phase: number
  /** Description of the action that breaks the connection. */
  readonly after: string
}

/** The sections of the snapshot that the model needs. */
export const modelSections = [
  'nodes',
  'components',
  'kubelets',
  'files',
  'kubeconfigs',
  'published',
  'pods',
  'workloads',
  'caBundles',
  'clusterInfo',
  'extensionAuthentication',
  'handshakes',
  'copies',
] as const satisfies readonly SectionName[]

/** Returns the first connection that the steps would break, or undefined if none breaks, wherever the steps stop. */
export function checkPlan(
  snapshot: Snapshot,
  target: Target,
  steps: readonly Step[],
): BrokenEdge | undefined {
  const actions = steps.flatMap(actionsOf)
  // A plan that contains only waits, probes and questions changes nothing.
  if (actions.every((action) => changesOf(action) === 'nothing')) return undefined
  const world = new World(snapshot, target, new Set(actions.flatMap(rolledBy)))
  return checkSteps(world, steps, (action) => {
    // kcert removes the bridge certificate on purpose, and announces it beforehand.
    if (rowNumbered(manualRotation, action.phase)?.dropsOld) world.board.set(world.oldAlone, [])
    perform(world, action)
  })
}

/** Returns the first connection that the steps would break in a model. `act` changes the model as an action does. */
export function checkSteps(
  state: ModelState,
  steps: readonly Step[],
  act: (action: Action) => void,
): BrokenEdge | undefined {
  for (const step of steps) {
    const broken = step.kind === 'together' ? runLanes(state, step.lanes, act) : runAction(state, step, act)
    if (broken !== undefined) return broken
  }
  return undefined
}

function rolledBy(action: Action): readonly string[] {
  if (action.kind === 'rollout') return [action.workload]
  if (action.kind !== 'wait') return []
  // A wait for the pods of a workload refers to an earlier rollout.
  const { workload }: { readonly kind: string; readonly workload?: string } = action.until
  return workload === undefined ? [] : [workload]
}

function runAction(state: ModelState, action: Action, act: (action: Action) => void): BrokenEdge | undefined {
  act(action)
  return edgeOf(state, action.phase, describeAction(action))
}

function edgeOf({ board }: ModelState, phase: number, after: string): BrokenEdge | undefined {
  const broken = board.takeBroken()
  return broken && { ...broken, phase, after }
}

/** Runs each lane alone, then checks every combination of the states that the lanes can reach. */
function runLanes(
  world: ModelState,
  lanes: readonly Lane[],
  act: (action: Action) => void,
): BrokenEdge | undefined {
  const { board } = world
  const startMs = world.clockMs
  let endMs = startMs
  let phase = 0
  const all = new Map<Cell, { base: readonly number[]; held: Set<number>; ends: Set<number> }>()
  for (const { steps } of lanes) {
    let broken: BrokenEdge | undefined
    world.clockMs = startMs
    const touched = board.tracing(() => {
      for (const action of steps) {
        phase = action.phase
        broken = runAction(world, action, act)
        if (broken !== undefined) return
      }
    })
    if (broken !== undefined) return broken
    endMs = Math.max(endMs, world.clockMs)
    board.unwatched(() => {
      for (const [cell, { base, held }] of touched) {
        const its = all.get(cell) ?? { base, held: new Set<number>(), ends: new Set<number>() }
        for (const value of held) its.held.add(value)
        for (const value of cell.values) its.ends.add(value)
        all.set(cell, its)
        board.set(cell, base)
      }
    })
  }
  for (const [cell, { held }] of all) board.set(cell, [...held])
  const names = lanes.slice(0, 3).map(({ name }) => name)
  const more = lanes.length > 3 ? ` and ${lanes.length - 3} more` : ''
  const broken = edgeOf(world, phase, `${names.join(', ')}${more} in parallel`)
  for (const [cell, { ends }] of all) board.set(cell, [...ends])
  world.clockMs = endMs
  // The lane that wrote last may also be the last to finish.
  for (const [cell, unread] of world.unread) if (all.has(cell)) unread.sinceMs = endMs
  pass(world, 0)
  return broken
}

/** Returns the refusal of steps that would break a connection, or undefined if none breaks. */
export function brokenConnection(
  snapshot: Snapshot,
  target: Target,
  steps: readonly Step[],
): Refusal | undefined {
  const edge = checkPlan(snapshot, target, steps)
  return edge && refusalOf(edge)
}

/** Returns the refusal of a plan that breaks a connection. */
export function refusalOf(edge: BrokenEdge): Refusal {
  const { kind, credentialHolder, trustHolder, shows, trusts, refusing, flaw, after, phase } = edge
  const advice = adviceIn(phase, flaw === undefined ? kind : 'signing')
  if (flaw !== undefined) {
    return {
      what: `the plan of phase ${phase} would stop ${credentialHolder}: ${flaw}`,
      why: `after "${after}" no certificate request would be signed; nothing was changed; ${advice.why}`,
      next: advice.next,
    }
  }
  const known = trusts.map(({ subject, digest }) => `${subject} (${digest.slice(0, 12)})`)
  const pathBuilder =
    refusing.length === 2 ? '' : refusing[0] === 'go' ? ' (as Go builds paths)' : ' (as OpenSSL builds paths)'
  return {
    what: `the plan of phase ${phase} breaks a connection: ${trustHolder} would refuse ${credentialHolder}${pathBuilder}`,
    why:
      `after "${after}" the certificate would be signed by ${shows?.issuer ?? 'an unknown CA'}, ` +
      `and the trusted CAs might be ${known.length === 0 ? 'none' : `only ${known.join(', ')}`}; ` +
      `nothing was changed; ${advice.why}`,
    next: advice.next,
  }
}

type Advice = Pick<Refusal, 'why' | 'next'>

const adviceFor: Readonly<Record<BrokenPair['kind'], Advice>> = {
  signing: {
    why: 'check the signing files of the controller-managers',
    next: 'kcert rotate-ca plan',
  },
  server: {
    why: 'all clients must trust both CAs first (to accept the risk: --waive)',
    next: 'kcert rotate-ca --through 7',
  },
  client: { why: 'API servers must trust both CAs first', next: 'kcert rotate-ca --phase 5' },
  'kubelet-client': {
    why: 'kubelets and cluster-info must have both CAs first',
    next: 'kcert rotate-ca --phase 5',
  },
  'kubelet-serving': {
    why: 'API servers must have read --kubelet-certificate-authority first',
    next: 'kcert rotate-ca --phase 5',
  },
  'front-proxy': {
    why: 'webhooks and aggregated API servers must have read both front-proxy CAs first, in phases 5 and 9',
    next: 'kcert rotate-ca --phase 5',
  },
  'etcd-server': {
    why: 'etcd must serve the bridge certificate until every client of etcd has read the new CA',
    next: 'kcert rotate-ca status --ca etcd',
  },
  'etcd-client': {
    why: 'clients of etcd must present the bridge certificate until every member trusts the new CA',
    next: 'kcert rotate-ca status --ca etcd',
  },
  'etcd-peer': {
    why: 'members of etcd must present the bridge certificate until every member trusts the new CA',
    next: 'kcert rotate-ca status --ca etcd',
  },
  handler: {
    why: 'its owner must reissue the certificate, or its caBundle must have both CAs',
    next: 'kcert rotate-ca --phase 9',
  },
  user: {
    why: 'kubelets, controller-managers and schedulers must trust both CAs first',
    next: 'kcert rotate-ca --through 6',
  },
}

/** Returns what must come first. Phase 12 drops the old CA, so trust in both CAs is no help there. */
function adviceIn(phase: number, kind: BrokenPair['kind']): Advice {
  if (phase !== 12 || kind === 'signing') return adviceFor[kind]
  return {
    why: 'every certificate must be issued by the new CA before the old CA is dropped',
    next: 'kcert rotate-ca --phase 11',
  }
}
