import type { CertificateRenewal } from '../ca/renewal-report.ts'
import { fieldLines } from './fields.ts'
import { joinSections } from './sections.ts'
import { type Column, tableLines } from './table.ts'
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
  const { width, paint } = view
  const now = Date.parse(report.generatedAt)
  const left = ({ notAfter }: Row): string => timeLeft((Date.parse(notAfter) - now) / 1000)
  const columns: Column<Row>[] = [
    { title: 'NODE', cell: ({ node }) => node, shrinkTo: 8, cut: 'middle' },
    { title: 'CERTIFICATE', cell: ({ name }) => name },
    { title: 'EXPIRES', cell: ({ notAfter }) => minuteOf(notAfter), dropRank: 1 },
    {
      title: 'LEFT',
      cell: left,
      paint: ({ state }, cell) =>
        state === 'valid' ? cell : state === 'due' ? paint.status.warning(cell) : paint.status.expired(cell),
    },
    {
      title: 'STATE',
      cell: (row) => stateText(row),
      paint: ({ action, state }, cell) =>
        action === 'cannot'
          ? paint.severity.critical(cell)
          : action === 'renewed' || state === 'valid'
            ? paint.status.ok(cell)
            : cell,
    },
  ]
  const verb = outcome === 'renewed' || outcome === 'incomplete' ? 'restarted' : 'restart'
  const hindered = certificates.filter(({ why }) => why !== undefined)
  return joinSections([
    tableLines(columns, certificates, width, paint),
    fieldLines(
      restarts.map(({ node, program, because }) => [
        verb,
        `${node} ${program}${because === 'new-certificate' ? '' : `: ${because.replaceAll('-', ' ')}`}`,
      ]),
      view,
    ),
    fieldLines(
      proofs.map(({ node, name, what, at, ok, detail }) => [
        ok ? what : `not ${what}`,
        `${node} ${name}${at === '' ? '' : ` at ${at}`}: ${detail}`,
        ...(ok ? [] : [paint.severity.critical]),
      ]) as [string, string][],
      view,
    ),
    ...hindered.map(({ node, name, why = '', next: its = '' }) =>
      fieldLines(
        [
          ['cannot', `${node} ${name}`, paint.severity.critical],
          ['why', why],
          ['next', its],
        ],
        view,
      ),
    ),
    ...missing.map(({ node, path, next: its }) =>
      fieldLines(
        [
          ['missing', `${node}:${path}`, paint.severity.critical],
          ['next', its],
        ],
        view,
      ),
    ),
    fieldLines(
      unreachable.map(
        ({ node, why }) => ['unreachable', `${node}: ${why}`, paint.severity.critical] as const,
      ),
      view,
    ),
    fieldLines(
      backups.map(({ node, folder }) => ['backup', `${node}:${folder}`] as const),
      view,
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
  const count = counted(renewed.length, 'certificate', 'certificates')
  if (unseen.length === 0) return `done: ${count} renewed and seen in use`
  const names = [...new Set(unseen.map(({ name }) => name))].join(', ')
  return `done: ${count} renewed, ${renewed.length - unseen.length} of them seen in use; not checked: ${names}`
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}
