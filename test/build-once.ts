import { execFileSync } from 'node:child_process'

const mark = 'KCERT_TEST_BUILT'

/** Builds dist/ before the tests that run the whole program, once for all projects of a run. */
export default function buildOnce(): void {
  if (process.env[mark] !== undefined) return
  execFileSync(process.execPath, ['scripts/build.ts'], { stdio: 'inherit' })
  process.env[mark] = '1'
}
