import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** Title of a suite → contender → its ratio to the suite's baseline. */
export type Ratios = Readonly<Record<string, Readonly<Record<string, number>>>>

const path = 'test/bench/last-run.json'
const tolerated = 1.15

/** Returns a line for each kcert contender that lost more than 15 % against the last recorded run. */
export function warnOfLosses(now: Ratios, before: Ratios = lastRun()): string[] {
  return Object.entries(now).flatMap(([title, rows]) =>
    Object.entries(rows).flatMap(([name, ratio]) => {
      const last = before[title]?.[name]
      const isLost = name.includes('kcert') && last !== undefined && ratio > last * tolerated
      return isLost
        ? [`WARNING: ${title}: ${name} was ${last.toFixed(2)} and is ${ratio.toFixed(2)} × its peer`]
        : []
    }),
  )
}

/** Records the ratios for later runs. Suites that were not measured keep their earlier ratios. */
export function noteRatios(now: Ratios): void {
  const rounded = Object.entries(now).map(([title, rows]) => [
    title,
    Object.fromEntries(Object.entries(rows).map(([name, ratio]) => [name, Number(ratio.toFixed(3))])),
  ])
  writeFileSync(path, `${JSON.stringify({ ...lastRun(), ...Object.fromEntries(rounded) }, null, 2)}\n`)
}

function lastRun(): Ratios {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Ratios) : {}
}
