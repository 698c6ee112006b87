import type { Explanation } from '../csr/explain/report.ts'
import { requestLines } from './csr-describe.ts'
import { joinSections } from './sections.ts'
import type { StatusText } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'
import { wrapped } from './width.ts'

const verdicts: Readonly<Record<Explanation['verdict'], StatusText>> = {
  issued: ['ISSUED: the certificate is ready', 'ok'],
  waiting: ['WAITING: it continues without you', 'warning'],
  stuck: ['STUCK: nothing happens until you act', 'critical'],
  failed: ['FAILED: permanently', 'critical'],
  denied: ['DENIED: permanently', 'critical'],
}

/** Returns the request, the reason for its state, and the next commands. */
export function renderExplanation(explanation: Explanation, generatedAt: string, view: View): string {
  const { request, decidedBy } = explanation
  return joinSections([
    requestLines({ ...request, decidedBy }, generatedAt, view),
    ...verdictLines(explanation, view),
  ])
}

/** Returns the reason for the state of a request of any kind, by section. */
export function verdictLines(
  { verdict, causes, unknownFacts }: Pick<Explanation, 'verdict' | 'causes' | 'unknownFacts'>,
  view: View,
): string[][] {
  const [text, tone] = verdicts[verdict]
  return [
    [view.paint.status[tone](text)],
    ...causes.map((cause) => [
      ...wrapped(`${view.paint.heading(cause.id)}: ${printable(cause.detail)}`, view.width),
      ...wrapped(`fix: ${printable(cause.fix)}`, view.width),
      ...cause.commands.map((command) => `next: ${printable(command)}`),
    ]),
    openLines(unknownFacts, view),
  ]
}

function openLines(open: Explanation['unknownFacts'], { paint }: View): string[] {
  if (open.length === 0) return []
  return [
    paint.heading('Facts that could not be read'),
    ...open.map(({ fact, why }) => `  ${printable(`${fact}: ${why}`)}`),
  ]
}
