import type { RotationRun } from '../../rotation/report.ts'
import { joinSections } from '../sections.ts'
import { tableLines } from '../table.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'
import { keptKeyLines } from './old-keys.ts'
import { durationText } from './plan.ts'

/** Returns what came of a run: each phase with its time, and the next command. */
export function renderRun(
  { direction, phases, outcome, next, oldKeys }: RotationRun,
  { width, paint }: View,
): string {
  const words =
    direction === 'forward'
      ? { held: 'holds', declined: 'declined: nothing was done' }
      : { held: 'taken back', declined: 'declined: nothing was done' }
  const table =
    phases.length === 0
      ? [
          direction === 'back'
            ? 'nothing has been changed that could be taken back'
            : 'nothing was to be done',
        ]
      : tableLines(
          [
            { title: 'PHASE', cell: ({ number }) => String(number).padStart(5) },
            {
              title: 'OUTCOME',
              cell: ({ outcome: its }) => words[its],
              paint: ({ outcome: its }, cell) =>
                its === 'held' ? paint.status.ok(cell) : paint.status.warning(cell),
            },
            { title: 'TOOK', cell: (phase) => durationText(secondsOf(phase)) },
            {
              title: 'ACTIONS',
              cell: ({ actions }) => (actions === 0 ? 'none' : actions.toLocaleString('en')),
            },
            { title: 'WHAT', cell: ({ title }) => title, shrinkTo: 24 },
          ],
          phases,
          width,
          paint,
        )
  const notes = phases.flatMap(({ number, remarks }) =>
    remarks.map((remark) => `${paint.faint(`phase ${number}:`)} ${printable(remark)}`),
  )
  const left =
    next === undefined
      ? ['nothing is left to do', ...keptKeyLines(oldKeys)]
      : [`${paint.heading('next:')} ${printable(next.command)}`, `  ${printable(next.why)}`]
  return joinSections([table, notes, outcome === 'declined' && phases.length === 0 ? [] : left])
}

function secondsOf({ beganAt, endedAt }: RotationRun['phases'][number]): number {
  return (Date.parse(endedAt) - Date.parse(beganAt)) / 1000
}
