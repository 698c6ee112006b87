import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

// What a node's shell runs for kcert, not what a reader is advised to run.
const scripts = ['src/node/node-script.ts', 'src/rotation-io/runbook-script.ts']

test('no advice removes files: what is in the way is moved aside, so a command that fails loses nothing', () => {
  const found = globSync('src/**/*.ts', { cwd: root })
    .filter((path) => !path.endsWith('.test.ts') && !scripts.includes(path))
    .flatMap((path) =>
      readFileSync(join(root, path), 'utf8')
        .split('\n')
        .flatMap((line, index) => (removal.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
    )
  expect(found).toEqual([])
  expect(scripts.every((path) => removal.test(readFileSync(join(root, path), 'utf8')))).toBe(true)
})

/** The command `rm`, or a sentence that says to delete a file or folder by its path. (`shred` is advised where a key must go.) */
const removal = /\brm (?:-|\$|\/|"|[a-z]+\.)|[dD]elete (?:kubelet\.|\/|all of that)/
