import type { KubeletDiagnosis } from '../kubelet/doctor/report.ts'
import { fieldLines } from './fields.ts'
import { joinSections, shownAdvice } from './sections.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'

type NodeReport = KubeletDiagnosis['nodes'][number]

/** Returns the problems of each node's kubelet certificates, why they matter, and what to do. */
export function renderDiagnosis({ nodes }: KubeletDiagnosis, view: View): string {
  return joinSections(nodes.flatMap((node) => nodeSections(node, view)))
}

function nodeSections(report: NodeReport, view: View): string[][] {
  const { node, folder, findings, fixed, kubelet, backup, unreachable } = report
  const { paint } = view
  if (unreachable !== undefined) return [fieldLines(view, [[node, unreachable, paint.status.critical]])]
  const states = {
    running: 'kubelet is running',
    'not-running': 'kubelet is not running',
    restarted: 'kubelet was restarted and is running',
    unknown: '',
  }
  const isWell = findings.every(({ severity }) => severity === 'info')
  const said = isWell ? 'no problems' : 'problems found'
  const state = [said, states[kubelet]].filter((word) => word !== '').join('; ')
  return [
    [paint.heading(printable(`${node}  ${folder}  ${state}`))],
    ...fixed.map(({ path, what }) =>
      fieldLines(view, [
        ['repaired', what, paint.status.ok],
        ['at', path],
      ]),
    ),
    ...findings.map(({ id, severity, path, what, why, fixable, ...advice }) => {
      const { fix, next } = shownAdvice(advice)
      const isRepairable = fixable && severity !== 'info'
      return fieldLines(view, [
        [severity, `${id}: ${what}`, paint.severity[severity]],
        ['at', path],
        ['why', why],
        ['fix', isRepairable ? 'repair it with kcert kubelet doctor --fix, or run the next command' : fix],
        ['next', next],
      ])
    }),
    fieldLines(view, [['backup', backup]]),
  ]
}
