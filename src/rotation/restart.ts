import type { Action, RestartComponent, Step, Together, WriteFile } from './action.ts'
import { type ComponentName, type ComponentPicture, fileAt, hasStartedSince, type Seen } from './picture.ts'

// How a component comes to run with what is wanted: its definition is edited where it says otherwise, and the process that
// read something older is replaced. Standbys first and the leader last: one hand-over in each pass.

/** What a component's process must have read at its start. */
export interface Wanted {
  /** Flags by name; null: not set. */
  readonly flags?: Readonly<Record<string, string | null>>
  /** Files that are read once, at the start. */
  readonly files?: readonly (string | undefined)[]
  readonly annotations?: Readonly<Record<string, string | null>>
  /** True when one of these files is changed by the same plan, so that what runs now is too old whatever it reads. */
  readonly isAboutToChange?: boolean
}

/** The annotation by which a static pod is started anew, and by which workloads are rolled. It is the page's own. */
export const rotationAnnotation = 'ca-rotation'

export function componentsNamed(seen: Seen<'components'>, name: ComponentName): readonly ComponentPicture[] {
  return seen.components.filter((component) => component.name === name)
}

/** Returns the flags of the definition that are not as wanted, with the values that they must get. */
export function flagsToChange(component: ComponentPicture, wanted: Wanted): Record<string, string | null> {
  return differences(component.flags, wanted.flags)
}

/** Returns when the last of these started; undefined where there is none, or one of them does not run: then nothing is proven of them. */
export function latestStart(components: readonly ComponentPicture[]): number | undefined {
  const starts = components.flatMap(({ process }) => process?.startedAtMs ?? [])
  return starts.length === components.length && starts.length > 0 ? Math.max(...starts) : undefined
}

/** True when the running process has read all that is wanted, as it lies there now. */
export function runsWith(seen: Seen<'files'>, component: ComponentPicture, wanted: Wanted): boolean {
  return component.process?.isHealthy === true && hasRead(seen, component, wanted)
}

function hasRead(seen: Seen<'files'>, { process: running, node }: ComponentPicture, wanted: Wanted): boolean {
  if (running === undefined || wanted.isAboutToChange) return false
  if (Object.keys(differences(running.flags, wanted.flags)).length > 0) return false
  return (wanted.files ?? []).every((path) => {
    const file = fileAt(seen, node, path)
    return path === undefined || (file !== undefined && hasStartedSince(running, file))
  })
}

/** True when the definition says what is wanted and the process has read it. */
export function isAsWanted(seen: Seen<'files'>, component: ComponentPicture, wanted: Wanted): boolean {
  return Object.keys(definitionChange(component, wanted)).length === 0 && runsWith(seen, component, wanted)
}

function definitionChange(component: ComponentPicture, wanted: Wanted) {
  const flags = flagsToChange(component, wanted)
  const annotations = differences(component.annotations, wanted.annotations)
  return {
    ...(Object.keys(flags).length === 0 ? {} : { flags }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
  }
}

/** Returns the actions that let one component run with what is wanted: none, a restart alone, or an edit and a restart. */
export function restartWith(
  seen: Seen<'files' | 'leases'>,
  phase: number,
  component: ComponentPicture,
  wanted: Wanted,
): readonly Action[] {
  const change = definitionChange(component, wanted)
  const mustEdit = Object.keys(change).length > 0
  if (!mustEdit && runsWith(seen, component, wanted)) return []
  if (mustEdit) return [editing(phase, component, change), restartOf(seen, phase, component)]
  // It is on its way up: to wait for another process than this would be to wait for ever.
  if (hasRead(seen, component, wanted)) return [awaitHealth(restartOf(seen, phase, component))]
  if (component.runsAs === 'static-pod' && hasReadDefinition(seen, component)) {
    // Its kubelet starts it anew only when the manifest is another one.
    const count = Number(component.annotations[rotationAnnotation] ?? '0')
    const annotations = { [rotationAnnotation]: String(count + 1) }
    return [editing(phase, component, { annotations }), restartOf(seen, phase, component)]
  }
  return [restartOf(seen, phase, component)]
}

function hasReadDefinition(seen: Seen<'files'>, component: ComponentPicture): boolean {
  const { process, node, definition } = component
  return hasStartedSince(process, fileAt(seen, node, definition))
}

function awaitHealth({ replaces: _, lease: __, ...restart }: RestartComponent): RestartComponent {
  return restart
}

function editing(
  phase: number,
  { node, definition, definitionDigest }: ComponentPicture,
  change: Partial<Pick<Wanted, 'annotations'>> & { flags?: Record<string, string | null> },
): WriteFile {
  const { flags = {}, annotations } = change
  const content = { kind: 'definition', flags, ...(annotations && { annotations }) } as const
  return {
    kind: 'write-file',
    phase,
    node,
    path: definition,
    replaces: definitionDigest,
    content,
    mode: 0o600,
  }
}

/** Returns the restart of a component; where one leads, with the Lease: who leads by then is seen when it is done. */
export function restartOf(
  seen: Seen<'leases'>,
  phase: number,
  { id, name, process: running, runsAs }: ComponentPicture,
): RestartComponent {
  const isElected = seen.leases.some((lease) => lease.name === name)
  return {
    kind: 'restart',
    phase,
    process: id,
    ...(running === undefined ? {} : { replaces: running.startedAtMs }),
    how: runsAs === 'static-pod' ? 'definition' : 'service',
    ...(isElected ? { lease: name } : {}),
  }
}

/** Returns components with the standbys first and the holder of the Lease last. */
export function leaderLast(
  seen: Seen<'leases'>,
  components: readonly ComponentPicture[],
): readonly ComponentPicture[] {
  const isLeader = ({ name, node }: ComponentPicture): boolean =>
    seen.leases.some((lease) => lease.name === name && lease.holder === node)
  return [...components.filter((one) => !isLeader(one)), ...components.filter(isLeader)]
}

/** One pass over the instances of a component: each next one after the one before is healthy, a leader at the end. */
export function passOver(
  seen: Seen<'components' | 'files' | 'leases'>,
  phase: number,
  name: ComponentName,
  wantedOf: (component: ComponentPicture) => Wanted,
): readonly Action[] {
  const steps = leaderLast(seen, componentsNamed(seen, name)).flatMap((component) =>
    restartWith(seen, phase, component, wantedOf(component)),
  )
  if (steps.length === 0) return []
  return [...steps, awaitLeader(phase, name)]
}

export function awaitLeader(phase: number, lease: string): Action {
  return {
    kind: 'wait',
    phase,
    until: { kind: 'leader', lease },
    because: `${lease} has a leader`,
    deadlineMs: 60_000,
  }
}

/** Returns lanes as a step; an empty one is left out, and one alone needs no company. */
export function together(
  atOnce: number,
  lanes: readonly { name: string; steps: readonly Action[] }[],
): readonly (Action | Together)[] {
  const busy = lanes.filter(({ steps }) => steps.length > 0)
  if (busy.length < 2 || atOnce < 2) return busy.flatMap(({ steps }) => steps)
  return [{ kind: 'together', atOnce, lanes: busy }]
}

/** Returns the first lane that has something to do alone, then the others so many at once. */
export function firstAlone(
  atOnce: number,
  lanes: readonly { name: string; steps: readonly Action[] }[],
): readonly Step[] {
  const [first, ...others] = lanes.filter(({ steps }) => steps.length > 0)
  return first === undefined ? [] : [...first.steps, ...together(atOnce, others)]
}

function differences(
  now: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string | null>> = {},
): Record<string, string | null> {
  return Object.fromEntries(Object.entries(wanted).filter(([name, value]) => (now[name] ?? null) !== value))
}
