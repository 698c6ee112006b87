import { expect, test } from 'vitest'
import { withExtraArgs, withField } from './object-patching.ts'

const own = `apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
controllerManager: {}
kind: ClusterConfiguration
`

test('flags of v1beta4 are a list, and leave nothing behind when they go', async () => {
  const flags = { 'root-ca-file': '/b.crt', v: '2' }
  const changed = await withExtraArgs(own, 'controllerManager', flags)
  expect(changed).toContain('"name":"root-ca-file"')
  const again = await withExtraArgs(changed, 'controllerManager', { v: '3' })
  expect(again.match(/"name":"v"/g)).toHaveLength(1)
  expect(again).toContain('"value":"3"')
  const back = await withExtraArgs(again, 'controllerManager', { 'root-ca-file': null, v: null })
  expect(back).toBe(own)
})

test('flags of v1beta3 are a map', async () => {
  const text = `apiVersion: kubeadm.k8s.io/v1beta3
controllerManager:
  extraArgs:
    bind-address: 0.0.0.0 # for the metrics
kind: ClusterConfiguration
`
  const changed = await withExtraArgs(text, 'controllerManager', { 'root-ca-file': '/b.crt' })
  expect(changed).toContain('root-ca-file: /b.crt')
  expect(await withExtraArgs(changed, 'controllerManager', { 'root-ca-file': null })).toBe(text)
})

test('a flag that is not there is not taken out', async () => {
  expect(await withExtraArgs(own, 'controllerManager', { v: null })).toBe(own)
})

test('a field is set by its name in the picture, and nothing else', () => {
  const object = { webhooks: [{ name: 'a' }, { name: 'b', clientConfig: { caBundle: 'old' } }] }
  expect(withField(object, 'webhooks[1].clientConfig.caBundle', 'new')).toEqual({
    webhooks: [{ name: 'a' }, { name: 'b', clientConfig: { caBundle: 'new' } }],
  })
  expect(object.webhooks[1]!.clientConfig!.caBundle).toBe('old')
  expect(() => withField(object, 'spec.conversion.caBundle', 'new')).toThrow('no field')
})
