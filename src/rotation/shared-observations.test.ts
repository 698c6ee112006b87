import { expect, test } from 'vitest'
import type { Observer } from './ports.ts'
import { SharedObservations } from './shared-observations.ts'

/** An observer whose observations end on command. Each returns its number. */
function slowObserver() {
  const ends: (() => void)[] = []
  const observe = () => {
    const number = ends.length + 1
    const { promise, resolve } = Promise.withResolvers<{ atMs: number }>()
    ends.push(() => resolve({ atMs: number }))
    return promise
  }
  return { observer: { observe } as unknown as Observer, ends }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('requests during an observation share the next one, which starts afterwards', async () => {
  const { observer, ends } = slowObserver()
  const observations = new SharedObservations(observer)
  const first = observations.observe(['pods'])
  const [second, third] = [observations.observe(['pods']), observations.observe(['pods'])]
  expect(ends).toHaveLength(1)
  ends[0]!()
  expect(await first).toEqual({ atMs: 1 })
  await settled()
  expect(ends).toHaveLength(2)
  ends[1]!()
  expect(await Promise.all([second, third])).toEqual([{ atMs: 2 }, { atMs: 2 }])
})

test('observes other sections separately, and continues after a failed observation', async () => {
  const { ends } = slowObserver()
  let fails = true
  const observer = {
    observe: async () => {
      if (fails) throw new Error('no answer')
      return { atMs: 1 }
    },
  } as unknown as Observer
  const observations = new SharedObservations(observer)
  const first = observations.observe(['pods'])
  const second = observations.observe(['pods'])
  const other = observations.observe(['leases'])
  fails = false
  await expect(first).rejects.toThrow('no answer')
  await expect(other).rejects.toThrow('no answer')
  expect(await second).toEqual({ atMs: 1 })
  expect(await observations.observe(['pods'])).toEqual({ atMs: 1 })
  expect(ends).toEqual([])
})
