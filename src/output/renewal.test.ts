import { expect, test } from 'vitest'
import type { CertificateRenewal } from '../ca/renewal-report.ts'
import { noPaint } from './paint.ts'
import { renderRenewal } from './renewal.ts'

const row = (name: string): CertificateRenewal['certificates'][number] => ({
  node: 'cp1',
  name,
  path: `/etc/kubernetes/${name}`,
  subject: `CN=${name}`,
  notAfter: '2027-11-01T00:00:00Z',
  state: 'valid',
  action: 'renewed',
})
const proof = (name: string, ok = true): CertificateRenewal['checks'][number] => ({
  node: 'cp1',
  name,
  what: 'served',
  at: ok ? '127.0.0.1:6443' : '',
  ok,
  detail: ok ? 'same as on disk' : 'etcd does not run there',
})
const rendered = (parts: Partial<CertificateRenewal>): string =>
  renderRenewal(
    {
      apiVersion: 'kcert/v1',
      kind: 'CertificateRenewal',
      generatedAt: '2026-11-01T00:00:00Z',
      outcome: 'renewed',
      certificates: [],
      missing: [],
      restarts: [],
      checks: [],
      backups: [],
      unreachable: [],
      ...parts,
    },
    { width: Infinity, paint: noPaint },
  )
const lastLine = (parts: Partial<CertificateRenewal>) => rendered(parts).trimEnd().split('\n').at(-1)

test('reports only confirmed certificates as in use', () => {
  const [apiserver, client] = [row('apiserver'), row('apiserver-kubelet-client')]
  expect(lastLine({ certificates: [apiserver], checks: [proof('apiserver')] })).toBe(
    'done: 1 certificate renewed and in use',
  )
  expect(lastLine({ certificates: [apiserver, client], checks: [proof('apiserver')] })).toBe(
    'done: 2 certificates renewed, 1 of them confirmed in use; not checked: apiserver-kubelet-client',
  )
  expect(lastLine({ certificates: [client] })).toBe(
    'done: 1 certificate renewed, 0 of them confirmed in use; not checked: apiserver-kubelet-client',
  )
  expect(lastLine({ restarts: [{ node: 'cp1', program: 'etcd', reason: 'new-certificate' }] })).toBe(
    'done: 1 process restarted',
  )
})

test('ignores checks of other nodes and failed checks', () => {
  const elsewhere = { ...proof('apiserver'), node: 'cp2' }
  for (const checks of [[elsewhere], [proof('apiserver', false)]])
    expect(lastLine({ certificates: [row('apiserver')], checks })).toContain('0 of them confirmed in use')
  expect(rendered({ outcome: 'incomplete', checks: [proof('etcd-server', false)] })).toContain(
    'not served  cp1 etcd-server: etcd does not run there',
  )
})
