import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const mark = 'KCERT_TEST_BUILT'

/**
 * Builds dist/ before the tests that run the whole program, once for all projects of a run. After them it says how much advice
 * was run (test/scripts/advice-running.ts).
 */
export default function buildOnce(): (() => void) | undefined {
  if (process.env[mark] !== undefined) return undefined
  execFileSync(process.execPath, ['scripts/build.ts'], { stdio: 'inherit' })
  process.env[mark] = '1'
  const advice = mkdtempSync(join(tmpdir(), 'kcert-advised-'))
  process.env.KCERT_TEST_ADVICE = advice
  return () => {
    const kinds = readdirSync(advice)
    const ran = kinds.filter((kind) => kind.startsWith('ran-')).length
    if (kinds.length > 0)
      process.stdout.write(`advised commands: ${ran} were run, ${kinds.length - ran} were parsed alone\n`)
    if (process.env.KCERT_KEEP_ADVICE === undefined) rmSync(advice, { recursive: true })
  }
}
