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

test('what is printed as a name is read as the same name', () => {
  expect(requestNameOf(resourceNameOf('a.b'))).toBe('a.b')
})

test('a name that begins as a flag gets its kind in front', () => {
  expect(requestWord('--all')).toBe('csr/--all')
  expect(requestWord('a b;c')).toBe('a b;c')
})
