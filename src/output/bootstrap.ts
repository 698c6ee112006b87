import type { BootstrapKubeconfig, BootstrapProgress, BootstrapStep } from '../bootstrap/progress-report.ts'
import { markedLines } from './check-lines.ts'
import { type Field, fieldLines } from './fields.ts'
import { joinSections } from './sections.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'

const markOf = { done: 'ok', stopped: 'NO', unknown: '?', later: '-' } as const

/** Returns how far the node came, step by step, and where it stopped. */
export function renderProgress(report: BootstrapProgress, view: View): string {
  const { node, verdict, stoppedAt, steps } = report
  const { status, severity, heading } = view.paint
  const stop = steps.find(({ id }) => id === stoppedAt)
  const answer =
    verdict === 'arrived'
      ? status.ok('it has arrived')
      : severity.critical(stop === undefined ? 'not known' : `it stopped at step ${stop.number}, ${stop.id}`)
  const width = Math.max(0, ...steps.map(({ number }) => String(number).length))
  const label = ({ number, id }: BootstrapStep) => `${String(number).padStart(width)} ${id}`
  return joinSections([
    [
      `${heading(`How far did ${printable(node)} come?`)} ${answer}`,
      ...markedLines(
        steps.map((step) => ({ ...step, id: label(step), mark: markOf[step.outcome] })),
        view,
      ),
    ],
    stop?.next === undefined ? [] : fieldLines([['next', stop.next]], view),
  ])
}

/** Returns where the kubeconfig went, and why its cluster is believed. Never the token. */
export function renderBootstrapKubeconfig(report: BootstrapKubeconfig, view: View): string {
  const { outcome, file, server, tokenId, authorities, proof } = report
  const fields: Field[] = [
    ['kubeconfig', outcome === 'written' ? file : `${file} would be written (--dry-run)`],
    ['server', server],
    ['token', tokenId],
    ...authorities.map(({ subject, pin }): Field => ['CA', `${subject} ${pin}`]),
    ...proof.map((text): Field => ['believed', text]),
  ]
  return `${fieldLines(fields, view).join('\n')}\n`
}
