import { expect, test } from 'vitest'
import type { ClusterRequest, RequestList } from '../csr/request-report.ts'
import { renderRequestList } from './csr-list.ts'
import { noPaint } from './paint.ts'

const request: ClusterRequest = {
  ...{ name: 'csr-payments-7x2lq', ageSeconds: 60, state: 'pending', condition: 'Pending', conditions: [] },
  ...{ signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] },
  ...{ username: 'system:node:worker-1', groups: [], labels: {} },
  request: {
    subject: { text: 'CN=system:node:worker-1', commonName: 'system:node:worker-1', organization: [] },
    subjectAltNames: { dns: ['worker-1.nodes.example.com'], ip: ['10.0.0.7'], email: [], uri: [], other: [] },
    publicKey: { algorithm: 'ECDSA', curve: 'P-256', sha256: 'ab' },
    signatureAlgorithm: 'ecdsa-with-SHA256',
  },
}
const list: RequestList = {
  ...{ apiVersion: 'kcert/v1', kind: 'RequestList', generatedAt: '2026-11-23T10:00:00Z' },
  ...{ requests: [request], summary: { pending: 1, approved: 0, failed: 0, denied: 0, issued: 0 } },
}
const headingAt = (width: number) =>
  renderRequestList(list, { width, paint: noPaint }).split('\n')[0]?.split(/ {2,}/)

test('has the columns of kubectl at 80 columns, with NAME and REQUESTER in full', () => {
  expect(headingAt(80)).toEqual(['NAME', 'AGE', 'SIGNER', 'REQUESTER', 'CONDITION'])
  const [, row] = renderRequestList(list, { width: 80, paint: noPaint }).split('\n')
  expect(row).toMatch(/^csr-payments-7x2lq .* system:node:worker-1 +Pending$/)
})

test('has more columns when the terminal is wider', () => {
  expect(headingAt(120)).toContain('SUBJECT')
  expect(headingAt(200)).toEqual(expect.arrayContaining(['SUBJECT', 'SANS', 'USAGES']))
})
