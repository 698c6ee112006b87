import type { Step } from '../../src/rotation/action.ts'
import type { CertificateRecord } from '../../src/rotation/certificate-record.ts'
import type { Phase, Undo } from '../../src/rotation/phase.ts'
import { type SectionName, type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import type { Target } from '../../src/rotation/target.ts'
import type { Settings } from '../../src/rotation/target-reading.ts'
import type { ClusterShape } from '../fakes/simulated-cluster.ts'
import { Scene } from './scene.ts'

// States before and after a phase with one change, and the output of the phase for each: pending items, steps, refusals, remarks
// and the steps of its undo.

export interface State {
  readonly observed: Snapshot
  readonly target: Target
}

/** States with one change, by its name, created on demand. */
export type Changes = ReadonlyMap<string, () => State>

const sizes = { controlPlanes: 2, workers: 2, namespaces: 3 } as const

export const shapes: Readonly<Record<string, { shape: ClusterShape; settings: Partial<Settings> }>> = {
  kubeadm: { shape: sizes, settings: {} },
  'every flag': { shape: { ...sizes, allFlags: true }, settings: {} },
  'by hand': { shape: { ...sizes, isByHand: true }, settings: {} },
  'leaked key': { shape: sizes, settings: { reason: 'compromise' } },
}

const made = new Map<string, Promise<readonly State[]>>()

/** Returns the snapshots before phase 1 and after each of the twelve phases. */
export function statesOf(name: string): Promise<readonly State[]> {
  const known = made.get(name) ?? run(name)
  made.set(name, known)
  return known
}

async function run(name: string): Promise<readonly State[]> {
  const { shape, settings } = shapes[name]!
  const scene = new Scene(shape, settings)
  scene.clients.expectsBridge = settings.reason !== 'compromise'
  const observe = async (): Promise<State> => {
    const state = await scene.asProcess((rotation) => rotation.observe(sectionNames))
    return structuredClone(state)
  }
  const states = [await observe()]
  for (let phase = 1; phase <= 12; phase++) {
    await scene.runInTurn(phase)
    states.push(await observe())
  }
  return states
}

/** Returns the state with each item of a section changed separately: replaced by that of the other state, or removed. */
export function oneChanged(state: State, other: State, section: SectionName): Changes {
  const { observed } = state
  const changes = new Map<string, () => State>()
  const add = (name: string, value: () => unknown): void => {
    changes.set(name, () => ({ ...state, observed: { ...observed, [section]: value() } }))
  }
  add('all', () => other.observed[section])
  const now = observed[section] as unknown
  const then = other.observed[section] as unknown
  if (now instanceof Map) {
    for (const [key, one] of now) {
      const others = (then as typeof now).get(key)
      if (others !== undefined) add(`${key} as in the other`, () => new Map([...now, [key, others]]))
      add(`no ${key}`, () => new Map([...now].filter((entry) => entry[0] !== key)))
      for (const [name, value] of variantsOf(one))
        add(`${key} ${name}`, () => new Map([...now, [key, value]]))
    }
    for (const [key, others] of then as typeof now) {
      if (!now.has(key)) add(`${key} as in the other`, () => new Map([...now, [key, others]]))
    }
  } else if (Array.isArray(now)) {
    for (const [index, one] of now.entries()) {
      const others = (then as unknown[]).find((each) => keyOf(each) === keyOf(one))
      if (others !== undefined) add(`${keyOf(one)} as in the other`, () => now.with(index, others))
      add(`no ${keyOf(one)}`, () => now.toSpliced(index, 1))
      for (const [name, value] of variantsOf(one)) add(`${keyOf(one)} ${name}`, () => now.with(index, value))
    }
    for (const others of then as unknown[]) {
      if (!now.some((each) => keyOf(each) === keyOf(others)))
        add(`${keyOf(others)} as in the other`, () => [...now, others])
    }
  } else if (now !== undefined) {
    if (section !== 'stored') add('none', () => undefined)
    for (const [name, value] of variantsOf(now)) add(name, () => value)
  }
  return changes
}

/** Returns variants of a value: without each of its optional parts, and with each boolean negated. */
function variantsOf(thing: unknown): [string, unknown][] {
  const one = thing as Record<string, unknown>
  const variants: [string, unknown][] = []
  for (const [key, value] of Object.entries(one)) {
    if (typeof value === 'boolean') variants.push([`${key} ${!value}`, { ...one, [key]: !value }])
    if (typeof value === 'number')
      for (const by of [-600_000, 600_000]) variants.push([`${key} ${by}`, { ...one, [key]: value + by }])
    if (optional.has(key) || ('of' in one ? ofCopy : 'isActive' in one ? ofPublished : none).has(key)) {
      const { [key]: _, ...rest } = one
      variants.push([`without ${key}`, rest])
    }
    if (key === 'process' && value !== undefined)
      for (const [name, changed] of variantsOf(value))
        variants.push([`${key} ${name}`, { ...one, [key]: changed }])
    if (key === 'volume' && value !== undefined)
      for (const [name, changed] of variantsOf(value))
        variants.push([`${key} ${name}`, { ...one, [key]: changed }])
    if (
      key === 'trust' ||
      key === 'client' ||
      key === 'requestheader' ||
      key === 'signatures' ||
      key === 'chain'
    )
      if (Array.isArray(value)) variants.push([`${key} empty`, { ...one, [key]: [] }])
    if (key === 'flags' && typeof one.definition === 'string')
      for (const flag of Object.keys(value as object)) {
        const { [flag]: _, ...flags } = value as Record<string, string>
        variants.push([`without --${flag}`, { ...one, flags }])
      }
    if (key === 'signatures') {
      const unsigned = (value as { isValid: boolean }[]).map((signature) => ({
        ...signature,
        isValid: false,
      }))
      variants.push(['unsigned', { ...one, signatures: unsigned }])
    }
    if (key === 'contains' && typeof value === 'object') {
      variants.push(['has other content', { ...one, contains: { kind: 'other' } }])
      const { certificates } = value as { certificates?: string[] }
      if (certificates !== undefined) {
        variants.push(['empty', { ...one, contains: { ...value, certificates: [] } }])
        variants.push([
          'reversed',
          { ...one, contains: { ...value, certificates: certificates.toReversed() } },
        ])
      }
    }
  }
  return variants
}

const optional = new Set([
  'process',
  'volume',
  'workload',
  'holder',
  'clockSkewMs',
  'at',
  'linksTo',
  'certsSecret',
])
const ofCopy = new Set(['flags', 'digest'])
const ofPublished = new Set(['trust'])
const none = new Set<string>()

function keyOf(thing: unknown): string {
  const { id, kind, name, node, of, server, phase } = thing as Record<string, unknown>
  const what = of === undefined ? undefined : JSON.stringify(of)
  return [phase, node === id ? undefined : what && node, kind, id ?? name ?? server ?? what]
    .filter((part) => part !== undefined)
    .join(' ')
}

/** Returns the state with each setting changed separately. */
export function otherTargets(state: State): Changes {
  const { observed, target } = state
  const given = (more: Partial<Target>) => (): State => ({ observed, target: { ...target, ...more } })
  const only = (ca: string) => given({ changes: target.changes.filter((change) => change.ca === ca) })
  const ids = [
    ...observed.pods.flatMap(({ id, workload }) => [id, workload ?? '']),
    ...observed.handshakes.map(({ server }) => server),
    ...observed.kubeconfigs.map(({ id }) => id),
    ...observed.files.keys(),
  ]
  return new Map(
    Object.entries({
      'dropping turned': given({ isDropping: !target.isDropping }),
      'a leaked key': given({ reason: 'compromise' }),
      'new keys': given({ newKeys: !target.newKeys }),
      'one at once': given({ atOnce: 1 }),
      'an outage accepted': given({ acceptsOutage: true }),
      'clients that read again not trusted': given({ trustsReloadingClients: false }),
      'the cluster CA alone': only('cluster'),
      'the front-proxy CA alone': only('front-proxy'),
      'no CA': given({ changes: [] }),
      'a leaked front-proxy key': given({
        reason: 'compromise',
        changes: target.changes.filter(({ ca }) => ca === 'front-proxy'),
      }),
      'no bridge': given({ changes: target.changes.map(({ bridge: _, ...change }) => change) }),
      'everything waived': given({ waivers: new Set(ids) }),
      'ten minutes earlier': () => ({ observed: { ...observed, atMs: observed.atMs - 600_000 }, target }),
      'two hours later': () => ({ observed: { ...observed, atMs: observed.atMs + 7_200_000 }, target }),
    }),
  )
}

/** Returns the output of a phase for a state, one line each. */
export function saidBy(phase: Phase, state: State): readonly string[] {
  const { observed, target } = state
  const text = textOf(state)
  const { number } = phase
  const refusals = phase.refusals === undefined ? [] : phase.refusals(observed, target)
  const remarks = phase.remarks === undefined ? [] : phase.remarks(observed, target)
  const copies = observed.copies.filter((copy) => copy.phase === number)
  const undo = phase.undo(copies, observed, target)
  return [
    ...phase.gaps(observed, target).map(({ at, what }) => `gap ${text(at)}: ${text(what)}`),
    ...linesOf(phase.plan(observed, target)).map((line) => `step ${text(line)}`),
    ...refusals.map(({ what, next }) => `refusal ${text(what)}; ${text(next)}`),
    ...remarks.map((remark) => `remark ${text(remark)}`),
    ...undoLines(undo).map((line) => `undo ${text(line)}`),
  ]
}

function undoLines(undo: Undo): readonly string[] {
  if (undo.kind === 'steps') return linesOf(undo.steps)
  return [`${undo.kind}: ${undo.refusal.what}; ${undo.refusal.next}`]
}

function linesOf(steps: readonly Step[]): string[] {
  return steps.flatMap((step) =>
    step.kind === 'together'
      ? step.lanes.flatMap(({ name, steps: its }) =>
          its.map((one) => `(${name}, ${step.atOnce} of ${step.lanes.length} at once) ${lineOf(one)}`),
        )
      : [lineOf(step)],
  )
}

/** Omits text that is only for people, and the phase number, which definePhase adds to all actions. */
function lineOf(action: object): string {
  const { because: _, question: __, ...rest } = action as Record<string, unknown>
  return JSON.stringify(rest)
    .replaceAll('"', '')
    .replace(/replaces:[0-9a-f]{64},/, '')
}

/** Returns a function that replaces digests with names, and times with seconds from now. */
function textOf({ observed, target }: State): (line: string) => string {
  const names = new Map<string, string>()
  const name = (what: string, record: CertificateRecord | undefined): void => {
    if (record === undefined) return
    names.set(record.spki, `${what}-key`)
    names.set(record.digest, what)
  }
  for (const { ca, oldCa, newCa, bridge } of target.changes) {
    name(`${ca}-bridge`, bridge)
    name(`${ca}-old`, oldCa)
    name(`${ca}-new`, newCa)
  }
  return (line) =>
    line
      .replace(
        /[0-9a-f]{64}/g,
        (digest) => names.get(digest) ?? observed.certificates.get(digest)?.subject ?? '#',
      )
      .replace(/\b1\d{12}\b/g, (ms) => `${(Number(ms) - observed.atMs) / 1000} s`)
}

/** Returns the removed and the added lines. */
export function difference(before: readonly string[], after: readonly string[]): string[] {
  const less = (one: readonly string[], other: readonly string[]): string[] => {
    const left = [...other]
    return one.filter((line) => {
      const at = left.indexOf(line)
      if (at >= 0) left.splice(at, 1)
      return at < 0
    })
  }
  const gone = less(before, after).map((line) => `- ${line}`)
  const come = less(after, before).map((line) => `+ ${line}`)
  if (gone.length + come.length === 0 && before.join() !== after.join()) return ['in another order']
  return [...gone, ...come]
}
