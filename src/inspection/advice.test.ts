import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

// Scripts that kcert runs in a node's shell, not advice to a reader.
const scripts = ['src/node/node-script.ts', 'src/rotation-io/runbook-script.ts']

test('never advises to remove files: existing files are moved aside, so a failing command loses nothing', () => {
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

/**
 * Finds the command `rm`, or a sentence that says to delete a file or folder by its path. (`shred` is advised for keys that must
 * be destroyed.)
 */
const removal = /\brm (?:-|\$|\/|"|[a-z]+\.)|[dD]elete (?:kubelet\.|\/|all of that)/
