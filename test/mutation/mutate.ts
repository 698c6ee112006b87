import { globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Measured, readLastRun, survivorOf, writeLastRun } from './last-run.ts'
import { digestOf, digestOfText, instrument, type Mutant } from './mutants.ts'
import {
  fileOf,
  killsIn,
  type Outcome,
  type Plan,
  planFile,
  type Reached,
  readOutcomes,
  uncleanIn,
} from './plan.ts'
import { report } from './report.ts'
import { checkSandbox } from './sandbox.ts'
import { type Target, targets } from './targets.ts'
import { recordOutcome, runVitest } from './vitest-process.ts'

// `npm run mutate [-- PART-OF-A-PATH...] [-- --write]`: mutates the sources that make decisions and reports the mutants that no
// unit test kills. An interrupted run resumes. Results of unchanged files are not measured again.

/** Fast tests run first. Of slow tests, only a few run for each mutant. */
const rounds: readonly { readonly upToMs: number; readonly maxTests: number }[] = [
  { upToMs: 25, maxTests: Number.POSITIVE_INFINITY },
  { upToMs: 100, maxTests: 20 },
  { upToMs: 500, maxTests: 6 },
  { upToMs: 2_500, maxTests: 2 },
]

/** The test files that cover most of a source run first, because they kill nearly all of its mutants. Then all others run. */
const fileLimits: readonly number[] = [2, Number.POSITIVE_INFINITY]

type Loaded = Extract<Outcome, { kind: 'loaded' }>

const patterns = process.argv.slice(2).filter((part) => !part.startsWith('--'))
const isSelected = (file: string): boolean =>
  patterns.length === 0 || patterns.some((argument) => file.includes(argument))

// A regular exit also stops the running tests.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
if (patterns.length > 0 && process.argv.includes('--write'))
  throw new Error('--write takes no PATH: the page has all sources')
if (!process.argv.includes('--report')) for (const target of targets) await measure(target)
process.exitCode = report(targets, isSelected)

async function measure(target: Target): Promise<void> {
  const suites = new Map(
    globSync([...target.tests])
      .sort()
      .map((file) => [file, digestOf(file)]),
  )
  const last = readLastRun()
  const open = globSync([...target.sources])
    .sort()
    .filter(
      (file) => isSelected(file) && !(isKnown(file, last[file]) && changed(suites, last[file]!).length === 0),
    )
  if (open.length === 0) return

  const { sources, mutants } = await instrument(open)
  const known = new Map(open.flatMap((file) => (isKnown(file, last[file]) ? [[file, last[file]!]] : [])))
  const earlier = mutants.flatMap(({ id, file, index }) => {
    const suite = Object.entries(known.get(file)?.tests ?? {}).find(([, { killed }]) =>
      killed.includes(index),
    )
    return suite !== undefined && suites.get(suite[0]) === suite[1].digest ? [[id, suite[0]] as const] : []
  })
  const survived = new Set(
    mutants.flatMap(({ id, file, index }) =>
      known.get(file)?.survivors.some((one) => one.index === index) ? [id] : [],
    ),
  )
  const killedEarlier = new Map(earlier)
  const needsFullRun = mutants.some(({ id }) => !killedEarlier.has(id) && !survived.has(id))
  // If the tests did not change, the survivors of the last run still survive.
  const toRun = needsFullRun
    ? [...suites.keys()]
    : [...new Set([...known.values()].flatMap((one) => changed(suites, one)))]

  enterFolder(digestOfText(JSON.stringify([open, open.map(digestOf), toRun, toRun.map(digestOf)])))
  writeFileSync(planFile('sources.json'), JSON.stringify(sources))
  checkSandbox()
  const killedMutants = (): Map<string, string> =>
    new Map([
      ...killedEarlier,
      ...[...killsIn(readOutcomes())].map(([id, test]) => [id, fileOf(test)] as const),
    ])
  const remaining = (): Mutant[] => {
    const killed = killedMutants()
    return mutants.filter(({ id }) => !killed.has(id))
  }
  const { reached, loaded } = await reach(toRun, mutants)
  if (needsFullRun && loaded.every((one) => one.mutants.length === 0) && reached.length === 0)
    throw new Error(`no test reaches ${open.join(', ')}: see KCERT_MUTATION_LOUD=1`)
  const nearest = suitesByCoverage(mutants, reached)
  await tryInTests(remaining, reached, nearest, mutants.length)
  await tryFresh(remaining, loaded, nearest)

  const killed = killedMutants()
  const covered = new Set([
    ...reached.flatMap((one) => Object.keys(one.mutants)),
    ...loaded.flatMap((one) => one.mutants),
  ])
  for (const file of open) {
    const own = mutants.filter((one) => one.file === file)
    const isCovered = (one: Mutant): boolean =>
      covered.has(one.id) ||
      known.get(file)?.survivors.some(({ index, isUnreached }) => index === one.index && !isUnreached) ===
        true
    const reaches = (suite: string): boolean =>
      known.get(file)?.tests[suite] !== undefined ||
      loaded.some((one) => one.file === suite && own.some(({ id }) => one.mutants.includes(id))) ||
      reached.some((one) => one.file === suite && own.some(({ id }) => id in one.mutants))
    const reaching = [...suites].filter(([suite]) => reaches(suite))
    const measured: Measured = {
      digest: digestOf(file),
      mutants: own.length,
      tests: Object.fromEntries(
        reaching.map(([suite, digest]) => [
          suite,
          { digest, killed: own.filter(({ id }) => killed.get(id) === suite).map(({ index }) => index) },
        ]),
      ),
      others: othersOf(suites, new Set(reaching.map(([suite]) => suite))),
      survivors: own.filter(({ id }) => !killed.has(id)).map((one) => survivorOf(one, isCovered(one))),
    }
    writeLastRun(file, measured)
  }
  rmSync(process.env.KCERT_MUTATION!, { recursive: true })
}

function isKnown(file: string, last: Measured | undefined): boolean {
  return last?.digest === digestOf(file)
}

/** Returns the test files that changed. */
function changed(suites: ReadonlyMap<string, string>, { tests, others }: Measured): string[] {
  const isSame = othersOf(suites, new Set(Object.keys(tests))) === others
  return [...suites.keys()].filter((suite) =>
    tests[suite] === undefined ? !isSame : tests[suite].digest !== suites.get(suite),
  )
}

function othersOf(suites: ReadonlyMap<string, string>, reaching: ReadonlySet<string>): string {
  return digestOfText(JSON.stringify([...suites].filter(([suite]) => !reaching.has(suite))))
}

function enterFolder(name: string): void {
  const folder = join(process.cwd(), '.mutation', name)
  mkdirSync(folder, { recursive: true })
  process.env.KCERT_MUTATION = folder
}

/** Runs the tests once and returns the mutants that each test covers. */
async function reach(
  suites: readonly string[],
  mutants: readonly Mutant[],
): Promise<{ reached: Reached[]; loaded: Loaded[] }> {
  const isLoaded = (one: Outcome): one is Loaded => one.kind === 'loaded'
  const done = new Set(
    readOutcomes()
      .filter(isLoaded)
      .map(({ file }) => file),
  )
  const missing = suites.filter((suite) => !done.has(suite))
  if (missing.length > 0) await runVitest({ mode: 'coverage', tests: {} }, missing)
  const outcomes = readOutcomes()
  const measured = new Set(mutants.map(({ id }) => id))
  const reached = outcomes.flatMap((one) => (one.kind === 'reached' ? [one.of] : []))
  return {
    reached: reached.map((one) => ({
      ...one,
      mutants: Object.fromEntries(Object.entries(one.mutants).filter(([id]) => measured.has(id))),
    })),
    loaded: outcomes
      .filter(isLoaded)
      .map((one) => ({ ...one, mutants: one.mutants.filter((id) => measured.has(id)) })),
  }
}

/** Returns the test files that cover each source, those with the most covered mutants first. */
function suitesByCoverage(
  mutants: readonly Mutant[],
  reached: readonly Reached[],
): (source: string) => readonly string[] {
  const idsOf = new Map(
    [...Map.groupBy(reached, ({ file }) => file)].map(([suite, tests]) => [
      suite,
      new Set(tests.flatMap((one) => Object.keys(one.mutants))),
    ]),
  )
  const suitesOf = new Map(
    [...Map.groupBy(mutants, ({ file }) => file)].map(([source, own]) => {
      const ids = new Set(own.map(({ id }) => id))
      const counts = [...idsOf].map(([suite, covered]) => ({ suite, count: ids.intersection(covered).size }))
      const sorted = counts.filter(({ count }) => count > 0).toSorted((a, b) => b.count - a.count)
      return [source, sorted.map(({ suite }) => suite)]
    }),
  )
  return (source) => suitesOf.get(source)!
}

async function tryInTests(
  remaining: () => Mutant[],
  reached: readonly Reached[],
  nearest: (source: string) => readonly string[],
  of: number,
): Promise<void> {
  for (const most of fileLimits) {
    const isNear = (suite: string, { file }: Mutant): boolean => nearest(file).slice(0, most).includes(suite)
    let fromMs = 0
    for (const { upToMs, maxTests } of rounds) {
      const some = reached.filter(({ ms }) => ms >= fromMs && ms < upToMs)
      fromMs = upToMs
      for (;;) {
        const tests = pairsOf(remaining(), some, maxTests, isNear)
        const count = Object.keys(tests).length
        if (count === 0) break
        say(`${remaining().length} mutants remaining of ${of}; ${count} tests under ${upToMs} ms`)
        const before = readOutcomes().length
        await runVitest({ mode: 'mutants', tests }, [...new Set(Object.keys(tests).map(fileOf))])
        // The test was not found again, for example because its title contains a random value.
        if (readOutcomes().length === before)
          for (const test of Object.keys(tests)) recordOutcome({ kind: 'unclean', test })
      }
    }
  }
}

/** Returns the pairs of mutants and tests that have not run yet. */
function pairsOf(
  remaining: readonly Mutant[],
  some: readonly Reached[],
  maxTests: number,
  isNear: (suite: string, mutant: Mutant) => boolean,
): Plan['tests'] {
  const outcomes = readOutcomes()
  const unclean = uncleanIn(outcomes)
  const tried = new Set(outcomes.flatMap((one) => ('mutant' in one ? [`${one.mutant} ${one.test}`] : [])))
  const tests: Record<string, Record<string, number>> = {}
  const sorted = some.filter(({ test }) => !unclean.has(test)).toSorted((a, b) => a.ms - b.ms)
  for (const mutant of remaining) {
    const { id } = mutant
    const covering = sorted
      .filter(({ mutants, file }) => id in mutants && isNear(file, mutant))
      .slice(0, maxTests)
    for (const { test, mutants } of covering) {
      if (tried.has(`${id} ${test}`)) continue
      tests[test] ??= {}
      tests[test][id] = mutants[id]!
    }
  }
  return tests
}

/**
 * Mutants that run on import, and mutants killed by unclean tests, need a process each. It runs up to five test files, those that
 * cover most of the source first.
 */
async function tryFresh(
  remaining: () => Mutant[],
  loaded: readonly Loaded[],
  nearest: (source: string) => readonly string[],
): Promise<void> {
  const outcomes = readOutcomes()
  const unclean = uncleanIn(outcomes)
  const tried = new Set(
    outcomes.flatMap((one) => ('test' in one && one.test === 'fresh' && 'mutant' in one ? [one.mutant] : [])),
  )
  const todo = remaining().filter(({ id }) => !tried.has(id))
  for (const [at, { id, file }] of todo.entries()) {
    const suites = nearest(file)
    // Test files that load a source but cover no other mutant of it are sorted by duration.
    const rankOf = (suite: string): number => (suites.includes(suite) ? suites.indexOf(suite) : suites.length)
    const doubtful = outcomes.flatMap((one) =>
      one.kind === 'killed' && one.mutant === id && unclean.has(one.test) ? [fileOf(one.test)] : [],
    )
    const quick = loaded.filter((one) => one.mutants.includes(id) && one.ms < 20_000)
    const files = [
      ...new Set([
        ...doubtful,
        ...quick
          .toSorted((a, b) => rankOf(a.file) - rankOf(b.file) || a.ms - b.ms)
          .slice(0, 5)
          .map((one) => one.file),
      ]),
    ]
    if (files.length === 0) continue
    say(`fresh process ${at + 1} of ${todo.length}`)
    const status = await runVitest({ mode: 'mutants', tests: {}, fresh: id }, files)
    if (status !== 0 && remaining().some((one) => one.id === id))
      recordOutcome({ kind: 'killed', mutant: id, test: files[0]! })
    recordOutcome({ kind: 'survived', mutant: id, test: 'fresh' })
  }
}

function say(line: string): void {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`)
}
