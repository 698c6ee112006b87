import { type Action, type ActionOf, evidenceKey, type Lane, type Parallel, type Step } from './action.ts'
import { locationOfCondition, secondsUntil } from './conditions.ts'
import { nodeOfProcess, objectName } from './snapshot.ts'

// The properties of each kind of action, one row each. Plans, journal, runbooks, hooks and the model all use this table.

interface Effects<One extends Action = Action> {
  /** What the action changes: files and processes of a node, objects in the cluster, or nothing. */
  readonly changes: 'node' | 'cluster' | 'nothing'
  /** Description for journal, plan and progress. */
  words(action: One): string
  /** The node, process, workload or object that the action concerns. */
  place(action: One): string
  /** The node on which the action runs; undefined for an action on the cluster. */
  node?(action: One): string | undefined
  /**
   * Duration as measured in the lab (kubeadm 1.36, 3 control planes and a worker on two cores). An estimate for a plan, not a
   * deadline.
   */
  seconds(action: One, nowMs: number): number
}

const effects: { readonly [Kind in Action['kind']]: Effects<ActionOf<Kind>> } = {
  'write-file': {
    changes: 'node',
    words({ content: { kind }, node, path }) {
      if (kind === 'nothing') return `remove ${node}:${path}`
      return kind === 'copies-over' ? `archive ${node}:${path}` : `write ${node}:${path} (${kind})`
    },
    place: ({ node }) => node,
    node: ({ node }) => node,
    seconds: ({ content }) => (content.kind === 'requested' ? 0.5 : 0.3),
  },
  'patch-object': {
    changes: 'cluster',
    words: ({ object, change }) => `${change.kind === 'delete' ? 'delete' : 'patch'} ${objectName(object)}`,
    place: ({ object }) => objectName(object),
    seconds: () => 0.2,
  },
  restart: {
    changes: 'node',
    words: ({ process: id }) => `restart ${id}`,
    place: ({ process: id }) => id,
    node: ({ process: id }) => nodeOfProcess(id),
    seconds({ how, process: id }) {
      // SIGTERM: etcd 8.5–9.4 s, ready after 10–14 s; an API server with SIGKILL 5 s later 11.5–13 s.
      if (how === 'signal' || id.endsWith('/etcd')) return 12
      if (how === 'service') return 2
      return id.endsWith('/kube-apiserver') ? 43 : 15
    },
  },
  rollout: {
    changes: 'cluster',
    words: ({ workload }) => `roll out ${workload}`,
    place: ({ workload }) => workload,
    seconds: () => 1,
  },
  wait: {
    changes: 'nothing',
    words: ({ because }) => `wait until ${because}`,
    place: ({ until }) => locationOfCondition(until),
    node: ({ until }) => ('node' in until ? until.node : undefined),
    seconds: ({ until }, nowMs) => secondsUntil(until, nowMs),
  },
  probe: {
    changes: 'nothing',
    words: ({ subject }) => `check: ${evidenceKey(subject)}`,
    place({ subject }) {
      if ('at' in subject) return subject.at
      if ('node' in subject) return subject.node
      return subject.kind === 'kubeconfig' ? subject.id : 'cluster'
    },
    node({ subject }) {
      if ('at' in subject) return nodeOfProcess(subject.at)
      return 'node' in subject ? subject.node : undefined
    },
    seconds({ subject }) {
      if ('forMs' in subject) return subject.forMs / 1000
      // All 21 tokens of the lab's nodes were new 2.4 s after the last restart of a kubelet.
      if (subject.kind === 'mounted-tokens') return 3
      // A restarted kubelet reports its containers again after up to 11 s.
      return subject.kind === 'logs' ? 11 : 0.4
    },
  },
  confirm: {
    changes: 'nothing',
    words: ({ question }) => `confirm: ${question}`,
    place: ({ id }) => id,
    seconds: () => 0,
  },
}

/** Returns the row for an action. */
export function effectsOf({ kind }: Action): Effects {
  return effects[kind]
}

/** Returns what an action changes: a node, the cluster or nothing. */
export function changesOf(action: Action): Effects['changes'] {
  return effectsOf(action).changes
}

/** Returns the description of an action for journal, plan and progress. */
export function describeAction(action: Action): string {
  return effectsOf(action).words(action)
}

/** Returns the node on which an action runs; undefined for an action on the cluster. */
export function nodeOf(action: Action): string | undefined {
  return effectsOf(action).node?.(action)
}

/** Returns the duration of these steps in seconds. Lanes run in parallel, up to their limit. */
export function durationOf(steps: readonly Step[], nowMs: number): number {
  return steps.reduce((sum, step) => {
    if (step.kind !== 'together') return sum + effectsOf(step).seconds(step, nowMs)
    return sum + endOfLanes(step, 0, ({ steps: its }, start) => start + durationOf(its, nowMs))
  }, 0)
}

/** Returns the end of the last lane. Lanes run in parallel up to the limit: the next lane starts when one finishes. `run` returns its end. */
export function endOfLanes(
  { lanes, atOnce }: Parallel,
  start: number,
  run: (lane: Lane, start: number) => number,
): number {
  const busyUntil = new Array<number>(Math.max(1, Math.min(atOnce, lanes.length))).fill(start)
  for (const lane of lanes) {
    const soonest = Math.min(...busyUntil)
    busyUntil[busyUntil.indexOf(soonest)] = run(lane, soonest)
  }
  return Math.max(...busyUntil)
}
