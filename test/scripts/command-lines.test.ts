import { expect, test } from 'vitest'
import { unquotedCommands } from '../../scripts/command-lines.ts'

// The check that refuses commands of messages that are built without commandLine, and sentences behind a command.

test.each([
  ['const a = `kcert inspect <file>`', 'kcert inspect …'],
  ["const a = 'kcert inspect ' + file", 'kcert inspect '],
  ['const a = `look at it: kubectl get csr <name> -o yaml`', 'look at it: kubectl get csr … -o yaml'],
  ['const a = `<program> x; rm -f <file>`', '… x; rm -f …'],
  ["fail('x', { next: `add <flag> FILE` })", 'add … FILE'],
  ["fail('x', { next: isLong ? 'kcert --help' : `take <name>` })", 'take …'],
  ['const a = { commands: [`see <name>`] }', 'see …'],
  ['const a = other`kcert inspect <file>`', 'kcert inspect …'],
  ["fail('x', { next: 'kcert csr list, and name it' })", 'kcert csr list, and name it'],
  ["fail('x', { next: 'create one: kcert csr create makes it' })", 'create one: kcert csr create makes it'],
  ["const a = 'kcert csr create makes a request'", 'kcert csr create makes a request'],
  ['const a = commandLine`chmod 600 <path>; then restart it`', 'chmod 600 …; then restart it'],
  ['const a = commandLine`ln -s <a> <b>, and restart the kubelet`', 'ln -s … …, and restart the kubelet'],
])('refuses %s', (source, text) => {
  expect(unquotedCommands('src/a.ts', `\n${withValues(source)}\n`)).toEqual([`src/a.ts:2: ${text}`])
})

test.each([
  'const a = commandLine`kcert inspect <file>`',
  "fail('x', { next: commandLine`add <argumentVector([flag])> FILE` })",
  "const a = 'kcert inspect FILE'",
  'const a = `<name> of kcert has <count> files`',
  "fail('x', { next: 'install it, or correct the command' })",
  "fail('x', { next: 'on the node: journalctl -u kubelet -n 50; ls -l /a' })",
  `const a = commandLine\`old=$(mktemp -d) && mv <a> "$old" && crictl ps -q | xargs -r crictl stop\``,
])('accepts %s', (source) => {
  expect(unquotedCommands('src/a.ts', withValues(source))).toEqual([])
})

/** A linter takes a placeholder in a string for a mistake, so <value> stands for one here. */
function withValues(source: string): string {
  return source.replace(/<([^>]+)>/g, '$${$1}')
}
