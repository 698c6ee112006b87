import type { RotationRun } from '../../rotation/report.ts'
import { joinSections } from '../sections.ts'
import { statusColumn, table } from '../table.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'
import { keptKeyLines } from './old-keys.ts'
import { durationText } from './plan.ts'

/** Returns the result of a run: each phase with its duration, and the next command. */
export function renderRun({ direction, phases, outcome, next, oldKeys }: RotationRun, view: View): string {
  const { paint } = view
  const completed = direction === 'forward' ? 'complete' : 'rolled back'
  const nothing = direction === 'rollback' ? 'nothing to roll back' : 'nothing to do'
  const phaseTable = table(view, phases, [
    { title: 'PHASE', cell: ({ number }) => String(number).padStart(5) },
    statusColumn('OUTCOME', paint, ({ outcome: its }) =>
      its === 'completed' ? [completed, 'ok'] : ['declined', 'warning'],
    ),
    { title: 'TOOK', cell: (phase) => durationText(secondsOf(phase)) },
    { title: 'ACTIONS', cell: ({ actions }) => (actions === 0 ? 'none' : actions.toLocaleString('en')) },
    { title: 'WHAT', cell: ({ title }) => title, shrinkTo: 24 },
  ])
  const notes = phases.flatMap(({ number, remarks }) =>
    remarks.map((remark) => `${paint.faint(`phase ${number}:`)} ${printable(remark)}`),
  )
  const left =
    next === undefined
      ? ['nothing left to do', ...keptKeyLines(oldKeys)]
      : [`${paint.heading('next:')} ${printable(next.command)}`, `  ${printable(next.why)}`]
  return joinSections([
    phases.length === 0 ? [nothing] : phaseTable,
    notes,
    outcome === 'declined' && phases.length === 0 ? [] : left,
  ])
}

function secondsOf({ startedAt, finishedAt }: RotationRun['phases'][number]): number {
  return (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000
}
