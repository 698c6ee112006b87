import type { CertificateRenewal } from '../ca/renewal-report.ts'
import { faultLines, fieldLines } from './fields.ts'
import { counted, joinSections } from './sections.ts'
import { table } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf, timeLeft } from './time.ts'
import type { View } from './view.ts'

type Row = CertificateRenewal['certificates'][number]

const outcomes: Readonly<Record<CertificateRenewal['outcome'], string>> = {
  listed: '',
  'nothing-due': 'nothing is due: no file was written and nothing restarted',
  planned: 'planned: no file was written and nothing restarted',
  declined: 'declined: no file was written and nothing restarted',
  renewed: 'done',
  incomplete: 'incomplete: the lines above name what is left',
}

/** Returns every certificate with its time left, the planned or completed action, and what kcert cannot do here. */
export function renderRenewal(report: CertificateRenewal, view: View): string {
  const { outcome, certificates, restarts, checks, backups, unreachable, missing, next } = report
  const { status } = view.paint
  const now = Date.parse(report.generatedAt)
  const verb = outcome === 'renewed' || outcome === 'incomplete' ? 'restarted' : 'restart'
  const hindered = certificates.filter(({ why }) => why !== undefined)
  return joinSections([
    table(view, certificates, [
      { title: 'NODE', cell: ({ node }) => node, shrinkTo: 8, cut: 'middle' },
      { title: 'CERTIFICATE', cell: ({ name }) => name },
      { title: 'EXPIRES', cell: ({ notAfter }) => minuteOf(notAfter), dropRank: 1 },
      {
        title: 'LEFT',
        cell: ({ notAfter }) => timeLeft((Date.parse(notAfter) - now) / 1000),
        paint: ({ state }, cell) =>
          state === 'valid' ? cell : status[state === 'due' ? 'warning' : 'expired'](cell),
      },
      {
        title: 'STATE',
        cell: stateText,
        paint: ({ action, state }, cell) => {
          if (action === 'not-renewable') return status.critical(cell)
          return action === 'renewed' || state === 'valid' ? status.ok(cell) : cell
        },
      },
    ]),
    fieldLines(
      view,
      restarts.map(({ node, program, reason }) => [
        verb,
        `${node} ${program}${reason === 'new-certificate' ? '' : `: ${reason.replaceAll('-', ' ')}`}`,
      ]),
    ),
    fieldLines(
      view,
      checks.map(({ node, name, what, at, ok, detail }) => [
        ok ? what : `not ${what}`,
        `${node} ${name}${at === '' ? '' : ` at ${at}`}: ${detail}`,
        ok ? undefined : status.critical,
      ]),
    ),
    ...hindered.map((row) => faultLines(view, ['not-renewable', `${row.node} ${row.name}`], row)),
    ...missing.map((row) => faultLines(view, ['missing', `${row.node}:${row.path}`], row)),
    fieldLines(
      view,
      unreachable.map(({ node, why }) => ['unreachable', `${node}: ${why}`, status.critical]),
    ),
    fieldLines(
      view,
      backups.map(({ node, folder }) => ['backup', `${node}:${folder}`]),
    ),
    lastLines(report, outcomes[outcome], next),
  ])
}

function stateText({ state, action }: Row): string {
  if (action === 'renewed') return 'renewed'
  if (action === 'not-renewable') return `${state}, cannot be renewed here`
  const said = { valid: 'valid', due: 'due', expired: 'expired', 'key-mismatch': 'key does not match' }[state]
  return action === 'renew' && state === 'valid' ? 'valid, named' : said
}

function lastLines(report: CertificateRenewal, said: string, next: string | undefined): string[] {
  const { certificates, outcome } = report
  if (outcome === 'renewed') return [doneLine(report)]
  if (outcome !== 'listed') return [said]
  const count = certificates.filter(({ action }) => action === 'renew').length
  if (next === undefined) return ['nothing is due']
  const due = counted(count, 'certificate')
  const first =
    count === 0
      ? 'no certificate is due, but processes are older than their certificates: restart them'
      : `${due} of ${certificates.length} ${count === 1 ? 'is' : 'are'} due for renewal`
  return [first, `next: ${next}`]
}

/**
 * Reports only what was checked. A client that reads a certificate from a file presents it to no server that kcert could query.
 */
function doneLine({ certificates, restarts, checks, root }: CertificateRenewal): string {
  const renewed = certificates.filter(({ action }) => action === 'renewed')
  if (root !== undefined)
    return `done: ${counted(renewed.length, 'certificate')} renewed below ${printable(root)}; nothing was restarted, and no server was checked`
  if (renewed.length === 0) return `done: ${counted(restarts.length, 'process', 'processes')} restarted`
  const unseen = renewed.filter(
    (row) => !checks.some(({ node, name, ok }) => ok && node === row.node && name === row.name),
  )
  const count = counted(renewed.length, 'certificate')
  if (unseen.length === 0) return `done: ${count} renewed and in use`
  const names = [...new Set(unseen.map(({ name }) => name))].join(', ')
  return `done: ${count} renewed, ${renewed.length - unseen.length} of them confirmed in use; not checked: ${names}`
}
