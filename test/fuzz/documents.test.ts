import { expect, test } from 'vitest'
import { readDocuments } from '../../src/kubeconfig/documents.ts'
import { documents } from './readers.ts'
import { testReaders } from './timed-fuzz.ts'

testReaders(documents)

test('reports YAML that nests too deeply, or grows by its aliases, as a defect in a short time', async () => {
  for (const text of ['['.repeat(70), '- '.repeat(70), '{a: '.repeat(70)]) {
    const { documents: read, defects } = await readDocuments(text)
    expect([read.length, defects.length > 0], text.slice(0, 12)).toEqual([0, true])
  }
  const levels = Array.from(
    { length: 12 },
    (_, n) => `a${n}: &a${n} [${`${n === 0 ? 'x' : `*a${n - 1}`}, `.repeat(9)}y]`,
  )
  const { defects } = await readDocuments(`${levels.join('\n')}\n`)
  expect(defects[0]?.reason).toMatch(/alias/)
})
