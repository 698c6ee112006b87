import { expect, test } from 'vitest'
import { unquotedCommands } from '../../scripts/command-lines.ts'

// The check that refuses commands of messages that are built without commandLine.

test.each([
  ['const a = `kcert inspect <file>`', 'kcert inspect …'],
  ["const a = 'kcert inspect ' + file", 'kcert inspect '],
  ['const a = `look at it: kubectl get csr <name> -o yaml`', 'look at it: kubectl get csr … -o yaml'],
  ['const a = `<program> x; rm -f <file>`', '… x; rm -f …'],
  ["fail('x', { next: `add <flag> FILE` })", 'add … FILE'],
  ["fail('x', { next: isLong ? 'kcert --help' : `take <name>` })", 'take …'],
  ['const a = { commands: [`see <name>`] }', 'see …'],
  ['const a = other`kcert inspect <file>`', 'kcert inspect …'],
])('refuses %s', (source, text) => {
  expect(unquotedCommands('src/a.ts', `\n${withValues(source)}\n`)).toEqual([`src/a.ts:2: ${text}`])
})

test.each([
  'const a = commandLine`kcert inspect <file>`',
  "fail('x', { next: commandLine`add <argumentVector([flag])> FILE` })",
  "const a = 'kcert inspect FILE'",
  'const a = `<name> of kcert has <count> files`',
])('accepts %s', (source) => {
  expect(unquotedCommands('src/a.ts', withValues(source))).toEqual([])
})

/** A linter takes a placeholder in a string for a mistake, so <value> stands for one here. */
function withValues(source: string): string {
  return source.replace(/<([^>]+)>/g, '$${$1}')
}
