import { describe, expect, test } from 'vitest'
import { certificateReport, goldenNow, goldenReport, reportOf } from '../../../test/reports/golden-report.ts'
import type { CertificateReport, InspectionReport } from '../../inspection/report.ts'
import { verdictsOf } from './verdict.ts'

const leaf = (name: string, notAfter: string, more: Partial<CertificateReport> = {}) =>
  certificateReport({
    source: `/etc/kubernetes/pki/${name}.crt`,
    notBefore: '2025-11-18T08:00:00Z',
    notAfter,
    status: notAfter < goldenNow ? 'expired' : 'warning',
    renewalName: name,
    ...more,
  })
const problem = (one: CertificateReport, code: string) => ({
  ...{ source: one.source, entry: one.entry, code, severity: 'critical' as const },
  ...{ message: 'm', next: 'n' },
})
const reportWith = (certificates: CertificateReport[], codes = ['CERT_EXPIRED']): InspectionReport => ({
  ...reportOf(goldenReport.certificates[0]!),
  certificates,
  problems: certificates.flatMap((one) => codes.map((code) => problem(one, code))),
})
const of = (...certificates: CertificateReport[]) =>
  verdictsOf(reportWith(certificates)).verdicts.map(({ text, next }) => [text, next])

describe('the verdict', () => {
  const apiserver = leaf('apiserver', '2026-11-18T08:00:00Z')
  const etcd = leaf('etcd-server', '2026-11-20T08:00:00Z')

  test('has one command for all expired kubeadm certificates', () => {
    expect(of(apiserver, etcd)).toEqual([
      ["2 of this node's kubeadm certificates expired (oldest 3 days ago)", 'sudo kcert renew --all'],
    ])
  })

  test('counts a certificate found in two places once', () => {
    const again = { ...etcd, source: '/etc/kubernetes/kubelet.conf' }
    expect(of(etcd, again)[0]?.[0]).toBe("1 of this node's kubeadm certificates expired (1 day ago)")
  })

  test('counts certificates that expire soon separately', () => {
    const soon = leaf('admin.conf', '2026-12-01T09:00:00Z')
    expect(of(soon)[0]?.[0]).toBe("1 of this node's kubeadm certificates expire soon (in 10 days)")
    expect(of(apiserver, soon)[0]?.[0]).toBe(
      "1 of this node's kubeadm certificates expired (3 days ago), 1 more expire soon (in 10 days)",
    )
  })

  test('names certificates that kcert renew --all does not renew yet', () => {
    const later = leaf('etcd-peer', '2027-03-01T09:00:00Z')
    expect(of(apiserver, later)[0]?.[1]).toBe('sudo kcert renew apiserver etcd-peer')
  })

  test('directs the operator of a copy to the node', () => {
    const copied = [apiserver, etcd].map((one) => ({ ...one, source: `/backup/cp1${one.source}` }))
    expect(of(...copied)[0]?.[0]).toBe(
      '2 of the kubeadm certificates in /backup/cp1/etc/kubernetes/pki expired (oldest 3 days ago); renew them on the node itself',
    )
  })

  test('leaves certificates of an expired CA to the problem of that CA', () => {
    const ca = leaf('ca', '2026-11-01T08:00:00Z', { isCa: true, fingerprintSha256: 'ca' })
    const { renewalName: _, ...expiredCa } = ca
    const issuerFound = { source: ca.source, entry: '', fingerprintSha256: 'ca' }
    expect(of(expiredCa, { ...apiserver, issuerFound })).toEqual([])
  })

  test('absorbs only the problems that its command repairs', () => {
    const { others } = verdictsOf(reportWith([apiserver], ['CERT_EXPIRED', 'KEY_MISMATCH']))
    expect(others.map(({ code }) => code)).toEqual(['KEY_MISMATCH'])
  })
})
