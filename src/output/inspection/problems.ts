import type { InspectionReport, Problem, Severity } from '../../inspection/report.ts'
import { placeText } from '../places.ts'
import { adviceLines, indentedLines } from '../sections.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'
import { padded } from '../width.ts'
import { plural } from './summary.ts'

const worstFirst: readonly Severity[] = ['critical', 'warning', 'info']
const indent = ' '.repeat('critical  '.length)

/**
 * Returns the lines about the problems, the worst first. What is wrong in the same words at several places is said once.
 * Sentences are wrapped; what to do next is not, because it may be a command and a terminal's own wrapping copies right.
 */
export function problemLines({ problems }: InspectionReport, view: View, placesShown = 5): string[] {
  const groups = Map.groupBy(problems, ({ severity, code, message, next }) =>
    JSON.stringify([severity, code, message, next]),
  )
  return worstFirst.flatMap((severity) =>
    [...groups.values()]
      .filter(([problem]) => problem?.severity === severity)
      .flatMap((group) => groupLines(group, view, placesShown)),
  )
}

function groupLines(group: readonly Problem[], view: View, placesShown: number): string[] {
  const { paint } = view
  const more = group.length - placesShown
  return group
    .slice(0, 1)
    .flatMap(({ severity, code, message, next }) => [
      `${paint.severity[severity](padded(severity, indent.length - 2))}  ${paint.heading(printable(code))}`,
      ...group.slice(0, placesShown).map((problem) => indent + printable(placeText(problem))),
      ...(more > 0 ? [`${indent}and ${more} more ${plural(more, 'place')} (-o wide shows all)`] : []),
      ...indentedLines(message, indent, view),
      ...adviceLines({ next: next || undefined }, indent),
    ])
}
