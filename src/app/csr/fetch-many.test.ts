import { expect, test } from 'vitest'
import { fileNameOf } from './fetch-many.ts'

test.each([
  ['csr-7x2lq', 'csr-7x2lq.crt'],
  ['my-svc.my-namespace', 'my-svc.my-namespace.crt'],
  ['ünïcode a b', 'ünïcode a b.crt'],
  ['-o', '%2Do.crt'],
  ['..', '%2E..crt'],
  ['.bashrc', '%2Ebashrc.crt'],
  ['../../etc/x', '%2E.%2F..%2Fetc%2Fx.crt'],
  ['a\nb\u001b[2J', 'a%0Ab%1B[2J.crt'],
  ['\u202egnp', '%E2%80%AEgnp.crt'],
])('names the file of request %j %s', (name, file) => {
  expect(fileNameOf(name)).toBe(file)
})
