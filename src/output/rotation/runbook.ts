import type { RotationRunbook } from '../../rotation/report.ts'
import { counted } from '../sections.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'

/** Returns which scripts to run on which nodes, in order, and the next command. */
export function renderRunbook(runbook: RotationRunbook, { paint }: View): string {
  const { phase, title, folder, scripts, next, rollback } = runbook
  const order = Map.groupBy(scripts, (script) => script.order)
  const groups = [...order.values()].flatMap((group) => {
    const [{ order: number, maxUnavailable } = { order: 0, maxUnavailable: 1 }] = group
    const most = Math.min(maxUnavailable, group.length)
    const beside = group.length > 1 ? `, at most ${most} at a time` : ''
    return [
      `${paint.heading(`${number}.`)} on ${group.length === 1 ? 'this node' : `these ${group.length} nodes`}${beside}:`,
      ...group
        .slice(0, mostShown)
        .flatMap(({ node, path, actions }) => [
          `  ${printable(node)}: sh ${printable(path.slice(path.indexOf('/') + 1))}, in the copy of ${printable(`${folder}/${path.slice(0, path.indexOf('/'))}`)}`,
          ...actions.map((action) => `      ${printable(action)}`),
        ]),
      ...(group.length > mostShown ? [`  and ${counted(group.length - mostShown, 'node')} more`] : []),
    ]
  })
  const lines = [
    `${paint.heading(`phase ${phase}`)} ${printable(title)}`,
    ...(scripts.length === 0 ? ['nothing to do on nodes now'] : groups),
    ...(scripts.length === 0
      ? []
      : [
          '',
          'Some of these files contain private keys: copy each folder only to its own node, over a secure channel, and delete it here',
          'afterwards. Run there as root: sh run.sh. You can stop a script and run it again; it refuses if a file changed since the plan.',
        ]),
    `next: ${printable(next.command)}`,
    `      ${printable(next.why)}`,
    ...(rollback === undefined ? [] : [`to roll back these changes by scripts: ${printable(rollback)}`]),
  ]
  return `${lines.join('\n')}\n`
}

const mostShown = 20
