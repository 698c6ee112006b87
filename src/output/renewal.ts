import type { CertificateRenewal } from '../ca/renewal-report.ts'
import { faultLines, fieldLines } from './fields.ts'
import { counted, joinSections } from './sections.ts'
import { table } from './table.ts'
import { minuteOf, timeLeft } from './time.ts'
import type { View } from './view.ts'

type Row = CertificateRenewal['certificates'][number]

const outcomes: Readonly<Record<CertificateRenewal['outcome'], string>> = {
  listed: '',
  'nothing-due': 'nothing is due: no file was written and nothing restarted',
  planned: 'planned: no file was written and nothing restarted',
  declined: 'declined: no file was written and nothing restarted',
  renewed: 'done',
  incomplete: 'not everything could be done: what is left is named above',
}

/** Returns every certificate with the time it has, what was done or would be, and what is left to somebody else. */
export function renderRenewal(report: CertificateRenewal, view: View): string {
  const { outcome, certificates, restarts, proofs, backups, unreachable, missing, next } = report
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
          if (action === 'cannot') return status.critical(cell)
          return action === 'renewed' || state === 'valid' ? status.ok(cell) : cell
        },
      },
    ]),
    fieldLines(
      view,
      restarts.map(({ node, program, because }) => [
        verb,
        `${node} ${program}${because === 'new-certificate' ? '' : `: ${because.replaceAll('-', ' ')}`}`,
      ]),
    ),
    fieldLines(
      view,
      proofs.map(({ node, name, what, at, ok, detail }) => [
        ok ? what : `not ${what}`,
        `${node} ${name}${at === '' ? '' : ` at ${at}`}: ${detail}`,
        ok ? undefined : status.critical,
      ]),
    ),
    ...hindered.map((row) => faultLines(view, ['cannot', `${row.node} ${row.name}`], row)),
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
  if (action === 'cannot') return `${state}, cannot be renewed here`
  const said = { valid: 'ok', due: 'due', expired: 'expired', broken: 'key of another' }[state]
  return action === 'renew' && state === 'valid' ? 'renewed by name' : said
}

function lastLines(report: CertificateRenewal, said: string, next: string | undefined): string[] {
  const { certificates, outcome } = report
  if (outcome === 'renewed') return [doneLine(report)]
  if (outcome !== 'listed') return [said]
  const count = certificates.filter(({ action }) => action === 'renew').length
  if (next === undefined) return ['nothing is due']
  if (count === 0) return [`nothing is due, and what is older than its certificates is restarted by: ${next}`]
  return [`${count} of ${certificates.length} are due; this renews them and restarts what must be: ${next}`]
}

/** Claims no more than was seen: the certificates that clients read from files are shown to nobody who could be asked. */
function doneLine({ certificates, restarts, proofs }: CertificateRenewal): string {
  const renewed = certificates.filter(({ action }) => action === 'renewed')
  if (renewed.length === 0) return `done: ${counted(restarts.length, 'process', 'processes')} restarted`
  const unseen = renewed.filter(
    (row) => !proofs.some(({ node, name, ok }) => ok && node === row.node && name === row.name),
  )
  const count = counted(renewed.length, 'certificate')
  if (unseen.length === 0) return `done: ${count} renewed and seen in use`
  const names = [...new Set(unseen.map(({ name }) => name))].join(', ')
  return `done: ${count} renewed, ${renewed.length - unseen.length} of them seen in use; not checked: ${names}`
}
