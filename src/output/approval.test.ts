import { expect, test } from 'vitest'
import type { Decided, DecisionReport } from '../csr/approval/decision-report.ts'
import { renderActs, renderDecisions } from './approval.ts'
import { noPaint } from './paint.ts'

const names = ['ann-of-the-payments-team.example.com', 'payments.internal.example.com']
const decided = (fields: Partial<Decided>): Decided => ({
  ...{
    name: 'csr-payments-7x2lq',
    outcome: 'approved',
    reason: 'by hand',
    signerName: 'example.com/serving',
  },
  ...{
    username: 'system:serviceaccount:payments:certificate-requester',
    usages: ['client auth'],
    groups: [],
  },
  request: {
    subject: { text: 'CN=payments', commonName: 'payments', organization: [] },
    subjectAltNames: { dns: names, ip: [], email: [], uri: [], other: [] },
    publicKey: { algorithm: 'ECDSA', curve: 'P-256', sha256: 'ab' },
    signatureAlgorithm: 'ecdsa-with-SHA256',
  },
  duties: [
    { name: 'identity', text: 'the requester is who it says', outcome: 'unknown' },
    { name: 'entitlement', text: 'the requester may have it', outcome: 'unknown' },
  ],
  rules: [
    { id: 'requester', duty: 'identity', outcome: 'unknown', detail: 'not verified: who', next: 'ask them' },
    {
      id: 'permission',
      duty: 'entitlement',
      outcome: 'unknown',
      detail: 'not verified: may',
      next: 'decide',
    },
  ],
  ...fields,
})
const report = (...requests: Decided[]): DecisionReport => ({
  ...{ apiVersion: 'kcert/v1', kind: 'RequestDecisions', action: 'approve', by: 'manual', dryRun: false },
  ...{ counts: { approved: requests.length }, requests },
})
const at80 = { width: 80, paint: noPaint }

test('shows NAME, SANs and REQUESTER of a request whole at 80 columns', () => {
  const shown = renderDecisions(report(decided({})), at80)
  expect(shown.split('\n')[0]?.split(/ {2,}/)).toEqual(['NAME', 'OUTCOME', 'REQUESTER'])
  expect(shown).toMatch(/^ +SANS$/m)
  for (const text of [
    'csr-payments-7x2lq',
    names.join(','),
    'system:serviceaccount:payments:certificate-requester',
  ])
    expect(shown).toContain(text)
})

test('shows one line for each duty that is not verified, and no advice after the approval', () => {
  const lines = renderDecisions(report(decided({})), at80).split('\n')
  expect(lines.filter((line) => /unknown|next:/.test(line))).toEqual([
    '  identity     unknown  not verified: who',
    '  entitlement  unknown  not verified: may',
  ])
  expect(renderDecisions(report(decided({ outcome: 'would-approve' })), at80)).toContain('next: ask them')
})

test('after the question, prints one line for each request and no table', () => {
  const skipped = decided({ name: 'b', outcome: 'skipped', reason: 'declined' })
  expect(renderActs(report(decided({}), skipped), at80)).toBe(
    [
      'certificatesigningrequest.certificates.k8s.io/csr-payments-7x2lq approved',
      'certificatesigningrequest.certificates.k8s.io/b skipped: declined',
      '',
    ].join('\n'),
  )
})
