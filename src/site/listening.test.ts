import { expect, test } from 'vitest'
import { readKubeletConfiguration } from '../pki/kubelet-configuration.ts'
import type { FileContent, NodeAccess } from '../pki/node-access.ts'
import { configurationOf, healthOf, listeningOf } from './listening.ts'

const kubelet = ['/usr/local/bin/kubelet', '--config=/etc/kubernetes/kubelet-conf.yml']

const configured = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: "10.0.0.7"
port: 10350   # not the usual one
healthzBindAddress: '10.0.0.7'
healthzPort: 10348
authentication:
  webhook:
    port: 1
`

function nodeWith(file: Partial<FileContent> | Error): NodeAccess {
  const readFiles = async () => {
    if (file instanceof Error) throw file
    return [file]
  }
  return { readFiles } as unknown as NodeAccess
}

test('returns where a component listens from its command line', () => {
  expect(listeningOf(['kube-controller-manager', '--bind-address=127.0.0.1'])).toEqual({
    host: '127.0.0.1',
    port: 10257,
  })
  expect(listeningOf(['/usr/bin/kube-apiserver', '--secure-port', '8443', '--bind-address=0.0.0.0'])).toEqual(
    {
      host: '127.0.0.1',
      port: 8443,
    },
  )
  expect(listeningOf(['kube-scheduler', '--bind-address=10.0.0.5'])).toEqual({
    host: '10.0.0.5',
    port: 10259,
  })
})

const plain = (host: string, port: number, path = '/healthz') => ({ host, port, path, isTls: false })

test.each([
  ['kubelet', [], plain('127.0.0.1', 10248)],
  ['kubelet', ['--healthz-bind-address=10.0.0.5', '--healthz-port=10348'], plain('10.0.0.5', 10348)],
  ['kube-proxy', [], plain('127.0.0.1', 10256)],
  ['kube-proxy', ['--healthz-bind-address=10.0.0.5:10300'], plain('10.0.0.5', 10300)],
  ['kube-proxy', ['--healthz-bind-address=0.0.0.0:10300'], plain('127.0.0.1', 10300)],
  ['kube-proxy', ['--healthz-bind-address=x\n10.0.0.5:10300'], plain('127.0.0.1', 10256)],
  ['kube-proxy', ['--healthz-bind-address=10.0.0.5:none'], plain('127.0.0.1', 10256)],
  ['kube-proxy', ['--healthz-bind-address=10.0.0.5:10300/x'], plain('127.0.0.1', 10256)],
  ['kube-apiserver', [], { host: '127.0.0.1', port: 6443, path: '/readyz', isTls: true }],
  ['kube-scheduler', [], { host: '127.0.0.1', port: 10259, path: '/healthz', isTls: true }],
  ['etcd', [], plain('127.0.0.1', 2379, '/health')],
  ['etcd', ['--listen-metrics-urls=http://10.0.0.5:2381'], plain('10.0.0.5', 2381, '/health')],
  [
    'etcd',
    ['--listen-client-urls=https://0.0.0.0:2479,https://10.0.0.5:2379'],
    { host: '127.0.0.1', port: 2479, path: '/health', isTls: true },
  ],
  [
    'etcd',
    ['--listen-metrics-urls=http://[fd00::5]', '--listen-client-urls=https://10.0.0.5:2379'],
    plain('fd00::5', 2379, '/health'),
  ],
  ['etcd', ['--listen-metrics-urls=nonsense'], plain('127.0.0.1', 2379, '/health')],
] as const)('returns the health endpoint of %s %j', (program, flags, endpoint) => {
  expect(healthOf({ program, argv: [program, ...flags] })).toEqual(endpoint)
})

test('returns where a kubelet listens from its configuration in any YAML style, and prefers flags', async () => {
  const configuration = await readKubeletConfiguration(configured, '/var/lib/kubelet/config.yaml')
  expect(listeningOf(kubelet, configuration)).toEqual({ host: '10.0.0.7', port: 10350 })
  expect(listeningOf([...kubelet, '--address=10.0.0.8', '--port=10450'], configuration)).toEqual({
    host: '10.0.0.8',
    port: 10450,
  })
  expect(listeningOf(kubelet, { address: '::', port: 10350 })).toEqual({ host: '127.0.0.1', port: 10350 })
  expect(listeningOf(kubelet)).toEqual({ host: '127.0.0.1', port: 10250 })
  expect(healthOf({ program: 'kubelet', argv: kubelet }, configuration)).toMatchObject({
    host: '10.0.0.7',
    port: 10348,
  })
})

const process = { program: 'kubelet', argv: kubelet } as const

test('reads the configuration that --config of a kubelet names', async () => {
  const asked: unknown[] = []
  const file = { found: 'file', content: Buffer.from(configured) }
  const readFiles = async (paths: readonly string[]) => {
    asked.push(paths)
    return [file]
  }
  const node = { readFiles } as unknown as NodeAccess
  expect(await configurationOf(node, process)).toMatchObject({ address: '10.0.0.7', port: 10350 })
  expect(asked).toEqual([['/etc/kubernetes/kubelet-conf.yml']])
})

test.each([
  ['of another component', { program: 'kube-apiserver', argv: ['kube-apiserver', '--config=/x'] } as const],
  ['of a kubelet without --config', { program: 'kubelet', argv: ['kubelet'] } as const],
])('does not read a configuration %s', async (_, other) => {
  const asked: unknown[] = []
  const readFiles = async (paths: readonly string[]) => {
    asked.push(paths)
    return [{ found: 'absent' }]
  }
  expect(await configurationOf({ readFiles } as unknown as NodeAccess, other)).toEqual({})
  expect(asked).toEqual([])
})

test('returns an empty kubelet configuration for an unknown node', async () => {
  expect(await configurationOf(undefined, process)).toEqual({})
})

test.each([
  ['is not YAML', { found: 'file', content: Buffer.from('port: [') }],
  ['is absent', { found: 'absent' }],
  // The reader returns content, but only a regular file counts.
  ['is not a regular file', { found: 'special', content: Buffer.from(configured) }],
  ['cannot be read', new Error('gone')],
])('returns no settings for a configuration that %s', async (_, file) => {
  expect(await configurationOf(nodeWith(file as Partial<FileContent> | Error), process)).toEqual({})
})
