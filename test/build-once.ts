import { execFileSync } from 'node:child_process'

/** Builds dist/ before the tests that run the whole program. */
export default function buildOnce(): void {
  execFileSync(process.execPath, ['scripts/build.ts'], { stdio: 'inherit' })
}
