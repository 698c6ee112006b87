import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { KubeletDiagnosis } from '../../src/kubelet/doctor/report.ts'
import { workerTree } from '../pki/kubeadm-tree.ts'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// What renew and kubelet doctor say before they reach a node, and the doctor on a tree of files. The rest is in test/rotation-io and test/lab.

const folder = temporaryFolder('renew')

test.each([
  [['renew', '--all', 'apiserver'], 'exclude each other'],
  [['renew', '--within', 'soon'], 'threshold "soon" is not understood'],
  [['renew', '--expiry', '0s'], 'is not above zero'],
  [['renew', '--node', 'nobody'], 'no access to node "nobody" is configured'],
  [['renew', '--inventory', 'none.yaml'], 'inventory none.yaml does not exist'],
  [['kubelet', 'doctor', 'nobody'], 'no access to node "nobody" is configured'],
  [['kubelet', 'doctor', '--root', '.', '-i', 'kcert.yaml'], 'are mutually exclusive'],
])('%s is wrong usage, and says why', (args, text) => {
  const { stdout, stderr, exit } = kcert(args, { cwd: folder })
  expect({ stdout, exit }).toEqual({ stdout: '', exit: 2 })
  expect(stderr).toContain(text)
})

test('the doctor on a tree of files: told, refused without an answer, mended, and in order then', () => {
  const root = join(folder, 'w1')
  for (const [path, { bytes, mode, linkTarget }] of workerTree({ madeAt: new Date() }).files) {
    if (linkTarget !== undefined) continue
    mkdirSync(dirname(root + path), { recursive: true })
    writeFileSync(root + path, bytes, { mode })
  }
  const doctor = (...args: string[]) => kcert(['kubelet', 'doctor', '--root', 'w1', ...args], { cwd: folder })
  const told = doctor()
  expect(told.exit).toBe(3)
  expect(told.stdout).toContain('LINK_MISSING: the link is missing')
  expect(doctor('--fix')).toMatchObject({
    exit: 5,
    stderr: expect.stringContaining('KCERT_DOCTOR_UNCONFIRMED'),
  })
  const mended = doctor('--fix', '--yes', '-o', 'json')
  const [node] = (JSON.parse(mended.stdout) as KubeletDiagnosis).nodes
  expect([mended.exit, node!.fixed.map(({ id }) => id), node!.findings.map(({ id }) => id)]).toEqual([
    0,
    ['LINK_MISSING'],
    // Without serverTLSBootstrap the kubelet signs its own, for another name (KEP-4872).
    ['SERVING_NAME'],
  ])
  expect(doctor()).toMatchObject({ exit: 0, stdout: expect.stringContaining('certificates in order') })
})

test('a tree whose link leads in a circle is no reason to wait', () => {
  const pki = join(folder, 'circle/var/lib/kubelet/pki')
  mkdirSync(pki, { recursive: true })
  symlinkSync('kubelet-client-current.pem', join(pki, 'kubelet-client-current.pem'))
  const { exit, stdout } = kcert(['kubelet', 'doctor', '--root', 'circle'], { cwd: folder })
  expect([exit, stdout]).toEqual([3, expect.stringContaining('LINK_DANGLING')])
})
