import type { RotationStatus } from '../../rotation/report.ts'
import type { Paint } from '../paint.ts'
import { adviceLines, joinSections } from '../sections.ts'
import { statusColumn, table, yesOrNo } from '../table.ts'
import { printable } from '../terminal.ts'
import { minuteOf, timeLeft } from '../time.ts'
import type { View } from '../view.ts'
import { caLines } from './cas.ts'
import { keptKeyLines } from './old-keys.ts'
import { onNodes, splitPlace } from './places.ts'

type PhaseView = RotationStatus['phases'][number]

const states = { 'not-started': 'not started', 'in-progress': 'in progress', finished: 'finished' } as const

const ofCas = {
  finished: 'the old CA is no longer trusted',
  preparing: 'certificates of the new CA are not used yet',
  reissuing: 'certificates of the new CA are in use',
  removing: 'the old CA is being removed; rollback is no longer possible',
} as const

const ofKey: Readonly<Record<keyof typeof ofCas, string>> = {
  finished: 'tokens of the old key are no longer accepted',
  preparing: 'nothing signs with the new key yet',
  reissuing: 'the new key signs tokens',
  removing: "kcert's files are being deleted; rollback is no longer possible",
}

/** Returns the state of the rotation and the next command. */
export function renderProgress(status: RotationStatus, view: View): string {
  return joinSections([headLines(status, view), phaseLines(status, view), nextLines(status, view)])
}

/** Returns the state with all pending items, each proof with its age, and the nodes. */
export function renderStatus(status: RotationStatus, view: View): string {
  return joinSections([
    headLines(status, view),
    phaseLines(status, view),
    ...status.phases.map((phase) => openLines(phase, status, view)),
    evidenceLines(status, view),
    nodeLines(status, view),
    nextLines(status, view),
  ])
}

function headLines(status: RotationStatus, view: View): string[] {
  const what = status.serviceAccountKey === undefined ? 'CA rotation' : 'service account key rotation'
  return [`${view.paint.heading(what)} ${progressText(status)}`, ...caLines(status, view)]
}

/** Returns the state in a few words: "in progress: certificates of the new CA are not used yet". */
export function progressText({ state, position, serviceAccountKey }: RotationStatus): string {
  const texts = serviceAccountKey === undefined ? ofCas : ofKey
  if (state === 'not-started') return states[state]
  return `${states[state]}: ${texts[state === 'finished' ? state : position]}`
}

function phaseLines({ phases }: RotationStatus, view: View): string[] {
  return table(view, phases, [
    { title: 'PHASE', cell: ({ number }) => String(number).padStart(5) },
    { title: 'STATE', cell: stateText, paint: (phase, cell) => strokeOf(phase, view.paint)(cell) },
    { title: 'RISK', cell: ({ risk }) => riskTexts[risk], dropRank: 2 },
    { title: 'WHAT', cell: ({ title }) => title, shrinkTo: 24 },
    {
      title: 'LAST RUN',
      cell: ({ lastRun }) => (lastRun === undefined ? '' : lastRunText(lastRun)),
      dropRank: 1,
    },
  ])
}

export const riskTexts: Readonly<Record<PhaseView['risk'], string>> = {
  reads: 'read-only',
  writes: 'writes',
  restarts: 'restarts',
  irreversible: 'irreversible',
}

const events = {
  started: 'started',
  completed: 'completed',
  stopped: 'stopped',
  'rolled-back': 'rolled back',
} as const

/** Returns "completed 2026-11-20 08:41". */
export function lastRunText({ event, at }: NonNullable<PhaseView['lastRun']>): string {
  return `${events[event]} ${minuteOf(at)}`
}

/** Returns the state of a phase in words: complete, the number of pending items, or waiting for an earlier phase. */
export function stateText({ state, pending }: PhaseView): string {
  if (state === 'incomplete') return `${pending.length.toLocaleString('en')} pending`
  return state === 'complete' ? 'complete' : 'waiting'
}

function strokeOf({ state }: PhaseView, { status, faint }: Paint) {
  if (state === 'complete') return status.ok
  return state === 'incomplete' ? status.warning : faint
}

const mostPending = 50

/** Returns the pending items with one line for each location. Equal items on many nodes share one line. */
export function groupsOf(pending: PhaseView['pending']): readonly { at: string; what: string }[] {
  const places = [...Map.groupBy(pending, ({ at }) => at)].map(([at, all]) => ({
    at,
    ...{ node: undefined, what: '' },
    ...splitPlace(at),
    open: all.map(({ what }) => what).join('; '),
  }))
  const groups = Map.groupBy(places, ({ at, node, what, open }) =>
    JSON.stringify([node === undefined ? at : what, open]),
  )
  return [...groups.values()].flatMap((group) => {
    const nodes = group.flatMap(({ node }) => node ?? [])
    return group.slice(0, 1).map(({ at, what, open }) => ({
      at: nodes.length < 2 ? at : onNodes(what, nodes, 4),
      what: open,
    }))
  })
}

/** Returns what is pending in a phase, and its notes. Once the rotation is finished, only the notes of the last phase still apply. */
function openLines(
  { number, state, pending, remarks }: PhaseView,
  { state: ofRotation, phases }: RotationStatus,
  view: View,
): string[] {
  if (ofRotation === 'finished' && number !== phases.at(-1)?.number) return []
  const { paint } = view
  const notes = remarks.map((remark) => `  ${paint.faint('note:')} ${printable(remark)}`)
  if (state !== 'incomplete')
    return state === 'complete' && notes.length > 0 ? [`phase ${number}`, ...notes] : []
  const groups = groupsOf(pending)
  const more = groups.length - mostPending
  return [
    ...table(view, groups.slice(0, mostPending), [
      { title: 'AT', cell: ({ at }) => at, shrinkTo: 24, cut: 'middle' },
      { title: `PENDING IN PHASE ${number}`, cell: ({ what }) => what, shrinkTo: 24 },
    ]),
    ...(more > 0 ? [`and ${more.toLocaleString('en')} more: -o json shows all`] : []),
    ...notes,
  ]
}

/** A check with the same result in many places is one line, with the age of the oldest. */
function evidenceLines({ phases }: RotationStatus, view: View): string[] {
  const proofs = phases.flatMap(({ number, evidence }) =>
    evidence.map((one) => {
      const at = one.key.slice(one.key.lastIndexOf(' ') + 1)
      const { node, what = '' } = splitPlace(at)
      return {
        ...one,
        number,
        node,
        what: node === undefined ? one.key : `${one.key.slice(0, -at.length)}${what}`.trim(),
      }
    }),
  )
  const groups = Map.groupBy(proofs, ({ number, what, ok, detail }) =>
    JSON.stringify([number, what, ok, detail]),
  )
  const rows = [...groups.values()].flatMap((group) =>
    group.slice(0, 1).map((first) => ({
      ...first,
      places: group.flatMap(({ node }) => node ?? []),
      oldestSeconds: Math.max(0, ...group.map(({ ageSeconds }) => ageSeconds)),
    })),
  )
  return table(view, rows, [
    { title: 'PHASE', cell: ({ number }) => String(number).padStart(5) },
    {
      title: 'CHECK',
      cell: ({ what, places, key }) => (places.length < 2 ? key : onNodes(what, places, 4)),
      shrinkTo: 30,
      cut: 'middle',
    },
    statusColumn('OK', view.paint, ({ ok }) => yesOrNo[`${ok}`]),
    { title: 'AGE', cell: ({ oldestSeconds }) => timeLeft(oldestSeconds) },
    { title: 'DETAIL', cell: ({ detail }) => detail, shrinkTo: 12, dropRank: 1 },
  ])
}

/** Returns the role of a node of the status. */
export function roleOf({ isControlPlane, isEtcdMachine }: RotationStatus['nodes'][number]): string {
  if (isEtcdMachine) return 'etcd'
  return isControlPlane ? 'control plane' : 'worker'
}

function nodeLines({ nodes }: RotationStatus, view: View): string[] {
  const { status } = view.paint
  return table(view, nodes, [
    { title: 'NODE', cell: ({ name }) => name, shrinkTo: 12, cut: 'middle' },
    { title: 'ROLE', cell: roleOf },
    {
      title: 'STATE',
      cell: ({ isReady, unreachable }) =>
        unreachable === undefined ? (isReady ? 'Ready' : 'not Ready') : `unreachable: ${unreachable}`,
      paint: ({ isReady, unreachable }, cell) =>
        status[isReady && unreachable === undefined ? 'ok' : 'critical'](cell),
      shrinkTo: 12,
    },
    {
      title: 'CLOCK',
      cell: ({ clockSkewSeconds: skew }) =>
        skew === undefined ? '' : `${skew >= 0 ? '+' : ''}${skew.toFixed(2)} s`,
      dropRank: 1,
    },
    { title: 'PENDING IN PHASES', cell: ({ pendingPhases }) => pendingPhases.join(', ') || 'none' },
  ])
}

/** Returns the blockers of the rotation, why, and what to do about them. */
export function blockerLines(blockers: RotationStatus['blockers'], { paint }: View): string[] {
  return blockers.flatMap((blocker) => [
    `${paint.status.critical('blocked:')} ${printable(blocker.what)}`,
    ...adviceLines(blocker),
  ])
}

function nextLines({ next, blockers, state, oldKeys }: RotationStatus, view: View): string[] {
  if (blockers.length > 0) return blockerLines(blockers, view)
  if (next !== undefined)
    return [`${view.paint.heading('next:')} ${printable(next.command)}`, `  ${printable(next.why)}`]
  const another = '; start the next rotation with a new journal: --journal FILE'
  return [`nothing left to do${state === 'finished' ? another : ''}`, ...keptKeyLines(oldKeys)]
}
