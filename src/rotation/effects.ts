import { type Action, type ActionOf, evidenceKey } from './action.ts'
import { locationOfCondition, secondsUntil } from './conditions.ts'
import { objectName } from './snapshot.ts'

// What each kind of Action is to plans, journal, runbooks, hooks and the model: one row for each, which they all ask.

interface Effects<One extends Action = Action> {
  /** Where it changes something: files and processes of a node, objects of the cluster, or nothing. */
  readonly changes: 'node' | 'cluster' | 'nothing'
  /** In words, as journal, plan and progress show it. */
  words(action: One): string
  /** The node, process, workload or object that it is about. */
  place(action: One): string
  /** The node on which it does something; undefined for what concerns the cluster. */
  node?(action: One): string | undefined
  /**
   * How long it takes, as measured on the lab (kubeadm 1.36, 3 control planes and a worker on two cores): an estimate for a plan,
   * never a deadline.
   */
  seconds(action: One, nowMs: number): number
}

const effects: { readonly [Kind in Action['kind']]: Effects<ActionOf<Kind>> } = {
  'write-file': {
    changes: 'node',
    words({ content: { kind }, node, path }) {
      if (kind === 'nothing') return `remove ${node}:${path}`
      return kind === 'copies-over' ? `put aside ${node}:${path}` : `write ${node}:${path} (${kind})`
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
    node: ({ process: id }) => nodeIn(id),
    seconds: ({ how, process: id }) => (how === 'service' ? 2 : id.endsWith('/kube-apiserver') ? 43 : 15),
  },
  roll: {
    changes: 'cluster',
    words: ({ workload }) => `roll ${workload}`,
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
      if ('at' in subject) return nodeIn(subject.at)
      return 'node' in subject ? subject.node : undefined
    },
    seconds({ subject }) {
      if ('forMs' in subject) return subject.forMs / 1000
      // A restarted kubelet reports its containers again after up to 11 s.
      return subject.kind === 'logs' ? 11 : 0.4
    },
  },
  ask: {
    changes: 'nothing',
    words: ({ question }) => `ask: ${question}`,
    place: ({ id }) => id,
    seconds: () => 0,
  },
}

/** Returns the row of an action. */
function effectsOf({ kind }: Action): Effects {
  return effects[kind]
}

/** Returns where an action changes something. */
export function changesOf(action: Action): Effects['changes'] {
  return effectsOf(action).changes
}

/** Returns an action in words, as journal, plan and progress show it. */
export function describeAction(action: Action): string {
  return effectsOf(action).words(action)
}

/** Returns the node, process, workload or object that an action is about. */
export function locationOf(action: Action): string {
  return effectsOf(action).place(action)
}

/** Returns the node on which an action does something; undefined for what concerns the cluster. */
export function nodeOf(action: Action): string | undefined {
  return effectsOf(action).node?.(action)
}

/** Returns how long an action takes, in seconds. */
export function secondsOf(action: Action, nowMs: number): number {
  return effectsOf(action).seconds(action, nowMs)
}

/** The node of a process: "cp1/kube-apiserver" → "cp1". */
function nodeIn(id: string): string {
  return id.slice(0, id.indexOf('/'))
}
