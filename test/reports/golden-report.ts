import type { CertificateReport, InspectionReport, Problem } from '../../src/inspection/report.ts'

// A report with every kind of item, so that a golden file shows every part of a view.

/** The time of every golden file. */
export const goldenNow = '2026-11-21T09:00:00Z'

type Essentials = Pick<CertificateReport, 'source' | 'notAfter' | 'status'> & Partial<CertificateReport>

/** Returns a certificate's report. Defaults are those of a plain ECDSA leaf signed by CN=kubernetes. */
export function certificateReport(essentials: Essentials): CertificateReport {
  const notBefore = essentials.notBefore ?? '2026-06-01T08:00:00Z'
  const secondsLeft = (Date.parse(essentials.notAfter) - Date.parse(goldenNow)) / 1000
  const lifetime = (Date.parse(essentials.notAfter) - Date.parse(notBefore)) / 1000
  return {
    entry: '',
    subject: { text: 'CN=leaf', commonName: 'leaf', organization: [] },
    issuer: { text: 'CN=kubernetes', commonName: 'kubernetes', organization: [] },
    serialNumber: '6b2f09c1d4e87a53',
    notBefore,
    secondsLeft,
    percentLeft: Math.min(100, Math.max(0, (100 * secondsLeft) / lifetime)),
    isCa: false,
    publicKey: { algorithm: 'ECDSA', curve: 'P-256', sha256: digest('spki', essentials) },
    signatureAlgorithm: 'ecdsa-with-SHA256',
    subjectAltNames: { dns: [], ip: [], email: [], uri: [] },
    keyUsage: ['digitalSignature'],
    extendedKeyUsage: ['clientAuth'],
    authorityKeyId: '5f1c0d2e3b4a59687786a5b4c3d2e1f00f1e2d3c',
    fingerprintSha256: digest('certificate', essentials),
    ...essentials,
  }
}

// Replaces SHA-256: the same for the same place, and visibly not a real digest.
function digest(kind: string, { source, entry = '' }: Essentials): string {
  let state = 2166136261
  let text = ''
  for (const character of `${kind}${source}${entry}`)
    state = Math.imul(state ^ character.charCodeAt(0), 16777619)
  while (text.length < 64) {
    state = Math.imul(state ^ (state >>> 15), 2246822507)
    text += (state >>> 0).toString(16).padStart(8, '0')
  }
  return text.slice(0, 64)
}

const folder = '/etc/kubernetes'
const caReport = certificateReport({
  source: `${folder}/pki/ca.crt`,
  role: 'ca',
  subject: { text: 'CN=kubernetes', commonName: 'kubernetes', organization: [] },
  serialNumber: '00',
  notBefore: '2026-06-01T07:55:00Z',
  notAfter: '2036-05-29T08:00:00Z',
  isCa: true,
  publicKey: { algorithm: 'RSA', bits: 2048, sha256: '3e9b'.repeat(16) },
  signatureAlgorithm: 'sha256WithRSAEncryption',
  keyUsage: ['digitalSignature', 'keyEncipherment', 'keyCertSign'],
  extendedKeyUsage: [],
  subjectKeyId: '5f1c0d2e3b4a59687786a5b4c3d2e1f00f1e2d3c',
  fingerprintSha256: 'c0ffee00'.repeat(8),
  caPin: `sha256:${'3e9b'.repeat(16)}`,
  issuerFound: { source: `${folder}/pki/ca.crt`, entry: '', fingerprintSha256: 'c0ffee00'.repeat(8) },
  key: { source: `${folder}/pki/ca.key`, entry: '', matches: true },
  status: 'ok',
})
const signedByCa = { issuerFound: caReport.issuerFound! }

const server = certificateReport({
  source: `${folder}/pki/apiserver.crt`,
  role: 'apiserver',
  renewalName: 'apiserver',
  subject: { text: 'CN=kube-apiserver', commonName: 'kube-apiserver', organization: [] },
  notAfter: '2026-11-18T08:00:00Z',
  subjectAltNames: {
    dns: [
      'cp1',
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      'kubernetes.default.svc.cluster.local',
    ],
    ip: ['10.96.0.1', '192.0.2.10', '2001:db8::10'],
    email: [],
    uri: [],
  },
  keyUsage: ['digitalSignature', 'keyEncipherment'],
  extendedKeyUsage: ['serverAuth'],
  key: { source: `${folder}/pki/apiserver.key`, entry: '', matches: true },
  status: 'expired',
  ...signedByCa,
})

const certificates: CertificateReport[] = [
  server,
  certificateReport({
    source: `${folder}/admin.conf`,
    entry: 'user kubernetes-admin: client-certificate-data',
    role: 'admin.conf',
    renewalName: 'admin.conf',
    subject: {
      text: 'O=kubeadm:cluster-admins,CN=kubernetes-admin',
      commonName: 'kubernetes-admin',
      organization: ['kubeadm:cluster-admins'],
    },
    notAfter: '2026-11-24T12:30:00Z',
    status: 'critical',
    ...signedByCa,
  }),
  certificateReport({
    source: `${folder}/pki/apiserver-kubelet-client.crt`,
    role: 'apiserver-kubelet-client',
    renewalName: 'apiserver-kubelet-client',
    subject: {
      text: 'O=kubeadm:cluster-admins,CN=kube-apiserver-kubelet-client',
      commonName: 'kube-apiserver-kubelet-client',
      organization: ['kubeadm:cluster-admins'],
    },
    notAfter: '2026-12-10T08:00:00Z',
    status: 'warning',
    ...signedByCa,
  }),
  certificateReport({
    source: `${folder}/kubelet.conf`,
    entry: 'user default-auth: client-certificate (/var/lib/kubelet/pki/kubelet-client-current.pem)',
    role: 'kubelet client',
    subject: {
      text: 'O=system:nodes,CN=system:node:cp1',
      commonName: 'system:node:cp1',
      organization: ['system:nodes'],
    },
    notAfter: '2027-06-01T08:00:00Z',
    kubeletRotation: { earliest: '2027-02-11T08:00:00Z', latest: '2027-04-25T20:00:00Z' },
    status: 'ok',
    ...signedByCa,
  }),
  certificateReport({
    source: `${folder}/extra/子會社.crt`,
    subject: {
      text: 'O=東京支社\\, 本部,CN=監視 \u200bagent',
      commonName: '監視 \u200bagent',
      organization: ['東京支社, 本部'],
    },
    issuer: { text: 'CN=monitoring-ca', commonName: 'monitoring-ca', organization: [] },
    notBefore: '2027-01-01T00:00:00Z',
    notAfter: '2028-01-01T00:00:00Z',
    status: 'not-yet-valid',
  }),
  caReport,
  {
    ...caReport,
    source: `${folder}/admin.conf`,
    entry: 'cluster kubernetes: certificate-authority-data',
    role: 'cluster CA',
  },
]

const problems: Problem[] = [
  {
    source: server.source,
    entry: '',
    code: 'CERT_EXPIRED',
    severity: 'critical',
    message: "the API server's certificate expired 3 days ago: no client that verifies it can connect",
    next: 'kubeadm certs renew apiserver',
  },
  {
    source: `${folder}/admin.conf`,
    entry: 'user kubernetes-admin: client-certificate-data',
    code: 'CERT_EXPIRING_VERY_SOON',
    severity: 'critical',
    message: 'expires in 3 days, less than 7 days',
    next: 'kubeadm certs renew admin.conf',
  },
  {
    source: `${folder}/pki/apiserver-kubelet-client.crt`,
    entry: '',
    code: 'CERT_EXPIRING',
    severity: 'warning',
    message: 'expires in 18 days, less than 30 days',
    next: 'kubeadm certs renew apiserver-kubelet-client',
  },
  ...Array.from({ length: 7 }, (_, i) => ({
    source: `${folder}/pki/old/${i + 1}.key`,
    entry: '',
    code: 'KEY_READABLE_BY_OTHERS',
    severity: 'warning' as const,
    message: 'the private key can be read by other users (mode 0644)',
    fix: 'set its mode to 600',
    next: '',
  })),
  {
    source: `${folder}/super-admin.conf`,
    entry: 'user kubernetes-super-admin',
    code: 'SYSTEM_MASTERS',
    severity: 'info',
    message: 'the certificate is in system:masters, which no RBAC rule can take anything from',
    fix: 'keep it offline',
    next: '',
  },
]

export const goldenReport: InspectionReport = {
  apiVersion: 'kcert/v1',
  kind: 'InspectionReport',
  generatedAt: goldenNow,
  at: goldenNow,
  certificates,
  requests: [
    {
      source: `${folder}/extra/node-7.csr`,
      entry: '',
      subject: {
        text: 'O=system:nodes,CN=system:node:node-7',
        commonName: 'system:node:node-7',
        organization: ['system:nodes'],
      },
      publicKey: { algorithm: 'RSA', bits: 4096, sha256: '77aa'.repeat(16) },
      signatureAlgorithm: 'sha256WithRSAEncryption',
      signatureValid: false,
      subjectAltNames: { dns: ['node-7.example.com'], ip: ['192.0.2.77'], email: [], uri: [] },
      keyUsage: [],
      extendedKeyUsage: [],
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
      username: 'system:node:node-7',
      condition: 'Pending',
    },
  ],
  kubeconfigs: [
    {
      source: `${folder}/admin.conf`,
      entry: '',
      currentContext: 'kubernetes-admin@kubernetes',
      clusters: [
        { name: 'kubernetes', server: 'https://192.0.2.10:6443', insecureSkipTlsVerify: false },
        { name: 'old', server: 'https://192.0.2.9:6443', insecureSkipTlsVerify: true },
      ],
      users: [{ name: 'kubernetes-admin', credentials: ['client certificate'] }],
      contexts: [
        {
          name: 'kubernetes-admin@kubernetes',
          cluster: 'kubernetes',
          user: 'kubernetes-admin',
          isCurrent: true,
        },
        { name: 'web', cluster: 'kubernetes', user: 'kubernetes-admin', namespace: 'web', isCurrent: false },
      ],
    },
  ],
  keys: [
    {
      source: `${folder}/pki/apiserver.key`,
      entry: '',
      kind: 'private',
      format: 'PKCS#1',
      publicKey: server.publicKey,
      encrypted: false,
      matches: [{ source: server.source, entry: '' }],
    },
    {
      source: `${folder}/pki/old/1.key`,
      entry: '',
      kind: 'private',
      format: 'encrypted PKCS#8',
      encrypted: true,
      matches: [],
    },
  ],
  tokens: [
    {
      source: `${folder}/build.conf`,
      entry: 'user build: token',
      keyId: '0GdR1pC3Hk9sVb5tXq7yZa2cFe4gJi6lNm8oPr-uTwE',
      issuer: 'https://kubernetes.default.svc.cluster.local',
      subject: 'system:serviceaccount:build:runner',
      audiences: ['https://kubernetes.default.svc.cluster.local'],
      credentialId: 'JTI=5a8d3f0e-4c1b-4c55-9d0a-2f8f6f0b7c11',
      boundTo: 'pod runner-0',
      expirationTimestamp: '2026-11-21T08:30:00Z',
      isExpired: true,
    },
  ],
  withoutCertificate: [
    {
      source: `${folder}/oidc.conf`,
      entry: 'user alice',
      reason: 'logs in with the exec plugin kubelogin, which kcert never runs',
    },
  ],
  missing: [{ source: `${folder}/pki/front-proxy-client.crt`, role: 'front-proxy-client' }],
  problems,
  summary: {
    sources: 14,
    certificates: certificates.length,
    requests: 1,
    keys: 2,
    tokens: 1,
    ok: 3,
    warning: 1,
    critical: 1,
    expired: 1,
    notYetValid: 1,
    problems: { info: 1, warning: 8, critical: 2 },
    nextExpiry: '2026-11-24T12:30:00Z',
  },
}

/** Returns a report with one certificate. */
export function reportOf(certificate: CertificateReport): InspectionReport {
  return {
    ...goldenReport,
    certificates: [certificate],
    requests: [],
    tokens: [],
    keys: [],
    kubeconfigs: [],
    withoutCertificate: [],
    missing: [],
    problems: [],
    summary: {
      ...goldenReport.summary,
      sources: 1,
      certificates: 1,
      tokens: 0,
      requests: 0,
      keys: 0,
      ok: 1,
      warning: 0,
      critical: 0,
      expired: 0,
      notYetValid: 0,
      problems: { info: 0, warning: 0, critical: 0 },
    },
  }
}
