import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { approveTable, clusterTitle } from './approve.ts'
import { bulkReportSuite, bulkTableSuite, oneProcessAFileSuite } from './bulk.ts'
import { coldSuite } from './cold.ts'
import { type Measurement, measure } from './measure.ts'
import { rotationTable } from './rotation.ts'
import { signOneProcessAFileSuite, signSuite } from './sign.ts'
import type { Suite } from './suite.ts'

// `npm run bench`: kcert beside its peers, in one run, as ratios. With --write the tables go into docs/benchmarks.md; --cluster
// measures what needs a cluster, and nothing else.

const page = 'docs/benchmarks.md'
const marker = '<!-- tables: written by `npm run bench -- --write` -->'
const suites: readonly ((folder: string) => Suite)[] = [
  coldSuite,
  bulkTableSuite,
  bulkReportSuite,
  oneProcessAFileSuite,
  signSuite,
  signOneProcessAFileSuite,
]

const folder = mkdtempSync(join(tmpdir(), 'kcert-bench-'))
try {
  execFileSync(process.execPath, ['scripts/build.ts'])
  const parts = [machine()]
  let missed = 0
  const isClusterAlone = process.argv.includes('--cluster')
  for (const makeSuite of isClusterAlone ? [] : suites) {
    const suite = makeSuite(folder)
    const measurements = measure(suite.contenders, suite.runs)
    const part = suiteTable(suite, measurements)
    process.stdout.write(`${part}\n\n`)
    parts.push(part)
    missed += missedTargets(suite, measurements).length
  }
  if (!isClusterAlone) {
    const rotation = rotationTable()
    process.stdout.write(`${rotation.text}\n\n`)
    parts.push(rotation.text)
    if (rotation.isMissed) missed++
  }
  const approved = await approveTable(folder)
  if (approved !== undefined) {
    process.stdout.write(`${approved.text}\n\n`)
    parts.push(approved.text)
    if (approved.isMissed) missed++
  }
  if (process.argv.includes('--write')) {
    const measuredBefore = clusterSection()
    if (!isClusterAlone) writePage(parts)
    const ofCluster = approved?.text ?? measuredBefore
    if (ofCluster !== undefined) writeSection(ofCluster)
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

// The machines are shared: the smallest of many runs says what the program costs, the median what the neighbours did.
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

/** The table that needs a cluster, as the page has it from an earlier run; a run without a lab leaves it as it is. */
function clusterSection(): string | undefined {
  return sections().find((section) => section.startsWith(clusterTitle))
}

/** Puts the cluster's table at the end of the page, in the place of an earlier one. */
function writeSection(text: string): void {
  const others = sections().filter((section) => !section.startsWith(clusterTitle))
  writeFileSync(page, `${[...others, text].join('\n\n')}\n`)
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
