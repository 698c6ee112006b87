import { expect, test } from 'vitest'
import { requestNameOf, requestWord, resourceNameOf } from './request-name.ts'

test.each([
  ['ann', 'ann'],
  ['csr/ann', 'ann'],
  ['csr/csr-7x2lq', 'csr-7x2lq'],
  ['certificatesigningrequest/ann', 'ann'],
  ['certificatesigningrequests.certificates.k8s.io/ann', 'ann'],
  ['certificatesigningrequests.v1.certificates.k8s.io/ann', 'ann'],
])('%s names the object %s', (word, name) => {
  expect(requestNameOf(word)).toBe(name)
})

test('reads a printed name as the same name', () => {
  expect(requestNameOf(resourceNameOf('a.b'))).toBe('a.b')
})

test('prints the kind before a name that begins like a flag', () => {
  expect(requestWord('--all')).toBe('csr/--all')
  expect(requestWord('a b;c')).toBe('a b;c')
})
