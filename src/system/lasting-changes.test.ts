import { expect, test } from 'vitest'
import { changesText, noteChange } from './lasting-changes.ts'

test('names the first ten changes, and keeps a limited number of them', () => {
  for (let index = 0; index < 20_000; index++) noteChange(`csr/${index} is changed`)
  expect(changesText()).toMatch(/^csr\/0 is changed, .*, csr\/9 is changed, 9990 more$/)
})
