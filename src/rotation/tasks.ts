import type { Action, Condition, Content, Lane, ObjectChange, ProbeSubject, Step, Task } from './action.ts'
import {
  type FileSnapshot,
  fileAt,
  type ObjectReference,
  type Observed,
  type ProcessId,
  type ProcessSnapshot,
} from './snapshot.ts'

// Building blocks for the steps of phases.

/** Returns the action that changes the content of a file and keeps its mode. */
export function rewrite({ node, path, digest, mode }: FileSnapshot, content: Content): Task<'write-file'> {
  return { kind: 'write-file', node, path, replaces: digest, content, mode }
}

/** Returns the action that writes a file, whether it exists or not. */
export function write(
  observed: Observed<'files'>,
  node: string,
  path: string,
  content: Content,
  mode = 0o600,
): Task<'write-file'> {
  const replaces = fileAt(observed, node, path)?.digest ?? 'absent'
  return { kind: 'write-file', node, path, replaces, content, mode }
}

export function patch(object: ObjectReference, version: string, change: ObjectChange): Task<'patch-object'> {
  return { kind: 'patch-object', object, version, change }
}

/** Returns the restart of a process. `running`: the process that it replaces, if one runs. */
export function restart(
  process: ProcessId,
  running: Pick<ProcessSnapshot, 'startedAtMs'> | undefined,
  how: Task<'restart'>['how'],
): Task<'restart'> {
  return { kind: 'restart', process, ...(running && { replaces: running.startedAtMs }), how }
}

/** Returns a wait. `because`: what it waits for, as a sentence fragment. */
export function wait(until: Condition, because: string, deadlineMs: number): Task<'wait'> {
  return { kind: 'wait', until, because, deadlineMs }
}

/** Returns the wait until a restarted process is healthy. */
export function waitUntilReady(id: ProcessId): Task<'wait'> {
  return wait({ kind: 'healthy', process: id }, `${id} is ready again`, 120_000)
}

export function probe(subject: ProbeSubject, deadlineMs = 60_000): Task<'probe'> {
  return { kind: 'probe', subject, deadlineMs }
}

export function ask(id: string, question: string): Task<'confirm'> {
  return { kind: 'confirm', id, question }
}

/** Returns the question for an upload of /openid/v1/jwks, which a hook of the inventory may do. */
export function askForUpload(id: string, question: string): Task<'confirm'> {
  return { ...ask(id, question), hook: 'upload-jwks' }
}

/** Returns lanes as a step. Empty lanes are omitted; a single lane is returned as plain steps. */
export function inParallel(atOnce: number, lanes: readonly Lane<Task>[]): readonly Step<Task>[] {
  const busy = lanes.filter(({ steps }) => steps.length > 0)
  if (busy.length < 2 || atOnce < 2) return busy.flatMap(({ steps }) => steps)
  return [{ kind: 'together', atOnce, lanes: busy }]
}

/** Returns a lane for each item: nodes, which have names, or processes and workloads, which have IDs. */
export function inLanes<Of extends { readonly id: string } | { readonly name: string }>(
  atOnce: number,
  all: readonly Of[],
  stepsOf: (one: Of) => readonly Task[],
): readonly Step<Task>[] {
  const lanes = all.map((one) => ({ name: 'id' in one ? one.id : one.name, steps: stepsOf(one) }))
  return inParallel(atOnce, lanes)
}

/** Returns the first non-empty lane alone, then the others in parallel up to the limit. */
export function firstAlone(atOnce: number, lanes: readonly Lane<Task>[]): readonly Step<Task>[] {
  const [first, ...others] = lanes.filter(({ steps }) => steps.length > 0)
  return first === undefined ? [] : [...first.steps, ...inParallel(atOnce, others)]
}

/** Returns the steps of a phase. */
export function inPhase(phase: number, steps: Iterable<Step<Task>>): readonly Step[] {
  const numbered = (task: Task): Action => Object.assign({ kind: task.kind, phase }, task)
  return Array.from(steps, (step) =>
    step.kind === 'together'
      ? { ...step, lanes: step.lanes.map((lane) => ({ ...lane, steps: lane.steps.map(numbered) })) }
      : numbered(step),
  )
}
