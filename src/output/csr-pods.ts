import type { PodExplanation, PodRequest, PodRequestList } from '../csr/pods/report.ts'
import { conditionWords, createdText, removedText } from './csr-describe.ts'
import { verdictLines } from './csr-explain.ts'
import { ageColumn, expiryText, removalText, renderList, toneOf } from './csr-list.ts'
import { type Field, titledFields } from './fields.ts'
import type { Paint } from './paint.ts'
import { joinSections } from './sections.ts'
import { type Column, statusColumn } from './table.ts'
import type { View } from './view.ts'

/** Returns PodCertificateRequests as a table, and a line that counts them. */
export function renderPodRequestList(list: PodRequestList, view: View): string {
  return renderList('PodCertificateRequests', list, columnsAt(Date.parse(list.generatedAt), view.paint), view)
}

function columnsAt(now: number, paint: Paint): Column<PodRequest>[] {
  return [
    { title: 'NAMESPACE', cell: ({ namespace }) => namespace, shrinkTo: 8, cut: 'middle' },
    { title: 'NAME', cell: ({ name }) => name, shrinkTo: 12, cut: 'middle' },
    ageColumn,
    statusColumn('CONDITION', paint, ({ state }) => [
      `${state.slice(0, 1).toUpperCase()}${state.slice(1)}`,
      toneOf(state),
    ]),
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
    {
      title: 'DELETED IN',
      cell: ({ garbageCollection }) => removalText(garbageCollection?.after, now, '5m'),
    },
  ]
}

/** Returns the request, the reason for its state, and what to do. */
export function renderPodExplanation(explanation: PodExplanation, generatedAt: string, view: View): string {
  return joinSections([
    podRequestLines(explanation.request, generatedAt, view),
    ...verdictLines(explanation, view),
  ])
}

function podRequestLines(request: PodRequest, generatedAt: string, view: View): string[] {
  const { namespace, name, conditions, maxExpirationSeconds, garbageCollection } = request
  const fields: Field[] = [
    ['state', request.state, view.paint.status[toneOf(request.state)]],
    ...conditions.map((condition): Field => [condition.type.toLowerCase(), conditionWords(condition)]),
    ['created', createdText(request)],
    ['pod', request.podName],
    ['service account', request.serviceAccountName],
    ['node', request.nodeName],
    ['signer', request.signerName],
    ['lifetime', maxExpirationSeconds === undefined ? undefined : `at most ${maxExpirationSeconds} s`],
    ['expires', request.notAfter],
    ['refresh', request.beginRefreshAt],
    ['certificate', request.fault],
    ['deleted', garbageCollection && removedText(garbageCollection, generatedAt, '5m')],
    ['uid', request.uid],
  ]
  return titledFields(`${namespace}/${name}`, fields, view)
}
