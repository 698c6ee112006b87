import type { BootstrapKubeconfig, BootstrapProgress, BootstrapStep } from '../bootstrap/progress-report.ts'
import { markedLines } from './check-lines.ts'
import { type Field, fieldLines } from './fields.ts'
import { joinSections } from './sections.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'

const markOf = { done: 'ok', stopped: 'NO', unknown: '?', waiting: '-' } as const

/** Returns each step of a node's TLS bootstrap, and where it stopped. */
export function renderProgress(report: BootstrapProgress, view: View): string {
  const { node, verdict, ready, stoppedAt, steps } = report
  const { status, heading } = view.paint
  const stop = steps.find(({ id }) => id === stoppedAt)
  const where = stop === undefined ? 'unknown' : `stopped at step ${stop.number}, ${stop.id}`
  const answer =
    verdict === 'joined'
      ? status.ok(ready === true ? 'registered and Ready' : 'registered')
      : status.critical(where)
  const width = Math.max(0, ...steps.map(({ number }) => String(number).length))
  const label = ({ number, id }: BootstrapStep) => `${String(number).padStart(width)} ${id}`
  const marked = steps.map((step) => ({ ...step, id: label(step), mark: markOf[step.outcome] }))
  return joinSections([
    [`${heading(`TLS bootstrap of ${printable(node)}:`)} ${answer}`, ...markedLines(marked, view)],
    fieldLines(view, [['next', stop?.next]]),
  ])
}

/** Returns the path of the file and how its cluster was verified. Never the token. */
export function renderBootstrapKubeconfig(report: BootstrapKubeconfig, view: View): string {
  const { outcome, file, server, tokenId, cas, verification } = report
  return joinSections([
    fieldLines(view, [
      ['kubeconfig', outcome === 'written' ? file : `${file} would be written (--dry-run)`],
      ['server', server],
      ['token', tokenId],
      ...cas.map(({ subject, pin }): Field => ['CA', `${subject} ${pin}`]),
      ...verification.map((text): Field => ['verified', text]),
    ]),
  ])
}
