import type { ClusterRequest, RequestList } from '../csr/request-report.ts'
import { altNameList, shortName } from './names.ts'
import type { Paint } from './paint.ts'
import { type Column, tableLines } from './table.ts'
import { timeLeft } from './time.ts'
import type { View } from './view.ts'

/** Returns the requests as a table, and a line that counts them. */
export function renderRequestList(list: RequestList, { width, paint }: View): string {
  const { requests } = list
  if (requests.length === 0) return 'no CertificateSigningRequests\n'
  const lines = tableLines(columnsAt(Date.parse(list.generatedAt), paint), requests, width, paint)
  return `${lines.join('\n')}\n\n${summaryText(list)}\n`
}

function columnsAt(now: number, paint: Paint): Column<ClusterRequest>[] {
  return [
    { title: 'NAME', cell: ({ name }) => name, shrinkTo: 12, cut: 'middle' },
    { title: 'AGE', cell: ({ ageSeconds }) => (ageSeconds === undefined ? '' : ageText(ageSeconds)) },
    {
      title: 'CONDITION',
      cell: ({ condition }) => condition,
      paint: ({ state }, cell) => strokeOf(state, paint)(cell),
    },
    {
      title: 'SUBJECT',
      cell: ({ request, fault = '' }) => (request === undefined ? `(${fault})` : shortName(request.subject)),
      shrinkTo: 12,
    },
    { title: 'NAMES', cell: namesCell, shrinkTo: 8, dropRank: 3 },
    { title: 'USAGES', cell: ({ usages }) => usages.join(', '), shrinkTo: 8, dropRank: 2 },
    { title: 'SIGNER', cell: ({ signerName }) => signerName, shrinkTo: 14, cut: 'middle' },
    { title: 'REQUESTER', cell: ({ username }) => username ?? '', shrinkTo: 10, cut: 'middle', dropRank: 1 },
    { title: 'REMOVED IN', cell: ({ collected }) => removalText(collected?.after, now) },
  ]
}

function namesCell({ request }: ClusterRequest): string {
  if (request === undefined) return ''
  const { subjectAltNames } = request
  return [...altNameList(subjectAltNames), ...subjectAltNames.other].join(', ')
}

/** A clock that runs behind the server's makes no request younger than new. */
export function ageText(seconds: number): string {
  return timeLeft(Math.max(0, seconds))
}

/** When kube-controller-manager removes the object; what is over happens at its next look, which is `interval` away at most. */
export function removalText(after: string | undefined, now: number, interval = '1h'): string {
  if (after === undefined) return ''
  const seconds = (Date.parse(after) - now) / 1000
  return seconds <= 0 ? `within ${interval}` : timeLeft(seconds)
}

/** Returns how a state is coloured. */
export function strokeOf(
  state: ClusterRequest['state'],
  { status, severity }: Paint,
): (text: string) => string {
  if (state === 'issued') return status.ok
  return state === 'pending' || state === 'approved' ? status.warning : severity.critical
}

/** Returns the line that counts requests by state. */
export function summaryText({
  requests,
  summary,
}: {
  readonly requests: readonly unknown[]
  readonly summary: Partial<RequestList['summary']>
}): string {
  const words = {
    pending: 'pending',
    approved: 'approved and unsigned',
    failed: 'failed',
    denied: 'denied',
    issued: 'issued',
  }
  const counts = Object.entries(words)
    .map(([state, text]) => [summary[state as keyof typeof words] ?? 0, text] as const)
    .filter(([count]) => count > 0)
    .map(([count, text]) => `${count} ${text}`)
  return `${requests.length} ${requests.length === 1 ? 'request' : 'requests'}: ${counts.join(', ')}`
}
