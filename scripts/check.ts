import { spawnSync } from 'node:child_process'

// `npm run check`: all static checks of the source.

export interface Check {
  readonly name: string
  readonly command: readonly string[]
}

export const checks: readonly Check[] = [
  { name: 'types', command: ['tsc', '--noEmit'] },
  { name: 'lint and format', command: ['biome', 'ci', '--error-on-warnings', '.'] },
  { name: 'unused code and dependencies', command: ['knip', '--no-progress'] },
  { name: 'import graph', command: ['node', 'scripts/import-graph.ts'] },
  { name: 'commands in messages', command: ['node', 'scripts/command-lines.ts'] },
  { name: 'words and links of the docs', command: ['node', 'scripts/prose.ts'] },
  { name: 'build', command: ['node', 'scripts/build.ts'] },
  { name: 'generated manifest and docs', command: ['node', 'scripts/docs.ts'] },
]

/** Runs every check, even after a failure, and returns the numbers of passed and failed checks. */
export function runChecks(): { passed: number; failed: number } {
  let failed = 0
  for (const { name, command } of checks) {
    const [program = '', ...args] = command
    const started = performance.now()
    const { status, error } = spawnSync(program, args, { stdio: 'inherit' })
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    const ok = status === 0 && !error
    if (!ok) failed++
    process.stdout.write(`${ok ? 'ok    ' : 'FAILED'} check: ${name} (${seconds} s)\n`)
  }
  return { passed: checks.length - failed, failed }
}

if (import.meta.main) process.exitCode = runChecks().failed === 0 ? 0 : 1
