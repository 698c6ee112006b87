import type { RotationVerification } from '../../rotation/report.ts'
import { joinSections } from '../sections.ts'
import { statusColumn, table, yesOrNo } from '../table.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'
import { caLines } from './cas.ts'

const mostFindings = 50

/** Returns every question with its answer, and the objections by name. */
export function renderVerification(report: RotationVerification, view: View): string {
  const { ok, checks, serviceAccountKey } = report
  const { paint } = view
  const findings = checks.flatMap(({ id, findings: its }) => its.map((one) => ({ id, ...one })))
  const more = findings.length - mostFindings
  const accepted = checks.flatMap(({ accepted: its = [] }) => its)
  return joinSections([
    caLines(report, view),
    table(view, checks, [
      statusColumn('OK', paint, ({ ok }) => yesOrNo[`${ok}`]),
      { title: 'CHECK', cell: ({ what }) => what, shrinkTo: 24 },
      { title: 'CHECKED', cell: ({ checked }) => checked.toLocaleString('en') },
    ]),
    table(view, findings.slice(0, mostFindings), [
      { title: 'AT', cell: ({ at }) => at, shrinkTo: 20, cut: 'middle' },
      { title: 'FOUND', cell: ({ what }) => what, shrinkTo: 20 },
      { title: 'NEXT', cell: ({ next = '' }) => next, shrinkTo: 20, dropRank: 1 },
    ]),
    accepted.map(({ at, what }) => `accepted with --waive at ${printable(at)}: ${printable(what)}`),
    more > 0 ? [`and ${more.toLocaleString('en')} more: -o json shows all`] : [],
    [
      ok
        ? paint.status.ok(
            serviceAccountKey === undefined
              ? 'verified: nothing presents the old CA'
              : 'verified: no process uses the old key, and no token of it was found',
          )
        : paint.status.critical('not verified: fix the findings above first'),
    ],
  ])
}
