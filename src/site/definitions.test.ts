import { expect, test } from 'vitest'
import type { FileContent, ProcessFacts } from '../pki/node-access.ts'
import { ControlPlanes } from './control-planes.ts'
import { encryptionAlgorithmOf, ownProcess, withOwnSettings, withoutAlgorithm } from './definitions.ts'
import type { Site } from './site.ts'

const flags = { name: 'cp1', 'data-dir': '/var/lib/etcd', 'listen-client-urls': 'https://127.0.0.1:2379' }

function etcd(pid: number, name: string, folder = '/var/lib/etcd'): ProcessFacts {
  const argv = ['etcd', `--name=${name}`, '--data-dir', folder]
  return { program: 'etcd', pid, startTicks: pid, startedAt: new Date(0), argv }
}

const pidOf = (processes: readonly ProcessFacts[], its?: typeof flags) => ownProcess(processes, its)?.pid

test('finds the member among other programs of the same name, whatever their order', () => {
  const others = [etcd(9, 'calico', '/var/etcd/calico-data'), etcd(3, 'tenant'), etcd(4, 'cp1', '/data')]
  for (const processes of [
    [...others, etcd(5, 'cp1')],
    [etcd(5, 'cp1'), ...others],
  ])
    expect(pidOf(processes, flags)).toBe(5)
})

test('finds nothing while the member does not run, although others do', () => {
  expect(pidOf([etcd(9, 'calico')], flags)).toBeUndefined()
})

test('takes the youngest of several, and without a manifest only a single one', () => {
  expect(pidOf([etcd(5, 'cp1'), etcd(8, 'cp1'), etcd(6, 'cp1')], flags)).toBe(8)
  expect(pidOf([etcd(5, 'cp1')])).toBe(5)
  expect(pidOf([etcd(5, 'cp1'), etcd(6, 'cp1')])).toBeUndefined()
})

function nodeWith(file: Partial<FileContent>) {
  return {
    name: 'cp1',
    readFiles: async ([path = '']: readonly string[]) => [{ path, ...file } as FileContent],
  }
}

test('a unit whose variables cannot be read is not a unit without variables', async () => {
  const running = etcd(5, 'cp1')
  for (const [file, why] of [
    [{ found: 'unreadable', reason: 'Permission denied' }, 'Permission denied'],
    [{ found: 'special' }, 'it is not a regular file'],
  ] as const)
    await expect(withOwnSettings(nodeWith(file), running)).rejects.toMatchObject({
      code: 'KCERT_NODE_REFUSED',
      message: '/proc/5/environ on node "cp1" cannot be read',
      why: expect.stringContaining(why),
    })
  // The process has ended in the meantime.
  expect(await withOwnSettings(nodeWith({ found: 'absent' }), running)).toBeUndefined()
  const content = Buffer.from('ETCD_CERT_FILE=/a.crt\0')
  expect((await withOwnSettings(nodeWith({ found: 'file', content }), running))?.argv).toContain(
    '--cert-file=/a.crt',
  )
})

test('a manifest that cannot be read does not make etcd a unit', async () => {
  const node = {
    ...nodeWith({ found: 'unreadable', reason: 'Permission denied' }),
    processes: async () => [],
  }
  const planes = new ControlPlanes({ node: () => node } as unknown as Site)
  await expect(planes.runningEtcd('cp1')).rejects.toMatchObject({
    code: 'KCERT_NODE_REFUSED',
    message: '/etc/kubernetes/manifests/etcd.yaml on node "cp1" cannot be read',
  })
})

test.for([
  ['apiVersion: kubeadm.k8s.io/v1beta4\nencryptionAlgorithm: ECDSA-P256\n', 'ECDSA-P256', []],
  ['apiVersion: kubeadm.k8s.io/v1\n', undefined, []],
  [
    'apiVersion: kubeadm.k8s.io/v1beta3\n',
    undefined,
    [/^kubeadm.k8s.io\/v1beta3 has no encryptionAlgorithm/, 'RSA-2048'],
  ],
  [
    'featureGates: {PublicKeysECDSA: false}\n',
    undefined,
    [/^its feature gate PublicKeysECDSA takes/, 'RSA-2048'],
  ],
  [
    'featureGates: {PublicKeysECDSA: true}\n',
    undefined,
    [/^its feature gate PublicKeysECDSA takes/, 'ECDSA-P256'],
  ],
  ['encryptionAlgorithm: [ECDSA-P256]\n', undefined, []],
] as const)('%j has encryptionAlgorithm %s', async ([text, algorithm, [why, creates]]) => {
  const configuration = `kind: ClusterConfiguration\n${text}`
  expect(await encryptionAlgorithmOf(configuration)).toBe(algorithm)
  expect(await withoutAlgorithm(configuration)).toEqual(
    why === undefined ? undefined : { why: expect.stringMatching(why), creates },
  )
})
