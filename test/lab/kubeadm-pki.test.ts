import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CertificateReport, InspectionReport } from '../../src/inspection/report.ts'
import { buildBinaries } from './binaries.ts'
import { whyNotHere } from './machine.ts'
import { defaultMinor, releases } from './spec.ts'
import { stepsOn } from './steps.ts'

// A PKI created by the real kubeadm, read by kubeadm, openssl and kcert. All three agree on every field.

const leftOut = whyNotHere()
if (leftOut) process.stdout.write(`${leftOut}\n`)

describe.skipIf(leftOut).each(['RSA-2048', 'ECDSA-P256'])('a kubeadm PKI with %s keys', (algorithm) => {
  let folder: string
  let kubeadm: string
  let report: InspectionReport
  let exit: number

  beforeAll(async () => {
    const binaries = await buildBinaries(
      defaultMinor,
      stepsOn((line) => process.stderr.write(`${line}\n`)),
    )
    kubeadm = join(binaries.folder, 'kubeadm')
    folder = mkdtempSync(join(tmpdir(), 'kcert-kubeadm-'))
    writeFileSync(join(folder, 'kubeadm.yaml'), clusterConfiguration(folder, algorithm))
    const config = ['--config', join(folder, 'kubeadm.yaml')]
    execFileSync(kubeadm, ['init', 'phase', 'certs', 'all', ...config], { stdio: 'ignore' })
    execFileSync(kubeadm, [
      'init',
      'phase',
      'kubeconfig',
      'all',
      ...config,
      '--kubeconfig-dir',
      join(folder, 'k'),
    ])
    ;({ report, exit } = inspect(join(folder, 'k')))
  })

  afterAll(() => rmSync(folder, { recursive: true }))

  test('is healthy: no problem of severity warning or higher, exit code 0', () => {
    expect(report.problems.filter(({ severity }) => severity !== 'info')).toEqual([])
    expect(report.missing).toEqual([])
    expect(exit).toBe(0)
  })

  test('every certificate has its role, issuer and matching key', () => {
    // ten certificates and CAs as files; five kubeconfigs with a cluster CA and a client certificate each
    expect(report.certificates).toHaveLength(10 + 5 * 2)
    for (const certificate of report.certificates) {
      expect(certificate.role, place(certificate)).toBeTruthy()
      expect(certificate.issuerFound, place(certificate)).toBeDefined()
      if (!certificate.isCa) expect(certificate.key, place(certificate)).toMatchObject({ matches: true })
    }
  })

  test('has the expiry and CA that kubeadm certs check-expiration prints', () => {
    const expirations = checkExpiration(kubeadm, folder)
    const rows = [...expirations.certificates, ...expirations.certificateAuthorities].filter(
      (row) => !row.missing,
    )
    expect(rows.map(({ name }) => name).sort()).toEqual([
      'apiserver',
      'apiserver-etcd-client',
      'apiserver-kubelet-client',
      'ca',
      'etcd-ca',
      'etcd-healthcheck-client',
      'etcd-peer',
      'etcd-server',
      'front-proxy-ca',
      'front-proxy-client',
    ])
    for (const { name, expirationDate, caName } of rows) {
      const certificate = report.certificates.find(
        ({ role, source }) => role === name && source.includes('/pki/'),
      )!
      expect({ name, notAfter: certificate?.notAfter }).toEqual({ name, notAfter: expirationDate })
      const issuer = report.certificates.find(
        ({ fingerprintSha256, source }) =>
          fingerprintSha256 === certificate.issuerFound?.fingerprintSha256 && source.includes('/pki/'),
      )
      if (caName) expect({ name, issuer: issuer?.role }).toEqual({ name, issuer: caName })
    }
  })

  test('has the fields that openssl x509 prints', () => {
    const files = report.certificates.filter(({ source }) => source.endsWith('.crt'))
    expect(files).toHaveLength(10)
    for (const certificate of files) expect(byKcert(certificate)).toEqual(byOpenssl(certificate.source))
  })
})

function inspect(target: string): { report: InspectionReport; exit: number } {
  try {
    const stdout = execFileSync(process.execPath, ['bin/run.js', 'inspect', target, '-o', 'json'], {
      encoding: 'utf8',
    })
    return { report: JSON.parse(stdout) as InspectionReport, exit: 0 }
  } catch (error) {
    const { stdout, status } = error as { stdout: string; status: number }
    return { report: JSON.parse(stdout) as InspectionReport, exit: status }
  }
}

function place({ source, entry }: CertificateReport): string {
  return `${source} ${entry}`
}

interface Expiration {
  readonly name: string
  readonly expirationDate: string
  readonly caName?: string
  readonly missing: boolean
}

function checkExpiration(kubeadm: string, folder: string) {
  const args = ['certs', 'check-expiration', '--config', join(folder, 'kubeadm.yaml'), '-o', 'json']
  const stdout = execFileSync(kubeadm, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return JSON.parse(stdout) as { certificates: Expiration[]; certificateAuthorities: Expiration[] }
}

function clusterConfiguration(folder: string, algorithm: string): string {
  return `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
nodeRegistration: {name: cp1}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ${releases[defaultMinor].kubernetes}
certificatesDir: ${join(folder, 'k/pki')}
encryptionAlgorithm: ${algorithm}
controlPlaneEndpoint: api.example.test:6443
apiServer: {certSANs: [api.example.test, "2001:db8::10"]}
`
}

function byKcert(certificate: CertificateReport) {
  const { subjectAltNames } = certificate
  return {
    subject: certificate.subject.text,
    issuer: certificate.issuer.text,
    serialNumber: certificate.serialNumber,
    notBefore: certificate.notBefore,
    notAfter: certificate.notAfter,
    fingerprintSha256: certificate.fingerprintSha256,
    signatureAlgorithm: certificate.signatureAlgorithm,
    names: [
      ...subjectAltNames.dns.map((name) => `DNS:${name}`),
      ...subjectAltNames.ip.map((ip) => `IP:${ip}`),
    ].sort(),
    isCa: certificate.isCa,
    keyUsage: certificate.keyUsage,
    extendedKeyUsage: certificate.extendedKeyUsage,
    subjectKeyId: certificate.subjectKeyId,
    authorityKeyId: certificate.authorityKeyId,
    publicKeySha256: certificate.publicKey.sha256,
  }
}

const usageNames: Record<string, string> = {
  'Digital Signature': 'digitalSignature',
  'Key Encipherment': 'keyEncipherment',
  'Certificate Sign': 'keyCertSign',
  'TLS Web Server Authentication': 'serverAuth',
  'TLS Web Client Authentication': 'clientAuth',
}

function byOpenssl(file: string): ReturnType<typeof byKcert> {
  const x509 = (...args: string[]) =>
    execFileSync('openssl', ['x509', '-in', file, '-noout', ...args], { encoding: 'utf8' })
  const value = (text: string) => text.slice(text.indexOf('=') + 1).trim()
  const text = x509('-text')
  const extension = (name: string) => new RegExp(`X509v3 ${name}:.*\\n +(.*)`).exec(text)?.[1]
  const usages = (name: string) =>
    (extension(name)?.split(', ') ?? []).map((usage) => usageNames[usage] ?? usage)
  const keyId = (name: string) =>
    extension(name)
      ?.replace(/^keyid:/, '')
      .replaceAll(':', '')
      .toLowerCase()
  return {
    subject: value(x509('-subject', '-nameopt', 'RFC2253')),
    issuer: value(x509('-issuer', '-nameopt', 'RFC2253')),
    serialNumber: value(x509('-serial')).toLowerCase(),
    notBefore: time(value(x509('-startdate'))),
    notAfter: time(value(x509('-enddate'))),
    fingerprintSha256: value(x509('-fingerprint', '-sha256')).replaceAll(':', '').toLowerCase(),
    signatureAlgorithm: /Signature Algorithm: (.*)/.exec(text)?.[1] ?? '',
    names: (extension('Subject Alternative Name')?.split(', ') ?? []).map(namedAsKcert).sort(),
    isCa: /CA:TRUE/.test(text),
    keyUsage: usages('Key Usage') as ReturnType<typeof byKcert>['keyUsage'],
    extendedKeyUsage: usages('Extended Key Usage'),
    subjectKeyId: keyId('Subject Key Identifier'),
    authorityKeyId: keyId('Authority Key Identifier'),
    publicKeySha256: publicKeySha256(file),
  }
}

function time(openssl: string): string {
  return new Date(openssl).toISOString().replace('.000Z', 'Z')
}

// openssl prints IPv6 addresses in full.
function namedAsKcert(name: string): string {
  if (!name.startsWith('IP Address:')) return name
  const address = name.slice('IP Address:'.length)
  return `IP:${address.includes(':') ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address}`
}

function publicKeySha256(file: string): string {
  const script = `openssl x509 -in "$1" -noout -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -r`
  return execFileSync('sh', ['-c', script, 'sh', file], { encoding: 'utf8' }).split(' ')[0]!
}
