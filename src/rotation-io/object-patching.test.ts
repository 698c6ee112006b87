import { expect, test } from 'vitest'
import type { ObjectsApi } from '../cluster/objects.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { PatchObject } from '../rotation/action.ts'
import { manualRotation } from '../rotation/phase-table.ts'
import { extraArgsOf } from '../site/definitions.ts'
import { contentVersion } from '../site/object-content.ts'
import { withExtraArgs } from './extra-args.ts'
import { ObjectPatching, withField } from './object-patching.ts'

const own = `apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
controllerManager: {}
kind: ClusterConfiguration
`

test('writes flags of v1beta4 to a list, and removes the list with its last flag', async () => {
  const flags = { 'root-ca-file': '/b.crt', v: '2' }
  const changed = await withExtraArgs(own, 'controllerManager', flags)
  expect(changed).toContain('"name":"root-ca-file"')
  const again = await withExtraArgs(changed, 'controllerManager', { v: '3' })
  expect(again.match(/"name":"v"/g)).toHaveLength(1)
  expect(again).toContain('"value":"3"')
  const back = await withExtraArgs(again, 'controllerManager', { 'root-ca-file': null, v: null })
  expect(back).toBe(own)
})

test('writes flags of a version after v1beta4 to a list too', async () => {
  const text = own.replace('v1beta4', 'v1')
  const changed = await withExtraArgs(text, 'controllerManager', { v: '2' })
  expect(changed).toContain('"name":"v","value":"2"')
  expect(await withExtraArgs(changed, 'controllerManager', { v: null })).toBe(text)
})

const twice = `apiVersion: kubeadm.k8s.io/v1beta4
controllerManager:
  extraArgs:
  - name: root-ca-file
    value: /first.crt
  - name: v
    value: "2"
  - name: root-ca-file
    value: /second.crt
kind: ClusterConfiguration
`

test('changes the last of two entries of a flag, and removes both', async () => {
  const changed = await withExtraArgs(twice, 'controllerManager', { 'root-ca-file': '/b.crt' })
  expect(await extraArgsOf(changed)).toEqual({ controllerManager: { 'root-ca-file': '/b.crt', v: '2' } })
  const gone = await withExtraArgs(changed, 'controllerManager', { 'root-ca-file': null })
  expect(gone).not.toContain('root-ca-file')
  expect(await extraArgsOf(gone)).toEqual({ controllerManager: { v: '2' } })
  const none = await withExtraArgs(gone, 'controllerManager', { v: null })
  expect(none).not.toContain('extraArgs')
})

test('writes flags of v1beta3 to a map', async () => {
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

test('does not remove a missing flag', async () => {
  expect(await withExtraArgs(own, 'controllerManager', { v: null })).toBe(own)
})

test('sets only the field with its name in the snapshot', () => {
  const object = { webhooks: [{ name: 'a' }, { name: 'b', clientConfig: { caBundle: 'old' } }] }
  expect(withField(object, 'webhooks[1].clientConfig.caBundle', 'new')).toEqual({
    webhooks: [{ name: 'a' }, { name: 'b', clientConfig: { caBundle: 'new' } }],
  })
  expect(object.webhooks[1]!.clientConfig!.caBundle).toBe('old')
  expect(() => withField(object, 'spec.conversion.caBundle', 'new')).toThrow('no field')
})

/** kubeadm-config, to which a controller writes just before each of the first `conflicts` writes. */
function clusterWith(conflicts: number) {
  let now = {
    metadata: { name: 'kubeadm-config', resourceVersion: '1' },
    data: { ClusterConfiguration: own },
  }
  const objects = {
    get: async () => structuredClone(now),
    replace: async (_: unknown, wanted: typeof now) => {
      if (conflicts > 0) {
        conflicts -= 1
        now = {
          ...now,
          metadata: { ...now.metadata, resourceVersion: `${Number(now.metadata.resourceVersion) + 1}` },
        }
        throw new KcertError('KCERT_API_CONFLICT', 'the object was changed')
      }
      now = wanted
      return now
    },
  } as unknown as ObjectsApi
  const patching = new ObjectPatching({
    site: { objects },
    planes: { names: async () => ['cp1'] } as never,
    copies: { keepObject: async () => {} } as never,
    cas: {} as never,
    table: manualRotation,
  })
  const action = (flags: Record<string, string>, version = contentVersion(now)): PatchObject => ({
    kind: 'patch-object',
    phase: 2,
    object: { kind: 'ConfigMap', namespace: 'kube-system', name: 'kubeadm-config' },
    version,
    change: { kind: 'extra-args', component: 'controllerManager', flags },
  })
  return {
    patching,
    action,
    text: () => now.data.ClusterConfiguration,
    edit: (text: string) => {
      now = { ...now, data: { ClusterConfiguration: text } }
    },
  }
}

test('retries when a controller writes at the same moment', async () => {
  const { patching, action, text } = clusterWith(2)
  await patching.patch(action({ v: '2' }))
  expect(text()).toContain('"name":"v","value":"2"')
})

test('two actions of one plan change one object in sequence', async () => {
  const { patching, action, text } = clusterWith(0)
  const planned = [action({ v: '2' }), action({ 'root-ca-file': '/b.crt' })]
  for (const one of planned) await patching.patch(one)
  expect(text()).toMatch(/"name":"v".*\n?.*"name":"root-ca-file"/)
})

test('reports an edit between plan and action as drift, and keeps the edit', async () => {
  const { patching, action, text, edit } = clusterWith(0)
  const planned = action({ v: '2' })
  edit(`${own}networking: {}\n`)
  await expect(patching.patch(planned)).rejects.toMatchObject({ code: 'KCERT_ROTATION_DRIFT' })
  expect(text()).toBe(`${own}networking: {}\n`)
})

test('reports a conflict that does not end as drift', async () => {
  const { patching, action, text } = clusterWith(99)
  await expect(patching.patch(action({ v: '2' }))).rejects.toMatchObject({ code: 'KCERT_ROTATION_DRIFT' })
  expect(text()).toBe(own)
})

test.each([
  ['its own', { type: 'kubernetes.io/service-account-token' }, 'web', true],
  ['one of another service account', { type: 'kubernetes.io/service-account-token' }, 'admin', false],
  ['one with a token that anyone wrote', { type: 'Opaque' }, 'web', false],
])('continues with a second Secret only if it is %s', async (_what, found, account, isOwn) => {
  const metadata = { annotations: { 'kubernetes.io/service-account.name': account } }
  const patching = new ObjectPatching({
    site: { objects: { get: async () => ({ ...found, metadata }) } as unknown as ObjectsApi },
    ...({ planes: {}, copies: {}, cas: {}, table: manualRotation } as never as Pick<
      ConstructorParameters<typeof ObjectPatching>[0],
      'planes' | 'copies' | 'cas' | 'table'
    >),
  })
  const patched = patching.patch({
    kind: 'patch-object',
    phase: 5,
    object: { kind: 'Secret', namespace: 'shop', name: 'web-01234567' },
    version: 'absent',
    change: { kind: 'token-secret', serviceAccount: 'web' },
  })
  await (isOwn ? patched : expect(patched).rejects.toMatchObject({ code: 'KCERT_ROTATION_DRIFT' }))
})
