import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import equivalents from './equivalent.json' with { type: 'json' }
import { targets } from './targets.ts'

test('each equivalent mutant changes text of a measured source', () => {
  const measured = targets.flatMap(({ sources }) => globSync([...sources]))
  const stale = equivalents.filter(
    ({ file, original }) => !measured.includes(file) || !readFileSync(file, 'utf8').includes(original),
  )
  expect(stale).toEqual([])
})
