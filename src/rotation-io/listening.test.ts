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

test('where a component listens is what its command line says', () => {
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

test('each component says in its own place that it is well', () => {
  const health = (
    program: 'kubelet' | 'kube-proxy' | 'kube-apiserver' | 'kube-scheduler',
    ...flags: string[]
  ) => healthOf({ program, argv: [program, ...flags] })
  expect(health('kubelet')).toEqual({ host: '127.0.0.1', port: 10248, path: '/healthz', isTls: false })
  expect(health('kube-proxy', '--healthz-bind-address=10.0.0.5:10300').port).toBe(10300)
  expect(health('kube-apiserver')).toMatchObject({ path: '/readyz', port: 6443, isTls: true })
  expect(health('kube-scheduler')).toMatchObject({ path: '/healthz', port: 10259, isTls: true })
})

test('where a kubelet listens is what its configuration says, however it is written, and flags go before it', async () => {
  const configuration = await readKubeletConfiguration(configured)
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

test("a kubelet's configuration is read on its node; one that cannot be read says nothing", async () => {
  const process = { program: 'kubelet', argv: kubelet } as const
  const file = { found: 'file', content: Buffer.from(configured) } as Partial<FileContent>
  expect(await configurationOf(nodeWith(file), process)).toMatchObject({ address: '10.0.0.7', port: 10350 })
  const api = { program: 'kube-apiserver', argv: ['kube-apiserver', '--config=/x'] } as const
  expect(await configurationOf(nodeWith(file), api)).toEqual({})
  const garbage = { found: 'file', content: Buffer.from('port: [') } as Partial<FileContent>
  for (const wrong of [garbage, { found: 'absent' } as const, new Error('gone')]) {
    expect(await configurationOf(nodeWith(wrong), process)).toEqual({})
  }
})
