import type { InspectionReport } from '../../inspection/report.ts'
import { shortName } from '../names.ts'
import { joinSections } from '../sections.ts'
import { table } from '../table.ts'
import { printable } from '../terminal.ts'
import { type View, wholeWidth } from '../view.ts'

/**
 * Returns one line for each certificate: its name, the whole days until it expires (negative once it has expired), and its file.
 * The table has a heading, as in kubectl, unless the view has none.
 */
export function renderShort(
  { certificates }: InspectionReport,
  { hasHeadings = true }: Pick<View, 'hasHeadings'> = {},
): string {
  return joinSections([
    table({ ...wholeWidth, hasHeadings }, certificates, [
      { title: 'NAME', cell: ({ role, subject }) => role ?? shortName(subject) },
      { title: 'DAYS', cell: ({ secondsLeft }) => `${daysLeft(secondsLeft)}` },
      { title: 'PATH', cell: ({ source }) => source },
    ]),
  ])
}

/** Returns each file or object that contains certificates once, one for each line. */
export function renderNames({ certificates }: InspectionReport): string {
  return [...new Set(certificates.map(({ source }) => `${printable(source)}\n`))].join('')
}

/** Returns whole days, rounded towards now; -1 for a certificate that expired less than a day ago, because 0 is still valid. */
function daysLeft(seconds: number): number {
  const days = Math.floor(Math.abs(seconds) / 86_400)
  return seconds < 0 ? -Math.max(1, days) : days
}
