import type { RotationStatus } from '../../rotation/report.ts'
import type { Paint } from '../paint.ts'
import { joinSections } from '../sections.ts'
import { type Column, tableLines } from '../table.ts'
import { printable } from '../terminal.ts'
import { minuteOf, timeLeft } from '../time.ts'
import type { View } from '../view.ts'
import { authorityLines } from './authorities.ts'
import { keptKeyLines } from './old-keys.ts'
import { placesText, splitPlace } from './places.ts'

type PhaseView = RotationStatus['phases'][number]

const states = {
  'not-begun': 'not begun',
  'under-way': 'under way',
  finished: 'finished: nobody trusts the old CA any more',
} as const

const positions = {
  introducing: 'nobody presents the new CA yet',
  presenting: 'the new CA is presented',
  dropping: 'the old CA is being dropped: there is no way back',
} as const

/** Returns where the rotation stands, and the next command. */
export function renderStanding(status: RotationStatus, view: View): string {
  return joinSections([headLines(status, view), phaseLines(status, view), nextLines(status, view)])
}

/** Returns the same with everything that is open, each proof with its age, and the nodes. */
export function renderStatus(status: RotationStatus, view: View): string {
  return joinSections([
    headLines(status, view),
    phaseLines(status, view),
    ...status.phases.map((phase) => openLines(phase, view)),
    evidenceLines(status, view),
    nodeLines(status, view),
    nextLines(status, view),
  ])
}

function headLines(status: RotationStatus, view: View): string[] {
  return [
    `${view.paint.heading('CA rotation')} ${standingText(status)}`,
    ...authorityLines(status.authorities, view),
  ]
}

/** Returns where it stands in a few words: "under way: nobody presents the new CA yet". */
export function standingText({ state, position }: RotationStatus): string {
  return state === 'under-way' ? `${states[state]}: ${positions[position]}` : states[state]
}

function phaseLines({ phases }: RotationStatus, { width, paint }: View): string[] {
  const columns: Column<PhaseView>[] = [
    { title: 'PHASE', cell: ({ number }) => String(number).padStart(5) },
    { title: 'STATE', cell: stateText, paint: (phase, cell) => strokeOf(phase, paint)(cell) },
    { title: 'RISK', cell: ({ risk }) => risk, dropRank: 2 },
    { title: 'WHAT', cell: ({ title }) => title, shrinkTo: 24 },
    { title: 'LAST RUN', cell: lastRunText, dropRank: 1 },
  ]
  return tableLines(columns, phases, width, paint)
}

function stateText({ state, gaps }: PhaseView): string {
  return state === 'open' ? `${gaps.length.toLocaleString('en')} open` : state
}

function strokeOf({ state }: PhaseView, { status, faint }: Paint) {
  if (state === 'holds') return status.ok
  return state === 'open' ? status.warning : faint
}

function lastRunText({ lastRun }: PhaseView): string {
  return lastRun === undefined ? '' : `${lastRun.event} ${minuteOf(lastRun.at)}`
}

const mostGaps = 50

/** Returns what is open at one place as one line, and so what is open alike on many nodes. */
export function groupsOf(gaps: PhaseView['gaps']): readonly { at: string; what: string }[] {
  const byPlace = new Map<string, string[]>()
  for (const { at, what } of gaps) byPlace.set(at, [...(byPlace.get(at) ?? []), what])
  const groups = new Map<string, { at: string; on: string; nodes: string[]; what: string }>()
  for (const [at, whats] of byPlace) {
    const { node, what: on = '' } = splitPlace(at)
    const what = whats.join('; ')
    const key = JSON.stringify([node === undefined ? at : on, what])
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { at, on, nodes: node === undefined ? [] : [node], what })
    else if (node !== undefined) group.nodes.push(node)
  }
  return [...groups.values()].map(({ at, on, nodes, what }) => ({
    at: nodes.length < 2 ? at : `${on} on ${placesText(nodes, 4)}`.trim(),
    what,
  }))
}

function openLines({ number, state, gaps, remarks }: PhaseView, { width, paint }: View): string[] {
  const notes = remarks.map((remark) => `  ${paint.faint('note:')} ${printable(remark)}`)
  if (state !== 'open') return state === 'holds' && notes.length > 0 ? [`phase ${number}`, ...notes] : []
  const groups = groupsOf(gaps)
  const shown = groups.slice(0, mostGaps)
  const more = groups.length - shown.length
  const table = tableLines(
    [
      { title: 'AT', cell: ({ at }) => at, shrinkTo: 24, cut: 'middle' },
      { title: `OPEN IN PHASE ${number}`, cell: ({ what }) => what, shrinkTo: 24 },
    ],
    shown,
    width,
    paint,
  )
  return [...table, ...(more > 0 ? [`and ${more.toLocaleString('en')} more: -o json has all`] : []), ...notes]
}

interface Proof {
  readonly number: number
  readonly what: string
  readonly ok: boolean
  readonly detail: string
  readonly places: string[]
  readonly keys: string[]
  oldestSeconds: number
}

/** What was asked in many places with one answer is one line, with the age of the oldest. */
function evidenceLines({ phases }: RotationStatus, { width, paint }: View): string[] {
  const proofs = new Map<string, Proof>()
  for (const { number, evidence } of phases) {
    for (const { key, ok, detail, ageSeconds } of evidence) {
      const at = key.slice(key.lastIndexOf(' ') + 1)
      const { node, what = '' } = splitPlace(at)
      const asked = node === undefined ? key : `${key.slice(0, -at.length)}${what}`.trim()
      const group = JSON.stringify([number, asked, ok, detail])
      const proof = proofs.get(group) ?? {
        number,
        what: asked,
        ok,
        detail,
        places: [],
        keys: [],
        oldestSeconds: 0,
      }
      if (node !== undefined) proof.places.push(node)
      proof.keys.push(key)
      proof.oldestSeconds = Math.max(proof.oldestSeconds, ageSeconds)
      proofs.set(group, proof)
    }
  }
  if (proofs.size === 0) return []
  const columns: Column<Proof>[] = [
    { title: 'PHASE', cell: ({ number }) => String(number).padStart(5) },
    {
      title: 'PROVEN',
      cell: ({ what, places, keys: [key = ''] }) =>
        places.length < 2 ? key : `${what} on ${placesText(places, 4)}`,
      shrinkTo: 30,
      cut: 'middle',
    },
    {
      title: 'ANSWER',
      cell: ({ ok }) => (ok ? 'yes' : 'no'),
      paint: ({ ok }, cell) => (ok ? paint.status.ok(cell) : paint.severity.critical(cell)),
    },
    { title: 'AGE', cell: ({ oldestSeconds }) => timeLeft(oldestSeconds) },
    { title: 'DETAIL', cell: ({ detail }) => detail, shrinkTo: 12, dropRank: 1 },
  ]
  return tableLines(columns, [...proofs.values()], width, paint)
}

function nodeLines({ nodes }: RotationStatus, { width, paint }: View): string[] {
  const columns: Column<RotationStatus['nodes'][number]>[] = [
    { title: 'NODE', cell: ({ name }) => name, shrinkTo: 12, cut: 'middle' },
    { title: 'ROLE', cell: ({ isControlPlane }) => (isControlPlane ? 'control plane' : 'worker') },
    {
      title: 'STATE',
      cell: ({ isReady, unreachable }) =>
        unreachable === undefined ? (isReady ? 'Ready' : 'not Ready') : `does not answer: ${unreachable}`,
      paint: ({ isReady, unreachable }, cell) =>
        isReady && unreachable === undefined ? paint.status.ok(cell) : paint.severity.critical(cell),
      shrinkTo: 12,
    },
    {
      title: 'CLOCK',
      cell: ({ clockSkewSeconds: skew }) =>
        skew === undefined ? '' : `${skew >= 0 ? '+' : ''}${skew.toFixed(2)} s`,
      dropRank: 1,
    },
    {
      title: 'OPEN IN PHASES',
      cell: ({ openPhases }) => (openPhases.length === 0 ? 'none' : openPhases.join(', ')),
    },
  ]
  return tableLines(columns, nodes, width, paint)
}

function nextLines({ next, blockers, state, oldKeys }: RotationStatus, { paint }: View): string[] {
  const refusals = blockers.flatMap(({ what, why, next: cure }) => [
    `${paint.severity.critical('blocked:')} ${printable(what)}`,
    `  why: ${printable(why)}`,
    `  next: ${printable(cure)}`,
  ])
  if (refusals.length > 0) return refusals
  if (next === undefined)
    return [
      `nothing is left to do${state === 'finished' ? '; the next rotation begins with a journal of its own: --journal FILE' : ''}`,
      ...keptKeyLines(oldKeys),
    ]
  return [`${paint.heading('next:')} ${printable(next.command)}`, `  ${printable(next.why)}`]
}
