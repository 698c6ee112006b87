import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { approveTable, clusterTitle } from './approve.ts'
import { bulkAllSuite, bulkReportSuite, bulkTableSuite, oneProcessAFileSuite } from './bulk.ts'
import { coldSuite } from './cold.ts'
import { fleetTable, manyRequestsTitle } from './fleet-table.ts'
import { noteRatios, warnOfLosses } from './last-run.ts'
import { oneRequestSuite, probeSuite, scanSuite } from './live.ts'
import { type Measurement, measure } from './measure.ts'
import { rotationTable } from './rotation.ts'
import { signOneProcessAFileSuite, signSuite } from './sign.ts'
import type { Suite } from './suite.ts'
import { verifySuite } from './verify.ts'

// `npm run bench`: compares kcert with its peers in one run, as ratios. --write updates the tables in docs/benchmarks.md.
// --cluster measures only suites that need a cluster. --only 'cold|verify' selects suites, of which 'fleet' needs a cluster.
// Ratios are compared with the last recorded run (test/bench/last-run.json), and a loss above 15 % is reported.

const page = 'docs/benchmarks.md'
const marker = '<!-- tables: written by `npm run bench -- --write` -->'
const suites: readonly ((folder: string) => Suite)[] = [
  coldSuite,
  bulkTableSuite,
  bulkAllSuite,
  bulkReportSuite,
  oneProcessAFileSuite,
  signSuite,
  signOneProcessAFileSuite,
  verifySuite,
  oneRequestSuite,
  probeSuite,
  scanSuite,
]

const folder = mkdtempSync(join(tmpdir(), 'kcert-bench-'))
try {
  const isDistributed = process.platform === 'linux' && process.arch === 'x64'
  // As in test/build-once.ts: a run at real-time priority should not build at that priority.
  if (process.env.KCERT_TEST_BUILT === undefined)
    execFileSync(process.execPath, [isDistributed ? 'scripts/dist.ts' : 'scripts/build.ts'])
  const parts = [machine()]
  let missed = 0
  const isClusterAlone = process.argv.includes('--cluster')
  const only = process.argv.includes('--only')
    ? process.argv[process.argv.indexOf('--only') + 1]!.toLowerCase().split('|')
    : undefined
  const isPart = isClusterAlone || only !== undefined
  const ratiosNow: Record<string, Record<string, number>> = {}
  for (const makeSuite of isClusterAlone ? [] : suites) {
    // A suite is selected by the name of its function, because calling the function creates its files and servers.
    if (only?.every((word) => !makeSuite.name.toLowerCase().startsWith(word))) continue
    const suite = makeSuite(folder)
    const measurements = measure(suite.contenders, suite.runs)
    const part = suiteTable(suite, measurements)
    ratiosNow[suite.title] = Object.fromEntries(
      measurements.map((row) => [row.name, ratios(suite, measurements, row).byMin]),
    )
    process.stdout.write(`${part}\n\n`)
    parts.push(part)
    missed += missedTargets(suite, measurements).length
  }
  for (const warning of warnOfLosses(ratiosNow)) process.stdout.write(`${warning}\n`)
  if (!isPart) {
    const rotation = rotationTable()
    process.stdout.write(`${rotation.text}\n\n`)
    parts.push(rotation.text)
    if (rotation.isMissed) missed++
  }
  const approved = only === undefined ? await approveTable(folder) : undefined
  if (approved !== undefined) {
    process.stdout.write(`${approved.text}\n\n`)
    parts.push(approved.text)
    if (approved.isMissed) missed++
  }
  const fleet = only === undefined || only.includes('fleet') ? await fleetTable(folder, machine()) : undefined
  if (fleet !== undefined) {
    process.stdout.write(`${fleet}\n\n`)
    parts.push(fleet)
  }
  if (process.argv.includes('--write')) {
    const measuredBefore = clusterSections()
    if (!isPart) writePage(parts)
    if (only !== undefined) for (const part of parts.slice(1)) writeSection(part)
    noteRatios(ratiosNow)
    const ofCluster = [...measuredBefore, approved?.text, fleet].filter((part) => part !== undefined)
    if (only === undefined) for (const part of ofCluster) writeSection(part)
  }
  process.exitCode = missed === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true })
}

function suiteTable(suite: Suite, measurements: readonly Measurement[]): string {
  const head =
    '| | ratio (min) | ratio (median) | min ms | median ms | peak MiB | runs |\n|---|---|---|---|---|---|---|'
  const rows = measurements.map((row) => {
    const { byMin, byMedian } = ratios(suite, measurements, row)
    const times = `${(row.min * 1000).toFixed(1)} | ${(row.median * 1000).toFixed(1)}`
    return `| ${row.name} | ${byMin.toFixed(2)} | ${byMedian.toFixed(2)} | ${times} | ${row.peakMiB.toFixed(0)} | ${row.runs} |`
  })
  const goals = [
    ...Object.entries(suite.targets).map(
      ([name, ratio]) => `${name} at most ${ratio.toFixed(1)} × ${suite.baseline}`,
    ),
    ...Object.entries(suite.memoryTargets ?? {}).map(([name, mib]) => `${name} within ${mib} MiB`),
  ]
  const missed = missedTargets(suite, measurements)
  const verdict =
    goals.length === 0
      ? ''
      : `\n\nTarget: ${goals.join('; ')}: ${missed.length === 0 ? 'met' : `missed (${missed.join('; ')})`}.`
  return `### ${suite.title}\n\n${head}\n${rows.join('\n')}${verdict}`
}

function ratios(suite: Suite, measurements: readonly Measurement[], row: Measurement) {
  const base = measurements.find(({ name }) => name === suite.baseline)!
  return { byMin: row.min / base.min, byMedian: row.median / base.median }
}

// The machines are shared: the minimum of many runs shows the cost of the program, the median the load of other users.
function missedTargets(suite: Suite, measurements: readonly Measurement[]): string[] {
  return measurements.flatMap((row) => {
    const { byMin } = ratios(suite, measurements, row)
    const ratio = suite.targets[row.name]
    const memory = suite.memoryTargets?.[row.name]
    return [
      ...(ratio !== undefined && byMin > ratio ? [`${row.name} ${byMin.toFixed(2)}`] : []),
      ...(memory !== undefined && row.peakMiB > memory ? [`${row.name} ${row.peakMiB.toFixed(0)} MiB`] : []),
    ]
  })
}

function machine(): string {
  const date = execFileSync('date', ['-u', '+%F'], { encoding: 'utf8' }).trim()
  const versions = [
    `Node ${process.versions.node}`,
    execFileSync('openssl', ['version'], { encoding: 'utf8' }).trim(),
    execFileSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' }).trim(),
  ]
  return `Measured ${date} on ${cpus().length} cores (${cpus()[0]?.model.trim()}), ${versions.join(', ')}.`
}

/** The tables that need a cluster, from an earlier run on the page. A run without a lab keeps them. */
function clusterSections(): string[] {
  return sections().filter((section) =>
    [clusterTitle, manyRequestsTitle].some((title) => section.startsWith(title)),
  )
}

/** Replaces the earlier table with the same title, or appends the table to the page. */
function writeSection(text: string): void {
  const titleOf = (section: string): string => section.split('\n', 1)[0]!
  const before = sections()
  const isThere = before.some((section) => titleOf(section) === titleOf(text))
  const after = isThere
    ? before.map((section) => (titleOf(section) === titleOf(text) ? text : section))
    : [...before, text]
  writeFileSync(page, `${after.join('\n\n')}\n`)
}

function sections(): string[] {
  return readFileSync(page, 'utf8')
    .trimEnd()
    .split(/\n\n(?=### )/)
}

function writePage(parts: readonly string[]): void {
  const [top] = readFileSync(page, 'utf8').split(marker)
  writeFileSync(page, `${top}${marker}\n\n${parts.join('\n\n')}\n`)
}
