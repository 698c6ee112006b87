import { expect, test } from 'vitest'
import { shapedRequest } from './request-shape.ts'

const spec = { request: 'YQ==', signerName: 'example.com/a', usages: ['client auth'] }

test('null is as nothing, and fields that kcert does not name stay', () => {
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
  [[], 'it is no object'],
  [{ metadata: {}, spec }, 'metadata.name is missing'],
  [{ metadata: { name: 'a' } }, 'spec is missing'],
  [{ metadata: { name: 'a' }, spec: [] }, 'spec is no object'],
  [{ metadata: { name: 'a' }, spec: { ...spec, request: 5 } }, 'spec.request is no text'],
  [
    { metadata: { name: 'a' }, spec: { ...spec, usages: [1, null] } },
    'spec.usages[0] is no text, spec.usages[1] is no text',
  ],
  [
    { metadata: { name: 'a' }, spec: { ...spec, expirationSeconds: '5' } },
    'spec.expirationSeconds is no number',
  ],
  [{ metadata: { name: 'a' }, spec, status: { conditions: {} } }, 'status.conditions is no list'],
  [{ metadata: { name: 'a' }, spec, status: { conditions: [{}] } }, 'status.conditions[0].type is missing'],
  [{ metadata: { name: 'a', labels: { '\u202e': 1 } }, spec }, 'metadata.labels["\u202e"] is no text'],
])('%j: %s', (object, fault) => {
  expect(shapedRequest(object)).toEqual({ fault })
})
