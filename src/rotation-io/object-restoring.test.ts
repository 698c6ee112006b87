import { expect, test } from 'vitest'
import { encryptionAlgorithmOf } from '../site/definitions.ts'
import { withEncryptionAlgorithm, withExtraArgs } from './extra-args.ts'
import { restored } from './object-restoring.ts'

const metadata = { name: 'guard', annotations: { by: 'somebody' } }

test.for(['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'])(
  'restores the caBundles of a %s, and keeps later changes by its owner',
  async (kind) => {
    const clientConfig = { service: { name: 'guard' } }
    const copy = {
      metadata: {},
      webhooks: [{ name: 'a', clientConfig: { ...clientConfig, caBundle: 'old' } }],
    }
    const fresh = { name: 'b', clientConfig: { ...clientConfig, caBundle: 'of somebody' } }
    const changed = { name: 'a', rules: ['more'], clientConfig: { ...clientConfig, caBundle: 'old and new' } }
    const now = { metadata, webhooks: [fresh, changed] }
    expect(await restored({ kind, name: 'guard' }, now, copy)).toEqual({
      metadata,
      webhooks: [fresh, { ...changed, clientConfig: { ...clientConfig, caBundle: 'old' } }],
    })
  },
)

test('restores the caBundle of the conversion of a definition, and keeps its versions', async () => {
  const spec = (caBundle: string, versions: readonly string[]) => ({
    versions,
    conversion: { strategy: 'Webhook', webhook: { clientConfig: { caBundle } } },
  })
  const reference = { kind: 'CustomResourceDefinition', name: 'guards.lab' }
  const now = { metadata, spec: spec('old and new', ['v1', 'v2']) }
  expect(await restored(reference, now, { metadata: {}, spec: spec('old', ['v1']) })).toEqual({
    metadata,
    spec: spec('old', ['v1', 'v2']),
  })
  const without = { metadata, spec: { versions: ['v3'], conversion: { strategy: 'None' } } }
  expect(await restored(reference, without, { metadata: {}, spec: spec('old', ['v1']) })).toEqual(without)
})

test('restores only the caBundle of an APIService', async () => {
  const now = { metadata, spec: { caBundle: 'old and new', groupPriorityMinimum: 200 } }
  const copy = { metadata: {}, spec: { caBundle: 'old', groupPriorityMinimum: 100 } }
  expect(await restored({ kind: 'APIService', name: 'v1.agg' }, now, copy)).toEqual({
    metadata,
    spec: { caBundle: 'old', groupPriorityMinimum: 200 },
  })
})

const before = `apiVersion: kubeadm.k8s.io/v1beta4
controllerManager: {} # ours
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
`
const flags = { 'root-ca-file': '/etc/kubernetes/pki/kcert/ca-bundle.crt' }

test('restores kubeadm-config byte for byte, or only its flags after an upgrade', async () => {
  const reference = { kind: 'ConfigMap', name: 'kubeadm-config' }
  const object = (text: string) => ({ metadata: {}, data: { ClusterConfiguration: text } })
  const byKcert = await withExtraArgs(before, 'controllerManager', flags)
  expect(await restored(reference, object(byKcert), object(before))).toMatchObject(object(before))
  const upgraded = byKcert.replace('v1.36.3', 'v1.36.4')
  expect(await restored(reference, object(upgraded), object(before))).toMatchObject(
    object(before.replace('v1.36.3', 'v1.36.4')),
  )
})

test.for([undefined, 'RSA-3072'])('restores encryptionAlgorithm %s as it was', async (algorithm) => {
  const reference = { kind: 'ConfigMap', name: 'kubeadm-config' }
  const object = (text: string) => ({ metadata: {}, data: { ClusterConfiguration: text } })
  const own = await withEncryptionAlgorithm(before, algorithm)
  const byKcert = await withEncryptionAlgorithm(
    await withExtraArgs(own, 'controllerManager', flags),
    'ECDSA-P256',
  )
  expect(await encryptionAlgorithmOf(byKcert)).toBe('ECDSA-P256')
  expect(await restored(reference, object(byKcert), object(own))).toMatchObject(object(own))
  const upgraded = byKcert.replace('v1.36.3', 'v1.36.4')
  expect(await restored(reference, object(upgraded), object(own))).toMatchObject(
    object(own.replace('v1.36.3', 'v1.36.4')),
  )
})
