import type { PodExplanation, PodRequest, PodRequestList } from '../csr/pods/report.ts'
import { conditionWords, madeText, removedText } from './csr-describe.ts'
import { verdictLines } from './csr-explain.ts'
import { ageText, removalText, strokeOf, summaryText } from './csr-list.ts'
import { type Field, fieldLines } from './fields.ts'
import type { Paint } from './paint.ts'
import { joinSections } from './sections.ts'
import { type Column, tableLines } from './table.ts'
import { printable } from './terminal.ts'
import { timeLeft } from './time.ts'
import type { View } from './view.ts'

/** Returns PodCertificateRequests as a table, and a line that counts them. */
export function renderPodRequestList(list: PodRequestList, { width, paint }: View): string {
  const { requests } = list
  if (requests.length === 0) return 'no PodCertificateRequests\n'
  const lines = tableLines(columnsAt(Date.parse(list.generatedAt), paint), requests, width, paint)
  return `${lines.join('\n')}\n\n${summaryText(list)}\n`
}

function columnsAt(now: number, paint: Paint): Column<PodRequest>[] {
  return [
    { title: 'NAMESPACE', cell: ({ namespace }) => namespace, shrinkTo: 8, cut: 'middle' },
    { title: 'NAME', cell: ({ name }) => name, shrinkTo: 12, cut: 'middle' },
    { title: 'AGE', cell: ({ ageSeconds }) => (ageSeconds === undefined ? '' : ageText(ageSeconds)) },
    {
      title: 'CONDITION',
      cell: ({ state }) => `${state[0]!.toUpperCase()}${state.slice(1)}`,
      paint: ({ state }, cell) => strokeOf(state, paint)(cell),
    },
    { title: 'POD', cell: ({ podName }) => podName, shrinkTo: 12, cut: 'middle' },
    {
      title: 'SERVICE ACCOUNT',
      cell: ({ serviceAccountName }) => serviceAccountName,
      shrinkTo: 8,
      cut: 'middle',
      dropRank: 2,
    },
    { title: 'NODE', cell: ({ nodeName }) => nodeName, shrinkTo: 10, cut: 'middle', dropRank: 1 },
    { title: 'SIGNER', cell: ({ signerName }) => signerName, shrinkTo: 14, cut: 'middle' },
    { title: 'EXPIRES IN', cell: ({ notAfter }) => expiryText(notAfter, now) },
    { title: 'REMOVED IN', cell: ({ collected }) => removalText(collected?.after, now, '5m') },
  ]
}

function expiryText(notAfter: string | undefined, now: number): string {
  if (notAfter === undefined) return ''
  const seconds = (Date.parse(notAfter) - now) / 1000
  return seconds <= 0 ? 'expired' : timeLeft(seconds)
}

/** Returns the request, why it is where it is, and what to do. */
export function renderPodExplanation(explanation: PodExplanation, generatedAt: string, view: View): string {
  return joinSections([
    podRequestLines(explanation.request, generatedAt, view),
    ...verdictLines(explanation, view),
  ])
}

function podRequestLines(request: PodRequest, generatedAt: string, view: View): string[] {
  const { namespace, name, conditions, maxExpirationSeconds, collected } = request
  const fields: Field[] = [
    ['state', request.state, strokeOf(request.state, view.paint)],
    ...conditions.map((condition): Field => [condition.type.toLowerCase(), conditionWords(condition)]),
    ['created', madeText(request)],
    ['pod', request.podName],
    ['service account', request.serviceAccountName],
    ['node', request.nodeName],
    ['signer', request.signerName],
    ['lifetime', maxExpirationSeconds === undefined ? undefined : `at most ${maxExpirationSeconds} s`],
    ['expires', request.notAfter],
    ['refresh', request.beginRefreshAt],
    ['certificate', request.fault],
    ['removed', collected && removedText(collected, generatedAt, '5m')],
    ['uid', request.uid],
  ]
  const indented = fieldLines(fields, { ...view, width: view.width - 2 }).map((line) => `  ${line}`)
  return [view.paint.heading(printable(`${namespace}/${name}`)), ...indented]
}
