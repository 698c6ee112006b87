import type { ErrorExplanation } from '../diagnosis/report.ts'
import { indentedLines, joinSections } from './sections.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'
import { wrapped } from './width.ts'

type ExplainedError = ErrorExplanation['errors'][number]
type Cause = ExplainedError['causes'][number]
type Check = Cause['checks'][number]

/** Returns each error with its meaning, its causes, and the commands that distinguish them. */
export function renderErrorExplanation({ errors, subject, next }: ErrorExplanation, view: View): string {
  if (errors.length === 0) return joinSections([unknownLines(subject, view), checkLines(next, '  ', view)])
  return joinSections(errors.flatMap((error) => errorSections(error, view)))
}

function errorSections(error: ExplainedError, view: View): string[][] {
  const { paint, width } = view
  const often = error.count > 1 ? ` (${error.count} times, first in line ${error.line})` : ''
  return [
    [
      ...indentedLines(`"${error.message}"${often}`, '', view).map((line) => paint.heading(line)),
      ...wrapped(printable(error.meaning), width),
    ],
    ...error.causes.map((cause, index) => causeLines(cause, index + 1, view)),
  ]
}

function causeLines({ id, detail, evidence, checks }: Cause, number: number, view: View): string[] {
  const { paint } = view
  const [first = '', ...rest] = indentedLines(`${number}. ${id}: ${detail}`, '   ', view)
  const heading = `${number}. ${id}:`
  return [
    paint.heading(heading) + first.slice('   '.length + heading.length),
    ...rest,
    ...(evidence === undefined
      ? []
      : indentedLines(`evidence in the text: ${evidence}`, '   ', view).map((line) =>
          paint.status.warning(line),
        )),
    ...checkLines(checks, '   ', view),
  ]
}

function checkLines(checks: readonly Check[], indent: string, view: View): string[] {
  return checks.flatMap(({ command, shows }) => [
    // A command is not wrapped, so that it can be pasted.
    `${indent}$ ${printable(command)}`,
    ...indentedLines(shows, `${indent}    `, view).map((line) => view.paint.faint(line)),
  ])
}

function unknownLines(subject: ErrorExplanation['subject'], { width, paint }: View): string[] {
  return [
    paint.heading('kcert knows no message in this text'),
    ...wrapped(
      subject === 'other'
        ? 'The text is not about certificates, TLS or identity, so the cause is probably something else. To check:'
        : 'The text is about certificates, TLS or identity, but kcert does not know the message. To check:',
      width,
    ),
  ]
}
