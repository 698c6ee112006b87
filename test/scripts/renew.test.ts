import type { KeyObject } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { CertificateRenewal } from '../../src/ca/renewal-report.ts'
import type { KubeletDiagnosis } from '../../src/kubelet/doctor/report.ts'
import type { CertificateDescription } from '../../src/x509/issuing.ts'
import { writePem } from '../../src/x509/pem.ts'
import { mlDsaCertificate, mlDsaKeys } from '../fixtures/ml-dsa.ts'
import { controlPlaneTree, type NodeTree, workerTree } from '../pki/kubeadm-tree.ts'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Messages of renew and kubelet doctor before they reach a node, and the doctor on a tree of files. The rest is in
// test/rotation-io and test/lab.

const folder = temporaryFolder('renew')

test.each([
  [['renew', '--all', 'apiserver'], 'are mutually exclusive'],
  [['renew', '--within', 'soon'], 'invalid threshold "soon"'],
  [['renew', '--expiry', '0s'], 'is not a positive duration'],
  [['renew', '--node', 'nobody'], 'no access to node "nobody" is configured'],
  [['renew', '--inventory', 'none.yaml'], 'inventory none.yaml does not exist'],
  [['renew', '--all-nodes'], 'inventory kcert.yaml does not exist'],
  [['renew', '--all-nodes', '--node', 'n1'], 'are mutually exclusive'],
  [['kubelet', 'doctor', '--all-nodes'], 'inventory kcert.yaml does not exist'],
  [['kubelet', 'doctor', '--node', 'nobody'], 'no access to node "nobody" is configured'],
  [['kubelet', 'forecast', '--all-nodes'], 'inventory kcert.yaml does not exist'],
  [['probe', '--all-nodes'], 'inventory kcert.yaml does not exist'],
  [['kubelet', 'doctor', 'nobody'], 'no access to node "nobody" is configured'],
  [['kubelet', 'doctor', '--root', '.', '-i', 'kcert.yaml'], 'are mutually exclusive'],
])('%s is wrong usage with a reason', (args, text) => {
  const { stdout, stderr, exit } = kcert(args, { cwd: folder })
  expect({ stdout, exit }).toEqual({ stdout: '', exit: 2 })
  expect(stderr).toContain(text)
})

function writeTree({ files }: NodeTree, root: string, hasLinks = false): void {
  for (const [path, { bytes, mode, linkTarget }] of files) {
    if (linkTarget !== undefined && !hasLinks) continue
    mkdirSync(dirname(root + path), { recursive: true })
    if (linkTarget === undefined) writeFileSync(root + path, bytes, { mode })
    else symlinkSync(linkTarget, root + path)
  }
}

test('renews only the expired certificates of a control plane below --root', () => {
  const madeAt = new Date(Date.now() - 400 * 86_400_000)
  writeTree(controlPlaneTree({ madeAt, nodeName: 'cp1' }), join(folder, 'cp1'), true)
  const renew = (...args: string[]) => kcert(['renew', '--root', 'cp1', ...args], { cwd: folder })
  const listed = renew()
  expect(listed.exit).toBe(3)
  expect(listed.stdout).toContain('next: kcert renew --all --root cp1')
  expect(readdirSync(join(folder, 'cp1/var/lib'))).toEqual(['kubelet'])
  const renewed = renew('--all', '--yes', '-o', 'json')
  const { outcome, root, restarts, checks, certificates, backups } = JSON.parse(
    renewed.stdout,
  ) as CertificateRenewal
  expect({ exit: renewed.exit, outcome, root, restarts, checks }).toEqual({
    ...{ exit: 0, outcome: 'renewed', root: 'cp1', restarts: [], checks: [] },
  })
  expect(certificates.length).toBeGreaterThan(10)
  expect(new Set(certificates.map(({ action, state }) => `${action} ${state}`))).toEqual(
    new Set(['renewed valid']),
  )
  const [backup] = backups
  expect(readdirSync(join(folder, 'cp1', backup?.folder ?? '', 'etc/kubernetes'))).toContain('pki')
  expect(renew('--all')).toMatchObject({ exit: 0, stdout: expect.stringContaining('nothing is due') })
}, 120_000)

test('renew names the reason for a certificate that its own CA signed with ML-DSA', () => {
  const pki = join(folder, 'pq/etc/kubernetes/pki')
  mkdirSync(pki, { recursive: true })
  const put = (name: string, key: KeyObject, given: Partial<CertificateDescription>) => {
    const valid = { notAfter: new Date('2099-01-01T00:00:00Z'), ...given }
    const der = mlDsaCertificate(mlDsaKeys['ML-DSA-65'], { publicKey: key, ...valid })
    writeFileSync(join(pki, `${name}.crt`), writePem('CERTIFICATE', der))
    writeFileSync(join(pki, `${name}.key`), key.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  }
  put('ca', mlDsaKeys['ML-DSA-65'], { basicConstraints: { ca: true } })
  put('apiserver', mlDsaKeys.other, { subject: { commonName: 'kube-apiserver' } })
  const { exit, stdout } = kcert(['renew', 'apiserver', '--root', 'pq', '--yes'], { cwd: folder })
  const why = 'it is signed with ML-DSA-65, and kcert signs only with RSA, ECDSA and Ed25519 keys'
  expect([exit, stdout]).toEqual([3, expect.stringContaining(why)])
})

test('renew and kubelet doctor refuse a --root that is not a folder', () => {
  for (const args of [['renew'], ['kubelet', 'doctor']]) {
    const { exit, stderr } = kcert([...args, '--root', 'nosuch'], { cwd: folder })
    expect([exit, stderr]).toEqual([
      2,
      expect.stringContaining('KCERT_FILE_NOT_FOUND: nosuch is not a folder'),
    ])
  }
})

test('renew --root advises to create a missing certificate on the started node, not on this machine', () => {
  writeTree(controlPlaneTree({ madeAt: new Date(), nodeName: 'cp3' }), join(folder, 'cp3'), true)
  const path = join(folder, 'cp3/etc/kubernetes/admin.conf')
  writeFileSync(path, readFileSync(path, 'utf8').replace(/ *client-certificate-data: .*\n/, ''))
  const { stdout } = kcert(['renew', '--root', 'cp3', '-o', 'json'], { cwd: folder })
  const { missing } = JSON.parse(stdout) as CertificateRenewal
  const fix =
    'start the node, and create it again on the node itself, with --config FILE if the cluster was created with one'
  // Without a command, `next` repeats the fix for programs.
  expect(missing).toMatchObject([{ name: 'admin.conf', fix, next: fix }])
})

test('renew --root names a folder without certificates', () => {
  mkdirSync(join(folder, 'empty'))
  const { exit, stderr } = kcert(['renew', '--root', 'empty'], { cwd: folder })
  expect([exit, stderr]).toEqual([2, expect.stringContaining('no kubeadm certificates on empty')])
})

test('the doctor on a tree of files reports, refuses without confirmation, repairs, and then finds nothing', () => {
  writeTree(workerTree({ madeAt: new Date() }), join(folder, 'w1'))
  const doctor = (...args: string[]) => kcert(['kubelet', 'doctor', '--root', 'w1', ...args], { cwd: folder })
  const reported = doctor()
  expect(reported.exit).toBe(3)
  expect(reported.stdout).toContain('LINK_MISSING: the link is missing')
  expect(doctor('--fix')).toMatchObject({
    exit: 5,
    stderr: expect.stringContaining('KCERT_DOCTOR_UNCONFIRMED'),
  })
  const repaired = doctor('--fix', '--yes', '-o', 'json')
  const [node] = (JSON.parse(repaired.stdout) as KubeletDiagnosis).nodes
  expect([repaired.exit, node!.fixed.map(({ id }) => id), node!.findings.map(({ id }) => id)]).toEqual([
    0,
    ['LINK_MISSING'],
    // Without serverTLSBootstrap, the kubelet signs its own certificate, for another name (KEP-4872).
    ['SERVING_NAME'],
  ])
  expect(doctor()).toMatchObject({ exit: 0, stdout: expect.stringContaining('no problems') })
})

test('does not hang on a tree with a cyclic link', () => {
  const pki = join(folder, 'circle/var/lib/kubelet/pki')
  mkdirSync(pki, { recursive: true })
  symlinkSync('kubelet-client-current.pem', join(pki, 'kubelet-client-current.pem'))
  const { exit, stdout } = kcert(['kubelet', 'doctor', '--root', 'circle'], { cwd: folder })
  expect([exit, stdout]).toEqual([3, expect.stringContaining('LINK_DANGLING')])
})
