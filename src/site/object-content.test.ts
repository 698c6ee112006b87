import { expect, test } from 'vitest'
import { contentVersion } from './object-content.ts'

const metadata = { name: 'cluster-info', uid: 'u1', resourceVersion: '7', labels: { b: '2', a: '1' } }
const object = { metadata, data: { kubeconfig: 'clusters: []', 'jws-kubeconfig-abcdef': 'a..b' } }
const version = contentVersion(object)

test.each<[string, Parameters<typeof contentVersion>[0]]>([
  ['another resourceVersion', { ...object, metadata: { ...metadata, resourceVersion: '8' } }],
  ['another field manager', { ...object, metadata: { ...metadata, managedFields: [{ manager: 'x' }] } }],
  ['one signature less', { ...object, data: { kubeconfig: 'clusters: []' } } as never],
  ['a status', { ...object, status: { conditions: [] } } as never],
  [
    'kind and apiVersion, which items of a list lack',
    { ...object, kind: 'ConfigMap', apiVersion: 'v1' } as never,
  ],
  ['another order', { data: object.data, metadata: { ...metadata, labels: { a: '1', b: '2' } } } as never],
])('%s does not change the content version', (_, same) => {
  expect(contentVersion(same)).toBe(version)
})

test.each<[string, Parameters<typeof contentVersion>[0]]>([
  ['another text', { ...object, data: { ...object.data, kubeconfig: 'clusters: [{}]' } } as never],
  ['another label', { ...object, metadata: { ...metadata, labels: { a: '1' } } }],
  ['a recreated object of the same name', { ...object, metadata: { ...metadata, uid: 'u2' } }],
  ['another spec', { ...object, spec: { caBundle: 'AA==' } } as never],
])('%s changes the content version', (_, other) => {
  expect(contentVersion(other)).not.toBe(version)
})
