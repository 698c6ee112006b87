import type { Advice } from '../errors/kcert-error.ts'
import type { Paint } from './paint.ts'
import { adviceLines } from './sections.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'
import { padded, wrapped } from './width.ts'

export type Mark = 'ok' | 'NO' | '?' | '-'

/** A checked item: its state, its name, the finding, and what to do where it is not ok. */
export interface MarkedLine extends Advice {
  readonly mark: Mark
  readonly id: string
  readonly detail: string
}

const markOf = { ok: 'ok', failed: 'NO', unknown: '?' } as const

/** Returns checks as lines. Long lines are wrapped with a hanging indent. */
export function markedLines(marked: readonly MarkedLine[], { paint, width }: View): string[] {
  const widest = Math.max(0, ...marked.map(({ id }) => id.length))
  const indent = ' '.repeat(widest + 8)
  return marked.flatMap(({ mark, id, detail, ...advice }) => {
    const [first = '', ...rest] = wrapped(printable(detail), width - indent.length)
    return [
      `  ${strokeOf(mark, paint)(padded(mark, 2))}  ${padded(id, widest)}  ${first}`,
      ...rest.map((line) => indent + line),
      ...(mark === 'ok' || mark === '-' ? [] : adviceLines({ fix: advice.fix, next: advice.next }, indent)),
    ]
  })
}

/** Returns the checks of a report as lines. */
export function checkLines(
  checks: readonly (Omit<MarkedLine, 'mark'> & { readonly outcome: keyof typeof markOf })[],
  view: View,
): string[] {
  return markedLines(
    checks.map(({ outcome, ...rest }) => ({ ...rest, mark: markOf[outcome] })),
    view,
  )
}

function strokeOf(mark: Mark, { status, severity, faint }: Paint): (text: string) => string {
  if (mark === 'ok') return status.ok
  if (mark === '-') return faint
  return mark === '?' ? status.warning : severity.critical
}

/** Returns a question, its answer, and the checks that lead to the answer. */
export function questionLines(
  question: string,
  verdict: 'ok' | 'failed' | 'unknown',
  checks: Parameters<typeof checkLines>[0],
  view: View,
): string[] {
  const { heading, status } = view.paint
  const answers = {
    ok: status.ok('yes'),
    failed: status.critical('NO'),
    unknown: status.warning('unknown: not everything could be checked'),
  }
  return [`${heading(question)} ${answers[verdict]}`, ...checkLines(checks, view)]
}
