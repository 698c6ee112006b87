import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { planFile } from './plan.ts'

// The unit tests on sources that contain all their mutants, each inactive: `npm run mutate`.

const sources = JSON.parse(readFileSync(planFile('sources.json'), 'utf8')) as Record<string, string>

export default defineConfig({
  root: fileURLToPath(new URL('../..', import.meta.url)),
  plugins: [{ name: 'mutants', enforce: 'pre', load: (id: string) => sources[id.split('?')[0]!] }],
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['test/lab/**'],
    runner: 'test/mutation/runner.ts',
    // The cache would supply a source without mutants, or with those of another run.
    fsModuleCache: false,
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
})
