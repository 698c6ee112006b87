import { type FlagChanges, type Flags, shutdownDelayMs } from '../pki/component-flags.ts'
import type { Task } from './action.ts'
import {
  type ComponentName,
  type ComponentSnapshot,
  componentsNamed,
  fileAt,
  hasStartedSince,
  type Observed,
} from './snapshot.ts'
import { restart, wait, waitUntilReady } from './tasks.ts'

// How a component starts to use the required flags and files. kcert edits its definition if necessary, and replaces a process
// that read something older. Standbys come first and the leader last, so each pass changes the leader only once.

/** What a component's process must have read at startup. */
export interface DesiredProcess {
  /** Flags by name; null: not set. */
  readonly flags?: FlagChanges
  /** Files that the process reads once, at startup. */
  readonly files?: readonly (string | undefined)[]
  readonly annotations?: FlagChanges
  /** True when the same plan changes one of these files, so the running process is outdated in any case. */
  readonly isAboutToChange?: boolean
}

/** The annotation that restarts static pods and rolls out workloads, from the Kubernetes documentation. */
export const rotationAnnotation = 'ca-rotation'

/**
 * Returns the latest start of these processes; undefined if there is none or one of them does not run. Then nothing is proven
 * about them.
 */
export function latestStart(components: readonly ComponentSnapshot[]): number | undefined {
  const starts = components.flatMap(({ process }) => process?.startedAtMs ?? [])
  return starts.length === components.length && starts.length > 0 ? Math.max(...starts) : undefined
}

/** Returns true when the running process has read everything required in its current form. */
function runsWith(
  observed: Observed<'files'>,
  component: ComponentSnapshot,
  wanted: DesiredProcess,
): boolean {
  return component.process?.isHealthy === true && hasRead(observed, component, wanted)
}

function hasRead(
  observed: Observed<'files'>,
  { process: running, node }: ComponentSnapshot,
  wanted: DesiredProcess,
): boolean {
  if (running === undefined || wanted.isAboutToChange) return false
  if (!isEmpty(differences(running.flags, wanted.flags))) return false
  return (wanted.files ?? []).every((path) => {
    const file = fileAt(observed, node, path)
    return path === undefined || (file !== undefined && hasStartedSince(running, file))
  })
}

/** Returns true when the definition contains everything required and the process has read it. */
export function isAsDesired(
  observed: Observed<'files'>,
  component: ComponentSnapshot,
  wanted: DesiredProcess,
): boolean {
  return !mustEdit(component, wanted) && runsWith(observed, component, wanted)
}

function mustEdit(component: ComponentSnapshot, { flags, annotations }: DesiredProcess): boolean {
  return (
    !isEmpty(differences(component.flags, flags)) || !isEmpty(differences(component.annotations, annotations))
  )
}

/**
 * Returns the actions after which one component runs with everything required: none, only a restart, or an edit and a restart.
 */
export function restartWith(
  observed: Observed<'files' | 'leases'>,
  component: ComponentSnapshot,
  wanted: DesiredProcess,
): readonly Task[] {
  const restart = restartOf(observed, component)
  if (mustEdit(component, wanted)) return [editing(component, wanted), restart]
  if (runsWith(observed, component, wanted)) return []
  if (hasRead(observed, component, wanted)) {
    // The process is starting. A wait for any other process would never end.
    const { replaces: _, lease: __, ...health } = restart
    return [health]
  }
  const { process, node, definition, annotations, runsAs } = component
  if (runsAs !== 'static-pod' || !hasStartedSince(process, fileAt(observed, node, definition)))
    return [restart]
  // The kubelet restarts a static pod only when its manifest changes.
  const count = Number(annotations[rotationAnnotation] ?? '0')
  return [editing(component, { annotations: { [rotationAnnotation]: String(count + 1) } }), restart]
}

function editing(component: ComponentSnapshot, wanted: DesiredProcess): Task<'write-file'> {
  const { node, definition: path, definitionDigest: replaces } = component
  const flags = differences(component.flags, wanted.flags)
  const annotations = differences(component.annotations, wanted.annotations)
  const content = { kind: 'definition', flags, ...(!isEmpty(annotations) && { annotations }) } as const
  return { kind: 'write-file', node, path, replaces, content, mode: 0o600 }
}

/** Returns the restart of a component, with its Lease if it elects a leader. The executor checks who leads at that time. */
export function restartOf(
  observed: Observed<'leases'>,
  { id, name, process: running, runsAs }: ComponentSnapshot,
): Task<'restart'> {
  return {
    ...restart(id, running, runsAs === 'static-pod' ? 'definition' : 'service'),
    ...(observed.leases.some((lease) => lease.name === name) && { lease: name }),
  }
}

/** With SIGTERM alone, an API server waits up to 60 s for open watches. Other requests end within this time. */
const drainMs = 5_000

/**
 * Returns the restart of a component whose definition stays as it is: through a signal, or through systemd, which does not start a unit
 * again that ended after SIGTERM, unless its Restart= says so. An API server still serves for its shutdown delay, and then has 5 s.
 */
export function restartInPlace(
  { id, name, runsAs, process: running }: ComponentSnapshot,
  observed?: Observed<'leases'>,
): readonly Task[] {
  const how = runsAs === 'unit' ? 'service' : 'signal'
  const isApi = name === 'kube-apiserver'
  return [
    {
      ...restart(id, running, how),
      ...(isApi && how === 'signal' && { killAfterMs: shutdownDelayMs(running?.flags ?? {}) + drainMs }),
      ...(observed?.leases.some((lease) => lease.name === name) && { lease: name }),
    },
    waitUntilReady(id),
  ]
}

/** Returns components with the standbys first and the holder of the Lease last. */
export function leaderLast(
  observed: Observed<'leases'>,
  components: readonly ComponentSnapshot[],
): readonly ComponentSnapshot[] {
  const isLeader = ({ name, node }: ComponentSnapshot): boolean =>
    observed.leases.some((lease) => lease.name === name && lease.holder === node)
  return [...components.filter((one) => !isLeader(one)), ...components.filter(isLeader)]
}

/**
 * Returns one pass over the instances of a component. Each follows once the previous one is healthy; a leader must exist at the
 * end.
 */
export function passOver(
  observed: Observed<'components' | 'files' | 'leases'>,
  name: ComponentName,
  wantedOf: (component: ComponentSnapshot) => DesiredProcess,
): readonly Task[] {
  const components = leaderLast(observed, componentsNamed(observed, name))
  const steps = components.flatMap((component) => restartWith(observed, component, wantedOf(component)))
  return steps.length === 0 ? [] : [...steps, awaitLeader(name)]
}

export function awaitLeader(lease: string): Task {
  return wait({ kind: 'leader', lease }, `${lease} has a leader`, 60_000)
}

/** Returns the flags or annotations that differ from the required ones, with their required values. */
export function differences(now: Flags, wanted: FlagChanges = {}): Record<string, string | null> {
  return Object.fromEntries(Object.entries(wanted).filter(([name, value]) => (now[name] ?? null) !== value))
}

function isEmpty(record: object): boolean {
  return Object.keys(record).length === 0
}
