import { defineConfig } from 'vitest/config'
import { leftOutOn } from './test/lab/today.ts'

export default defineConfig({
  test: {
    coverage: { provider: 'v8', include: ['src/**/*.ts'], reporter: ['text-summary', 'json-summary'] },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['test/lab/**'],
          globalSetup: ['test/build-once.ts'],
          // What hangs is found; what is slow on a machine with other work is not punished.
          testTimeout: 600_000,
          hookTimeout: 600_000,
          // Whole commands are mostly waited for: more of them than cores.
          maxWorkers: 4,
        },
      },
      {
        test: {
          name: 'lab',
          include: ['test/lab/**/*.test.ts'],
          exclude: leftOutOn().map(({ name }) => `test/lab/${name}.test.ts`),
          globalSetup: ['test/build-once.ts'],
          // One cluster at a time: two would not fit the machine, nor would one beside the other tests.
          fileParallelism: false,
          sequence: { groupOrder: 1 },
          testTimeout: 1_200_000,
          hookTimeout: 1_800_000,
        },
      },
    ],
  },
})
