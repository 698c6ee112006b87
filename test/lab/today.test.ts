import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { alternating, leftOutOn } from './today.ts'

const days = ['2026-11-22T23:59:59Z', '2026-11-23T00:00:00Z', '2026-11-24T00:00:00Z'].map(
  (time) => new Date(time),
)

test('each suite that takes turns runs on one of three days, and exists', () => {
  const names = alternating.flat()
  for (const name of names) {
    expect(
      days.filter((day) => !leftOutOn(day, { CI: 'true' }).includes(name)),
      name,
    ).toHaveLength(1)
    expect(existsSync(join(import.meta.dirname, `${name}.test.ts`)), name).toBe(true)
  }
  expect(new Set(names).size).toBe(names.length)
})

test('nothing is left out outside CI, and nothing with --whole', () => {
  expect(days.flatMap((day) => leftOutOn(day, {}))).toEqual([])
  expect(days.flatMap((day) => leftOutOn(day, { CI: 'true', KCERT_WHOLE: '1' }))).toEqual([])
})
