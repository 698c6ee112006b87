import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { defaultMinor, minors } from './spec.ts'
import { leftOutOn, minorOfDay, turns } from './today.ts'

const ci = { CI: 'true' }
const checkout = resolve(import.meta.dirname, '../..')
const suites = turns.flat()
/** Days from one with the newest minor version until every minor version and every turn occurred. */
const days = Array.from(
  { length: 8 },
  (_, day) => new Date(Date.parse('2026-11-27T00:00:00Z') + day * 86_400_000),
)
const nothing = (): string[] => []
const namesOn = (day: Date, changed: () => readonly string[] | undefined = nothing): string[] => {
  const leftOut = leftOutOn(day, ci, changed).map(({ name }) => name)
  return suites.map(({ name }) => name).filter((name) => !leftOut.includes(name))
}

describe('suites that CI may skip', () => {
  test('are all suites that open a cluster, except the rotation and the API contract, and their paths exist', () => {
    const opening = globSync('*.test.ts', {
      cwd: import.meta.dirname,
      exclude: [basename(import.meta.filename)],
    })
      .filter((file) => readFileSync(join(import.meta.dirname, file), 'utf8').includes("from './fixture.ts'"))
      .map((file) => basename(file, '.test.ts'))
    expect([...suites.map(({ name }) => name), 'api-contract', 'rotation'].sort()).toEqual(opening.sort())
    for (const path of suites.flatMap(({ proves }) => proves))
      expect(existsSync(join(checkout, path)), path).toBe(true)
  })

  test('each run within eight days if their sources change repeatedly, and if nothing changes', () => {
    const often = ['src/ca/new-ca.ts', 'src/csr/approval/acting.ts', 'src/pki/kubeadm.ts']
    for (const changed of [nothing, () => undefined, () => often]) {
      const run = new Set(days.flatMap((day) => namesOn(day, changed)))
      const due = suites.filter(
        ({ proves }) =>
          changed()?.length !== often.length ||
          proves.some((path) => often.some((file) => file.startsWith(`${path}/`))),
      )
      expect(due.map(({ name }) => name).filter((name) => !run.has(name))).toEqual([])
    }
  })

  test('leave an hour for everything: one or two builds, the unit tests and the rotation', () => {
    for (const day of days) {
      const minutes = suites.filter(({ name }) => namesOn(day).includes(name)).map((suite) => suite.minutes)
      const builds = minorOfDay(day, ci) === minors.at(-1) ? 1 : 2
      const total = minutes.reduce((sum, one) => sum + one, 1 + 12 + 1 + 12 + 2 + builds * 14)
      expect(total, day.toISOString()).toBeLessThanOrEqual(60)
    }
  })

  test('run first when a file that they cover changed, including their own', () => {
    const [newest, older] = days as [Date, Date]
    const changes = ['src/csr/approval/acting.ts', 'src/kubelets.ts']
    expect(namesOn(newest)).toEqual(['rotation-resume', 'guides'])
    expect(namesOn(newest, () => changes)).toEqual(
      expect.arrayContaining(['approval', 'csr-life', 'csr-faults']),
    )
    expect(namesOn(newest, () => changes)).not.toContain('rotation-resume')
    expect(namesOn(older, () => ['test/lab/kubelet-manage.test.ts'])).toEqual(['kubelet-manage'])
    // Without a history, all files may have changed, so only the turn decides.
    expect(namesOn(newest, () => undefined)).toEqual(['rotation-resume', 'guides'])
  })

  test('are listed with the reason', () => {
    const why = (changed: readonly string[]) =>
      leftOutOn(days[1], ci, () => changed).find(({ name }) => name === 'renew-three')?.why
    expect(why([])).toBe(
      "what it proves did not change since yesterday, and its 10 minutes do not fit into today's 60",
    )
    expect(why(['src/ca/plan.ts'])).toBe("its 10 minutes do not fit into today's 60")
  })

  test('are none outside CI, and none with --whole', () => {
    for (const environment of [{}, { ...ci, KCERT_WHOLE: '1' }])
      expect(days.flatMap((day) => leftOutOn(day, environment, nothing))).toEqual([])
  })
})

test('the minor version of the day is the newest every other day, and each older one in turn; outside CI, the newest', () => {
  const [newest] = minors.slice(-1)
  const older = minors.slice(0, -1)
  expect(days.map((day) => minorOfDay(day, ci)).filter((_, day) => day % 2 === 0)).toEqual(
    older.map(() => newest),
  )
  expect(
    days
      .map((day) => minorOfDay(day, ci))
      .filter((_, day) => day % 2 === 1)
      .sort(),
  ).toEqual(older)
  expect(new Set(days.map((day) => minorOfDay(day, {})))).toEqual(new Set([defaultMinor]))
  expect(minorOfDay(days[1], { ...ci, KCERT_LAB_MINOR: defaultMinor })).toBe(defaultMinor)
})
