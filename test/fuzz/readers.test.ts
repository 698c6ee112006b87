import { expect, test } from 'vitest'
import { readers } from './readers.ts'

test('readers accept all seed documents but one, whose name constraints are empty', async () => {
  const refused: string[] = []
  for (const reader of readers)
    for (const document of reader.corpus) {
      const taken = Promise.resolve().then(() => reader.read(document))
      await taken.catch(({ code }) => refused.push(`${reader.name}: ${code}`))
    }
  expect(refused).toEqual(['DER: KCERT_X509_MALFORMED'])
})
