import { expect, test } from 'vitest'
import { seed } from '../differential/seed.ts'
import { Fuzzer, type Way } from './fuzzer.ts'
import type { Reader } from './readers.ts'

const seconds = Number(process.env.KCERT_FUZZ_SECONDS ?? 60)
const shares: Readonly<Record<Exclude<Way, 'guided'>, number>> = { blind: 0.8, 'fast-check': 0.2 }

/**
 * Tests each of these readers for a minute, or KCERT_FUZZ_SECONDS. They are in two files, which run on two cores. `npm run fuzz`
 * runs a number of executions, guided by coverage.
 */
export function testReaders(readers: readonly Reader[]): void {
  test.each(readers.map((reader) => [reader.name, reader] as const))(
    'the reader of %s answers whatever it is given, or refuses by an error of its own',
    async (name, reader) => {
      const fuzzer = new Fuzzer(reader, seed)
      for (const [way, share] of Object.entries(shares) as [Exclude<Way, 'guided'>, number][]) {
        const end = performance.now() + share * seconds * 1000
        await fuzzer.run(way, Number.POSITIVE_INFINITY, () => performance.now() >= end)
      }
      const { executions, accepted, findings } = fuzzer.done
      console.log(`${name}: ${executions} executions, ${accepted} accepted, seed ${seed}`)
      expect(findings.map(({ what, input }) => `${what}: ${Buffer.from(input).toString('base64')}`)).toEqual(
        [],
      )
      // Otherwise the inputs are so broken that only the first lines of the reader run.
      expect(accepted).toBeGreaterThan(0)
    },
    (seconds * 4 + 300) * 1000,
  )
}
