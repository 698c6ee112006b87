import { describe, expect, test } from 'vitest'
import { foreignSubjectOf, isNodeIdentity, kubeletFile, kubeletRotationWindow } from './kubelet.ts'

describe('kubeletFile', () => {
  test.each([
    ['kubelet-client-current.pem', { role: 'kubelet-client', part: 'current' }],
    ['kubelet-server-updated.pem', { role: 'kubelet-serving', part: 'updated' }],
    ['kubelet-client-2026-11-21-09-00-00.pem', { role: 'kubelet-client', part: 'pair' }],
    ['kubelet.crt', { role: 'kubelet-serving', part: 'self-signed' }],
    ['kubelet-client.key.tmp', { role: 'kubelet-client', part: 'bootstrap-key' }],
  ])('recognizes %s', (name, expected) => {
    expect(kubeletFile(name)).toEqual(expected)
  })

  test.each([
    'kubelet-client-2026-11-21.pem',
    'kubelet-clients-current.pem',
    'kubelet.conf',
    'xkubelet.crt',
    'kubelet-client-current.pem.bak',
  ])('does not recognize %s', (name) => {
    expect(kubeletFile(name)).toBeUndefined()
  })
})

test('kubeletRotationWindow is 70 to 90 % of the lifetime', () => {
  const { earliest, latest } = kubeletRotationWindow(
    new Date('2026-01-01T00:00:00Z'),
    new Date('2026-01-11T00:00:00Z'),
  )
  expect([earliest.toISOString(), latest.toISOString()]).toEqual([
    '2026-01-08T00:00:00.000Z',
    '2026-01-10T00:00:00.000Z',
  ])
})

test('isNodeIdentity requires both the common name and the group', () => {
  expect(isNodeIdentity('system:node:a', ['system:nodes'])).toBe(true)
  expect(isNodeIdentity('system:node:a', [])).toBe(false)
  expect(isNodeIdentity('a', ['system:nodes'])).toBe(false)
  expect(isNodeIdentity(undefined, ['system:nodes'])).toBe(false)
})

test.each([
  ['system:node:w1', undefined],
  ['w1@1795298400', undefined],
  // A kubelet's host name may differ from the name of its Node.
  ['ip-10-0-0-7@1795298400', undefined],
  ['w1', { shown: 'CN=w1', isOfAnotherNode: false }],
  ['someone@example.com', { shown: 'CN=someone@example.com', isOfAnotherNode: false }],
  ['system:node:w2', { shown: 'CN=system:node:w2', isOfAnotherNode: true }],
])('CN=%s at the address of node w1', (commonName, stranger) => {
  expect(foreignSubjectOf({ commonName, text: `CN=${commonName}` }, 'w1')).toEqual(stranger)
})
