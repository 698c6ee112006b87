import { expect, test } from 'vitest'
import { readDocuments } from '../kubeconfig/documents.ts'
import { tokenIn, verdictOf } from './probing.ts'

test('a client was believed only when it was refused in its own name', () => {
  expect(verdictOf({ status: 401, body: 'Unauthorized' })).toBe('refused')
  const forbidden = (user: string) => ({
    status: 403,
    body: `forbidden: User "${user}" cannot get path "/metrics"`,
  })
  expect(verdictOf(forbidden('kcert-rotation-probe'))).toBe('accepted')
  expect(verdictOf(forbidden('system:anonymous'))).toBeUndefined()
  expect(verdictOf({ status: 500, body: 'kcert-rotation-probe' })).toBeUndefined()
})

test('the token tried is that of the current context, not of whoever stands first', async () => {
  const text = `apiVersion: v1
kind: Config
users:
- name: first
  user: { token: one }
- name: second
  user: { token: two }
- name: third
  user: {}
`
  const [document] = (await readDocuments(text)).documents
  const tokens = await Promise.all(
    ['first', 'second', 'third', undefined].map((name) => tokenIn(document!, name)),
  )
  expect(tokens).toEqual(['one', 'two', undefined, undefined])
})
