import { expect, test } from 'vitest'
import type { VerificationReport, VerifiedCertificate } from '../verification/report.ts'
import { createPaint, noPaint } from './paint.ts'
import { renderVerification } from './verification.ts'
import type { View } from './view.ts'

const wide: View = { width: Number.POSITIVE_INFINITY, paint: noPaint }

function certificate(
  commonName: string,
  source: string,
  asked: Partial<VerifiedCertificate> = {},
): VerifiedCertificate {
  const name = { text: `CN=${commonName}`, commonName, organization: [] }
  return {
    source,
    entry: '',
    subject: name,
    issuer: name,
    serialNumber: '01',
    notBefore: '2026-01-01T00:00:00Z',
    notAfter: '2027-12-31T00:00:00Z',
    isCa: false,
    fingerprintSha256: commonName,
    ...asked,
  }
}

const leaf = certificate('kube-apiserver', 'apiserver.crt')
const root = certificate('kubernetes', 'ca.crt')

const trusted: VerificationReport = {
  apiVersion: 'kcert/v1',
  kind: 'VerificationReport',
  generatedAt: '2026-11-21T09:00:00Z',
  at: '2026-11-21T09:00:00Z',
  purpose: 'server',
  trusted: true,
  leaf,
  chains: [[leaf, root]],
  trustedUntil: '2027-12-31T00:00:00Z',
  alsoRefusedBy: [],
  acceptedBy: ['openssl', 'node', 'python'],
  differences: [],
  warnings: [],
}

const refused: VerificationReport = {
  ...trusted,
  name: 'api.example.com',
  trusted: false,
  chains: [],
  code: 'CERT_EXPIRED',
  reason: 'the CA "kubernetes" expired on 2026-11-20T09:00:00Z, 24 hours ago',
  certificate: root,
  path: [leaf, root],
  next: 'kcert inspect ca.crt',
  goError: 'x509: certificate has expired or is not yet valid',
}

test('begins with the verdict for a trusted chain and shows leaf, root and skipped checks', () => {
  expect(renderVerification(trusted, wide)).toBe(`TRUSTED as a server certificate

CHAIN  SUBJECT         EXPIRES (UTC)     FOUND IN
leaf   kube-apiserver  2027-12-31 00:00  apiserver.crt
root   kubernetes      2027-12-31 00:00  ca.crt

verified at    2026-11-21 09:00:00 UTC
trusted until  2027-12-31 00:00:00 UTC
host name      not checked; to check one: --name HOST
`)
})

test('marks the untrusted certificate of a refused chain, then shows why and what to do', () => {
  expect(
    renderVerification(refused, wide),
  ).toBe(`NOT TRUSTED as a server certificate for api.example.com: CERT_EXPIRED

CHAIN   SUBJECT         EXPIRES (UTC)     AT FAULT  FOUND IN
leaf    kube-apiserver  2027-12-31 00:00            apiserver.crt
issuer  kubernetes      2027-12-31 00:00  at fault  ca.crt

reason       the CA "kubernetes" expired on 2026-11-20T09:00:00Z, 24 hours ago
next         kcert inspect ca.crt
at fault     CN=kubernetes
found in     ca.crt
fingerprint  sha256:kubernetes
in Go        x509: certificate has expired or is not yet valid
verified at  2026-11-21 09:00:00 UTC
`)
})

test('groups verifiers that differ for the same reason, and shows warnings last', () => {
  const reason = 'it wants a self-signed root'
  const text = renderVerification(
    {
      ...trusted,
      differences: [
        { verifier: 'openssl', accepts: false, reason, error: 'unable to get issuer certificate' },
        { verifier: 'node', accepts: false, reason },
      ],
      warnings: [
        {
          source: 'ca.crt',
          entry: 'certificate 2',
          code: 'CERT_UNREADABLE',
          message: 'line 9: bad',
          next: 'remove it',
        },
      ],
    },
    wide,
  )
  expect(text.split('\n').slice(-6)).toEqual([
    '',
    'differs  refused by openssl verify, Node.js 24: it wants a self-signed root (unable to get issuer certificate)',
    '',
    'warning  CERT_UNREADABLE ca.crt: certificate 2: line 9: bad',
    '         next: remove it',
    '',
  ])
})

test('shows the user and the groups of a client certificate', () => {
  const text = renderVerification(
    { ...trusted, purpose: 'client', user: { name: 'admin', groups: ['system:masters', 'ops'] } },
    wide,
  )
  expect(text).toMatch(/^TRUSTED as a client certificate\n/)
  expect(text).toContain('\nuser           admin, groups system:masters, ops\n')
})

test('escapes names in certificates and requested names', () => {
  const evil = '\u001b[2J\u202eevil\u200b\n'
  const one = certificate(evil, evil)
  const text = renderVerification(
    {
      ...refused,
      name: evil,
      leaf: one,
      path: [one],
      certificate: one,
      issuer: one,
      reason: evil,
      next: evil,
      goError: evil,
      user: { name: evil, groups: [evil] },
      differences: [{ verifier: 'node', accepts: true, reason: evil }],
      warnings: [{ source: evil, entry: evil, code: 'X', message: evil, next: evil }],
    },
    wide,
  )
  expect(text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u200b\u202e]/)
  expect(text).toContain('\\u202eevil\\u200b')
})

test('keeps lines other than commands within the width of a narrow terminal', () => {
  const long = { ...refused, reason: 'because '.repeat(30), next: `kcert inspect ${'x'.repeat(80)}` }
  const lines = renderVerification(long, { width: 60, paint: noPaint }).split('\n')
  expect(lines.filter((line) => line.length > 60)).toEqual([expect.stringContaining('kcert inspect xxx')])
})

test('uses colour only to repeat words', async () => {
  const colour = renderVerification(refused, { ...wide, paint: await createPaint(1) })
  expect(colour.replaceAll(/\u001b\[\d+m/g, '')).toBe(renderVerification(refused, wide))
  expect(colour).not.toBe(renderVerification(refused, wide))
})
