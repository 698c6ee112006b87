import type { InspectionReport, Problem, Severity } from '../../inspection/report.ts'
import type { Paint } from '../paint.ts'
import { placeText } from '../places.ts'
import { printable } from '../terminal.ts'
import { padded, wrapped } from '../width.ts'
import { plural } from './summary.ts'

const worstFirst: readonly Severity[] = ['critical', 'warning', 'info']
const indent = ' '.repeat('critical  '.length)

/**
 * Returns the lines about the problems, the worst first. What is wrong in the same words at several places is said once.
 * Sentences are wrapped; what to do next is not, because it may be a command and a terminal's own wrapping copies right.
 */
export function problemLines(
  report: InspectionReport,
  width: number,
  paint: Paint,
  placesShown = 5,
): string[] {
  return worstFirst.flatMap((severity) =>
    grouped(report.problems.filter((problem) => problem.severity === severity)).flatMap((group) =>
      groupLines(group, width, paint, placesShown),
    ),
  )
}

function grouped(problems: readonly Problem[]): Problem[][] {
  const groups = new Map<string, Problem[]>()
  for (const problem of problems) {
    const key = JSON.stringify([problem.code, problem.message, problem.next])
    const group = groups.get(key)
    if (group) group.push(problem)
    else groups.set(key, [problem])
  }
  return [...groups.values()]
}

function groupLines(group: readonly Problem[], width: number, paint: Paint, placesShown: number): string[] {
  const { severity, code, message, next } = group[0]!
  const lines = [
    `${paint.severity[severity](padded(severity, indent.length - 2))}  ${paint.heading(printable(code))}`,
  ]
  for (const problem of group.slice(0, placesShown)) lines.push(indent + printable(placeText(problem)))
  const more = group.length - placesShown
  if (more > 0) lines.push(`${indent}and ${more} more ${plural(more, 'place')} (-o wide shows all)`)
  for (const line of wrapped(printable(message), width - indent.length)) lines.push(indent + line)
  if (next !== '') lines.push(`${indent}next: ${printable(next)}`)
  return lines
}
