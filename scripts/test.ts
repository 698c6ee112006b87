import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { leftOutOn } from '../test/lab/today.ts'
import { runChecks } from './check.ts'

// `npm test`: the checks, then every test. `npm run test:unit` leaves out tests that need a cluster. In CI, cluster suites are
// selected by the day and by the changed files; `npm test -- --whole` runs all of them. The last line, "N passed, N failed",
// counts the tests that ran.

const unitOnly = process.argv.includes('--unit')
const folder = mkdtempSync(join(tmpdir(), 'kcert-test-'))
const report = join(folder, 'report.json')

const checked = runChecks()
if (process.argv.includes('--whole')) process.env.KCERT_WHOLE = '1'
// A run that passes midnight belongs to the day on which it began.
process.env.KCERT_LAB_DAY ??= new Date().toISOString()
const leftOut = unitOnly ? [] : leftOutOn()
const projects = unitOnly ? ['--project', 'unit'] : []
const { status } = spawnSync(
  'vitest',
  ['run', '--coverage', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...projects],
  { stdio: 'inherit' },
)
const counted = countTests(report)
rmSync(folder, { recursive: true })

const passed = checked.passed + counted.passed
// A run that fails outside its tests (a suite that does not load, a crash) counts as a failure even if no test failed.
const broken = status !== 0 && counted.failed === 0 ? 1 : 0
const failed = checked.failed + counted.failed + broken
const skipped = counted.skipped > 0 ? `, ${counted.skipped} skipped` : ''
if (leftOut.length > 0) {
  const lines = leftOut.map(({ name, why }) => `  test/lab/${name}.test.ts: ${why}\n`).join('')
  process.stdout.write(`left out today; npm test -- --whole runs all:\n${lines}`)
}
process.stdout.write(`${passed} passed, ${failed} failed${skipped}\n`)
process.exitCode = failed === 0 ? 0 : 1

function countTests(path: string): { passed: number; failed: number; skipped: number } {
  try {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(path, 'utf8')) as {
      numPassedTests: number
      numFailedTests: number
      numPendingTests: number
    }
    return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests }
  } catch {
    return { passed: 0, failed: 0, skipped: 0 }
  }
}
