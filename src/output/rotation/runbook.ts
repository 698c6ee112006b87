import type { RotationRunbook } from '../../rotation/report.ts'
import { counted } from '../sections.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'

/** Returns what is to be run where, in which order, and what comes then. */
export function renderRunbook(runbook: RotationRunbook, { paint }: View): string {
  const { phase, title, folder, scripts, next, back } = runbook
  const order = Map.groupBy(scripts, (script) => script.order)
  const groups = [...order.values()].flatMap((group) => {
    const [{ order: number, atOnce } = { order: 0, atOnce: 1 }] = group
    const most = Math.min(atOnce, group.length)
    const beside = group.length > 1 ? `, ${most} of these at the same time at most` : ''
    return [
      `${paint.heading(`${number}.`)} on ${group.length === 1 ? 'this node' : `these ${group.length} nodes`}${beside}:`,
      ...group
        .slice(0, mostShown)
        .flatMap(({ node, path, acts }) => [
          `  ${printable(node)}: sh ${printable(path.slice(path.indexOf('/') + 1))}, in what was carried there of ${printable(`${folder}/${path.slice(0, path.indexOf('/'))}`)}`,
          ...acts.map((act) => `      ${printable(act)}`),
        ]),
      ...(group.length > mostShown ? [`  and ${counted(group.length - mostShown, 'node')} more`] : []),
    ]
  })
  const lines = [
    `${paint.heading(`phase ${phase}`)} ${printable(title)}`,
    ...(scripts.length === 0 ? ['nothing is to be done on nodes now'] : groups),
    ...(scripts.length === 0
      ? []
      : [
          '',
          'Some of these files hold private keys: carry each folder to its own node alone, over a way that you trust, and remove it here',
          'afterwards. There, as root: sh run.sh. A script may be stopped and run again; it refuses where a file is not as it was planned.',
        ]),
    `next: ${printable(next.command)}`,
    `      ${printable(next.why)}`,
    ...(back === undefined ? [] : [`to take back what they did, scripts too: ${printable(back)}`]),
  ]
  return `${lines.join('\n')}\n`
}

const mostShown = 20
