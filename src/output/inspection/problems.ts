import type { Problem, Severity } from '../../inspection/report.ts'
import { placeText } from '../places.ts'
import { adviceLines, indentedLines } from '../sections.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'
import { padded } from '../width.ts'
import { plural } from './summary.ts'

const worstFirst: readonly Severity[] = ['critical', 'warning', 'info']
const indent = ' '.repeat('critical  '.length)

/** Returns the problems by cause, the most severe first. A cause is one code with one fix. */
export function causesOf(problems: readonly Problem[]): (readonly [Problem, ...Problem[]])[] {
  const groups = Map.groupBy(problems, ({ severity, code, fix, next }) =>
    JSON.stringify([severity, code, fix, next]),
  )
  const causes = [...groups.values()].flatMap(([first, ...rest]) =>
    first === undefined ? [] : [[first, ...rest] as const],
  )
  return worstFirst.flatMap((severity) => causes.filter(([first]) => first.severity === severity))
}

/**
 * Returns the lines about problems: a block for each cause with its locations. Sentences are wrapped. Commands are not wrapped,
 * because a terminal copies its own wrapped lines as one line.
 */
export function problemLines(problems: readonly Problem[], view: View, placesShown = 5): string[] {
  return causesOf(problems).flatMap((group) => groupLines(group, view, placesShown))
}

function groupLines(group: readonly Problem[], view: View, placesShown: number): string[] {
  const { paint } = view
  const more = group.length - placesShown
  const shown = group.slice(0, placesShown)
  const isOneMessage = new Set(group.map(({ message }) => message)).size === 1
  const places = shown.flatMap((problem) => [
    indent + printable(placeText(problem)),
    ...(isOneMessage ? [] : indentedLines(problem.message, `${indent}  `, view)),
  ])
  return group
    .slice(0, 1)
    .flatMap(({ severity, code, message, fix, next }) => [
      `${paint.severity[severity](padded(severity, indent.length - 2))}  ${paint.heading(printable(code))}`,
      ...places,
      ...(more > 0 ? [`${indent}and ${more} more ${plural(more, 'place')} (-o wide shows all)`] : []),
      ...(isOneMessage ? indentedLines(message, indent, view) : []),
      ...(fix === undefined ? [] : indentedLines(`fix: ${fix}`, indent, view)),
      ...adviceLines({ next: next || undefined }, indent),
    ])
}
