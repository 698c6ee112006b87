import { expect, test } from 'vitest'
import { shapedRequest, typeFaults } from './request-shape.ts'

const spec = { request: 'YQ==', signerName: 'example.com/a', usages: ['client auth'] }

test('reads null as absent, and keeps unknown fields', () => {
  const object = {
    metadata: { name: 'a', labels: null, managedFields: [null], selfLink: 5 },
    spec: { ...spec, groups: null },
    status: null,
  }
  expect(shapedRequest(object)).toEqual({
    metadata: { name: 'a', managedFields: [null], selfLink: 5 },
    spec,
  })
})

test.each<[unknown, string]>([
  [[], 'it is not an object'],
  [{ metadata: {}, spec }, 'metadata.name is missing'],
  [{ metadata: { name: 'a' } }, 'spec is missing'],
  [{ metadata: { name: 'a' }, spec: [] }, 'spec is not an object'],
  [{ metadata: { name: 'a' }, spec: { ...spec, request: 5 } }, 'spec.request is not a string'],
  [
    { metadata: { name: 'a' }, spec: { ...spec, usages: [1, null] } },
    'spec.usages[0] is not a string, spec.usages[1] is not a string',
  ],
  [
    { metadata: { name: 'a' }, spec: { ...spec, expirationSeconds: '5' } },
    'spec.expirationSeconds is not a number',
  ],
  [{ metadata: { name: 'a' }, spec, status: { conditions: {} } }, 'status.conditions is not a list'],
  [{ metadata: { name: 'a' }, spec, status: { conditions: [{}] } }, 'status.conditions[0].type is missing'],
  [{ metadata: { name: 'a', labels: { '\u202e': 1 } }, spec }, 'metadata.labels["\u202e"] is not a string'],
])('%j: %s', (object, fault) => {
  expect(shapedRequest(object)).toEqual({ fault })
})

test('rejects a wrong type in every field that the API server decodes', () => {
  const [text, number, boolean] = [
    ['text', 5],
    ['number', '5'],
    ['boolean', 'x'],
  ] as const
  const types: Record<string, readonly [string, unknown]> = {
    ...{ apiVersion: text, kind: text },
    ...{
      'metadata.name': text,
      'metadata.generateName': text,
      'metadata.uid': text,
      'metadata.resourceVersion': text,
    },
    ...{ 'metadata.creationTimestamp': text, 'metadata.deletionTimestamp': text, 'metadata.namespace': text },
    ...{
      'metadata.selfLink': text,
      'metadata.generation': number,
      'metadata.deletionGracePeriodSeconds': number,
    },
    ...{ 'metadata.ownerReferences[0].apiVersion': text, 'metadata.ownerReferences[0].kind': text },
    ...{ 'metadata.ownerReferences[0].name': text, 'metadata.ownerReferences[0].uid': text },
    ...{
      'metadata.ownerReferences[0].controller': boolean,
      'metadata.ownerReferences[0].blockOwnerDeletion': boolean,
    },
    ...{
      'spec.request': text,
      'spec.signerName': text,
      'spec.expirationSeconds': number,
      'spec.username': text,
      'spec.uid': text,
    },
    'status.certificate': text,
    ...{
      'status.conditions[0].type': text,
      'status.conditions[0].status': text,
      'status.conditions[0].reason': text,
    },
    ...{ 'status.conditions[0].message': text, 'status.conditions[0].lastUpdateTime': text },
    ...{ 'status.conditions[0].lastTransitionTime': text },
  }
  const words: Record<string, string> = {
    ...{ text: 'a string', number: 'a number', boolean: 'a boolean', list: 'a list', object: 'an object' },
  }
  for (const [path, [type, wrong]] of Object.entries(types)) {
    const object = path.split('.').reduceRight<unknown>((inner, part) => {
      const [, name, isList] = /^(\w+)(\[0\])?$/.exec(part)!
      return { [name!]: isList ? [inner] : inner }
    }, wrong)
    expect(typeFaults(object)).toContain(`${path} is not ${words[type]}`)
  }
})

test('names the first three of many errors', () => {
  expect(shapedRequest({ metadata: { name: 'a' }, spec: { ...spec, usages: [1, 2, 3, 4] } })).toEqual({
    fault: 'spec.usages[0] is not a string, spec.usages[1] is not a string, spec.usages[2] is not a string',
  })
})
