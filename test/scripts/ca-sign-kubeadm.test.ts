import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { readCertificates } from '../../src/x509/certificate.ts'
import { kcert, type Session } from './program.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

// A control plane with an external CA, in whole-program runs: requests, CAs in kubeadm's layout, certificates, kubeconfigs.

const at = temporaryFolder('ca-sign-kubeadm')
const run = (...args: readonly string[]): Session => kcert(args, { cwd: at })
const done = (...args: readonly string[]): Session => {
  const session = run(...args)
  if (session.exit !== 0) throw new Error(`${args.join(' ')}: ${session.stderr}`)
  return session
}
const certificate = (path: string) => readCertificates(readFileSync(join(at, path)))[0]!

const cas = { ca: 'kubernetes', 'front-proxy-ca': 'front-proxy-ca', 'etcd/ca': 'etcd-ca' }

beforeAll(() => {
  mkdirSync(join(at, 'cas/etcd'), { recursive: true })
  for (const [file, cn] of Object.entries(cas))
    done('ca', 'init', '--cn', cn, '--out', `cas/${file}.crt`, '--key-out', `cas/${file}.key`)
  done(
    ...['csr', 'create', '--kubeadm', 'all', '--node-name', 'cp1', '--advertise-address', '192.0.2.10'],
    ...[
      '--kubernetes-version',
      'v1.36.3',
      '--ca-cert',
      'cas/ca.crt',
      '--cert-dir',
      'cp1/pki',
      '--kubeconfig-dir',
      'cp1',
    ],
  )
})

test('signs every request with its own CA, and adds the certificates to the kubeconfigs', () => {
  const { stdout } = done(
    ...['ca', 'sign', '--kubeadm', '--ca-dir', 'cas', '--out-dir', 'signed', 'cp1', '-o', 'json'],
  )
  const report = JSON.parse(stdout)
  expect(violations('SignedControlPlane', report)).toEqual([])
  expect(report.certificates).toHaveLength(12)
  expect(stdout).not.toContain('PRIVATE')
  for (const { file, ca, row } of report.certificates) {
    const issuer = ca === 'ca' ? 'kubernetes' : ca
    expect([row, certificate(file).issuer.text]).toEqual([row, `CN=${issuer}`])
    const purpose = /^(?:apiserver|etcd-server|etcd-peer)$/.test(row) ? 'server' : 'client'
    const roots = `cas/${ca === 'etcd-ca' ? 'etcd/ca' : ca}.crt`
    done('verify', file, '--roots', roots, '--purpose', purpose)
  }
  expect(certificate('signed/pki/etcd/peer.crt').extendedKeyUsage).toEqual(['serverAuth', 'clientAuth'])
  expect(certificate('signed/pki/apiserver.crt').extendedKeyUsage).toEqual(['serverAuth'])
  expect(certificate('signed/pki/apiserver.crt').subjectAltNames.dns).toContain('kubernetes.default.svc')

  const binding = 'apiserver-kubelet-client: without O, it needs the ClusterRoleBinding'
  expect(report.notices).toContainEqual(expect.stringContaining(binding))
  expect(report.next).toHaveLength(5)
  for (const command of report.next) done(...command.split(' ').slice(1))
  expect(readFileSync(join(at, 'cp1/admin.conf'), 'utf8')).toContain('client-certificate-data:')
  done('verify', 'cp1/admin.conf')
  done('verify', 'cp1/kubelet.conf')
  // Each CA has its own issuance log with its serial numbers.
  const log = (ca: string) =>
    readFileSync(join(at, `cas/${ca}.issuance-log.jsonl`), 'utf8')
      .trim()
      .split('\n')
  expect([log('ca').length, log('front-proxy-ca').length, log('etcd/ca').length]).toEqual([8, 2, 5])
})

test('signs nothing if one request does not fit its file name', () => {
  mkdirSync(join(at, 'mixed'))
  copyFileSync(join(at, 'cp1/pki/apiserver.csr'), join(at, 'mixed/apiserver.csr'))
  copyFileSync(join(at, 'cp1/admin.conf.csr'), join(at, 'mixed/scheduler.conf.csr'))
  const before = readFileSync(join(at, 'cas/ca.issuance-log.jsonl'), 'utf8')
  const { exit, stderr } = run('ca', 'sign', '--kubeadm', '--ca-dir', 'cas', '--out-dir', 'none', 'mixed')
  expect([exit, stderr]).toEqual([
    3,
    expect.stringContaining("mixed/scheduler.conf.csr is not a request for kubeadm's scheduler.conf"),
  ])
  expect(stderr).toContain('"kubernetes-admin", not "system:kube-scheduler"')
  expect([existsSync(join(at, 'none')), readFileSync(join(at, 'cas/ca.issuance-log.jsonl'), 'utf8')]).toEqual(
    [false, before],
  )
})

test('needs only the CAs of the given requests, and keeps existing certificates without --force', () => {
  mkdirSync(join(at, 'one/cas'), { recursive: true })
  for (const file of ['front-proxy-ca.crt', 'front-proxy-ca.key'])
    copyFileSync(join(at, 'cas', file), join(at, 'one/cas', file))
  const args = [
    ...['ca', 'sign', '--kubeadm', '--ca-dir', 'one/cas', '--out-dir', 'one/out', '--duration', '30d'],
    'cp1/pki/front-proxy-client.csr',
  ]
  expect(done(...args).stdout).toContain('signed 1 certificate')
  const { notBefore, notAfter } = certificate('one/out/front-proxy-client.crt')
  expect(notAfter.getTime() - notBefore.getTime()).toBe(30 * 86_400_000)
  expect(run(...args)).toMatchObject({ exit: 5, stderr: expect.stringContaining('KCERT_FILE_EXISTS') })
  done(...args, '--force')
  expect(run('ca', 'sign', '--kubeadm', '--ca-dir', 'one/cas', '--out-dir', 'one/out2', 'cp1')).toMatchObject(
    {
      exit: 2,
      stderr: expect.stringContaining('KCERT_FILE_NOT_FOUND'),
    },
  )
  expect(readdirSync(join(at, 'one'))).toEqual(['cas', 'out'])
})

test.each<[string, string[], string]>([
  [
    'an unknown file name',
    ['--ca-dir', 'cas', '--out-dir', 'x', 'cas/ca.crt'],
    'cas/ca.crt is not the request of a kubeadm certificate',
  ],
  ['a missing folder', ['--ca-dir', 'cas', '--out-dir', 'x', 'nowhere/pki'], 'nowhere/pki does not exist'],
  [
    'a folder without requests',
    ['--ca-dir', 'cas', '--out-dir', 'x', 'cas'],
    'cas contains no request of a kubeadm certificate',
  ],
  ['no request', ['--ca-dir', 'cas', '--out-dir', 'x'], 'no request given'],
  [
    'two nodes',
    ['--ca-dir', 'cas', '--out-dir', 'x', 'cp1', 'cp1/pki/apiserver.csr'],
    'are both requests for apiserver',
  ],
  ['a profile', ['--ca-dir', 'cas', '--out-dir', 'x', '--profile', 'server', 'cp1'], '--profile'],
  ['no folder of CAs', ['--out-dir', 'x', 'cp1'], 'ca-dir'],
])('refuses %s as wrong usage', (_, args, message) => {
  expect(run('ca', 'sign', '--kubeadm', ...args)).toMatchObject({
    exit: 2,
    stdout: '',
    stderr: expect.stringContaining(message),
  })
})

test('still requires --ca and --ca-key for the requests of a single CA', () => {
  const { exit, stderr } = run(
    'ca',
    'sign',
    'cp1/pki/apiserver.csr',
    '--ca',
    'cas/ca.crt',
    '--profile',
    'server',
    '--out',
    '-',
  )
  expect([exit, stderr]).toEqual([2, expect.stringContaining('--ca-key is required')])
})
