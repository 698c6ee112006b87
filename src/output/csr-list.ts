import type { ClusterRequest, RequestList } from '../csr/request-report.ts'
import { altNameList, keyText, shortName } from './names.ts'
import type { Paint, Tone } from './paint.ts'
import { joinSections } from './sections.ts'
import { type Column, statusColumn, table, tableWidth } from './table.ts'
import { timeLeft } from './time.ts'
import type { View } from './view.ts'

/** Returns the requests as a table, and a line that counts them. */
export function renderRequestList(list: RequestList, view: View): string {
  const now = Date.parse(list.generatedAt)
  const columns = [...columnsAt(now, view.paint), ...(view.isWide ? wideColumnsAt(now) : [])]
  return renderList('CertificateSigningRequests', list, columnsThatFit(columns, list.requests, view), view)
}

interface Summarized<Request> {
  readonly requests: readonly Request[]
  readonly summary: Partial<RequestList['summary']>
}

/** Returns requests of a kind as a table, and a line that counts them. Without headings, returns the rows only. */
export function renderList<Request>(
  kind: string,
  list: Summarized<Request>,
  columns: readonly Column<Request>[],
  view: View,
): string {
  const rows = table(view, list.requests, columns)
  if (view.hasHeadings === false) return joinSections([rows])
  return rows.length === 0 ? `no ${kind}\n` : joinSections([rows, [summaryText(list)]])
}

/** The columns of `kubectl get csr`, which are always shown, then those for wider terminals. */
function columnsAt(now: number, paint: Paint): Column<ClusterRequest>[] {
  return [
    { title: 'NAME', cell: ({ name }) => name },
    ageColumn,
    { title: 'SIGNER', cell: ({ signerName }) => signerName, shrinkTo: 14, cut: 'middle' },
    { title: 'REQUESTER', cell: ({ username }) => username ?? '' },
    statusColumn('CONDITION', paint, ({ condition, state }) => [condition, toneOf(state)]),
    {
      title: 'SUBJECT',
      cell: ({ request, fault = '' }) => (request === undefined ? `(${fault})` : shortName(request.subject)),
      dropRank: 1,
    },
    { title: 'SANS', cell: namesCell, dropRank: 2 },
    {
      title: 'DELETED IN',
      cell: ({ garbageCollection }) => removalText(garbageCollection?.after, now),
      dropRank: 3,
    },
    { title: 'USAGES', cell: ({ usages }) => usages.join(', '), dropRank: 4 },
    // From spec.expirationSeconds, as in kubectl.
    {
      title: 'REQUESTEDDURATION',
      cell: ({ expirationSeconds }) => (expirationSeconds === undefined ? '' : timeLeft(expirationSeconds)),
      dropRank: 5,
    },
  ]
}

/** The columns that only -o wide shows. */
function wideColumnsAt(now: number): Column<ClusterRequest>[] {
  return [
    { title: 'EXPIRES IN', cell: ({ notAfter }) => expiryText(notAfter, now) },
    { title: 'KEY', cell: ({ request }) => (request === undefined ? '' : keyText(request.publicKey)) },
    { title: 'GROUPS', cell: ({ groups }) => groups.join(', ') },
  ]
}

/** Returns the time until a certificate expires; empty without a certificate. */
export function expiryText(notAfter: string | undefined, now: number): string {
  if (notAfter === undefined) return ''
  const seconds = (Date.parse(notAfter) - now) / 1000
  return seconds <= 0 ? 'expired' : timeLeft(seconds)
}

/**
 * Returns the columns without those that would cause others to be shortened. The column with the highest rank is dropped first.
 */
function columnsThatFit<Request>(
  columns: readonly Column<Request>[],
  requests: readonly Request[],
  { width }: Pick<View, 'width'>,
): readonly Column<Request>[] {
  if (tableWidth(columns, requests) <= width) return columns
  const ranked = columns.filter(({ dropRank }) => dropRank !== undefined)
  const last = ranked.sort((one, other) => (other.dropRank ?? 0) - (one.dropRank ?? 0))[0]
  if (last === undefined) return columns
  return columnsThatFit(
    columns.filter((column) => column !== last),
    requests,
    { width },
  )
}

function namesCell({ request }: ClusterRequest): string {
  if (request === undefined) return ''
  const { subjectAltNames } = request
  return [...altNameList(subjectAltNames), ...subjectAltNames.other].join(', ')
}

export const ageColumn: Column<Pick<ClusterRequest, 'ageSeconds'>> = {
  title: 'AGE',
  // If the local clock is behind the server's, the age is 0 and not negative.
  cell: ({ ageSeconds }) => (ageSeconds === undefined ? '' : timeLeft(Math.max(0, ageSeconds))),
}

/**
 * Returns the time until kube-controller-manager deletes the object. It deletes objects at its next check, at most `interval`
 * later.
 */
export function removalText(after: string | undefined, now: number, interval = '1h'): string {
  if (after === undefined) return ''
  const seconds = (Date.parse(after) - now) / 1000
  return seconds <= 0 ? `within ${interval}` : timeLeft(seconds)
}

/** Returns the colour of a state. */
export function toneOf(state: ClusterRequest['state']): Tone {
  if (state === 'issued') return 'ok'
  return state === 'pending' || state === 'approved' ? 'warning' : 'critical'
}

/** Returns the line that counts requests by state. */
function summaryText({ requests, summary }: Summarized<unknown>): string {
  const states = ['pending', 'approved', 'failed', 'denied', 'issued'] as const
  const counts = states
    .map((state) => ({ count: summary[state] ?? 0, state }))
    .filter(({ count }) => count > 0)
    .map(({ count, state }) => `${count} ${state === 'approved' ? 'approved and unsigned' : state}`)
  return `${requests.length} ${requests.length === 1 ? 'request' : 'requests'}: ${counts.join(', ')}`
}
