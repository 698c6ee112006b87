import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { printedCommands, proseAdvice, unquotedCommands } from '../../scripts/command-lines.ts'

// The check that refuses commands in messages that are built without commandLine, and sentences after a command. It also checks
// that each program accepts the flags in these commands, even if no test prints the message (test/lab: kubectl and kubeadm).

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

test.each([
  "fail('x', { next: 'name another file' })",
  "fail('x', { next: 'kcert inspect FILE' })",
  "fail('x', { next: a ? 'wait for it' : 'kcert csr list' })",
  "fail('x', { next: other ?? commandLine`on the node: ls -l <path>` })",
])('refuses a next that is not a command: %s', (source) => {
  expect(proseAdvice('src/a.ts', `\n${withValues(source)}\n`)).toHaveLength(1)
})

test.each([
  "fail('x', { next: 'kcert csr list', fix: 'name another file' })",
  "fail('x', { next: '--dry-run' })",
  "fail('x', { next: commandLine`<title> true` })",
  "fail('x', { next: 'old=$(mktemp -d) && mv a b' })",
  "fail('x', { next: '(umask 077; openssl pkey -in a)' })",
])('accepts a next that is a command: %s', (source) => {
  expect(proseAdvice('src/a.ts', withValues(source))).toEqual([])
})

/** A linter reports placeholders in strings, so <value> replaces them here. */
function withValues(source: string): string {
  return source.replace(/<([^>]+)>/g, '$${$1}')
}

/** Values that are unknown before a run are VALUE, also where a subcommand or a flag may be. */
function readMistakes(lines: readonly (readonly string[])[]): (string | null)[] {
  const { stdout, stderr } = spawnSync(process.execPath, ['test/scripts/parse-only.ts', '--each'], {
    input: JSON.stringify(lines),
    encoding: 'utf8',
  })
  expect(stderr).not.toMatch(/^\w*Error/m)
  return JSON.parse(stdout) as (string | null)[]
}

test('kcert accepts every kcert command line that a message can print', () => {
  const commands = printedCommands('kcert').filter(
    ({ at }) => !at.startsWith('src/rotation-io/discovering.ts'),
  )
  expect(commands.length).toBeGreaterThan(150)
  const mistakes = readMistakes(commands.map(({ words }) => words))
  expect(mistakes).toHaveLength(commands.length)
  const reported = commands.flatMap(({ at, words }, index) => {
    const mistake = mistakes[index]
    return mistake === null || mistake?.includes('VALUE') ? [] : `${at}: kcert ${words.join(' ')}: ${mistake}`
  })
  expect(reported).toEqual([])
})

test.each([
  [['inspect', '--frobnicate'], 'Nonexistent flag: --frobnicate'],
  [['cluster-info', 'update'], 'Missing required flag ca'],
  [['verify'], 'Missing 1 required arg'],
  [['csr', 'frobnicate'], 'unknown command "csr frobnicate"'],
  [['csr', 'list', 'a'], 'Unexpected argument: a'],
  [['verify', 'a', '--purpose', 'frobnicate'], 'frobnicate'],
  [['csr', 'approve', 'a', '--force=false'], '--force takes no value'],
] as const)('kcert %j is not read', (words, mistake) => {
  expect(readMistakes([words])).toEqual([expect.stringContaining(mistake)])
})

test('openssl has every command and flag that a message can print', () => {
  const commands = printedCommands('openssl')
  expect(commands.length).toBeGreaterThan(10)
  expect(
    commands.flatMap(({ at, words }) => unknownToOpenssl(words).map((word) => `${at}: ${word}`)),
  ).toEqual([])
})

test('finds a command or flag that openssl does not have', () => {
  expect(unknownToOpenssl(['x509', '-frobnicate', '-noout'])).toEqual(['-frobnicate'])
  expect(unknownToOpenssl(['frobnicate'])).toEqual(['frobnicate'])
})

function unknownToOpenssl([command, ...words]: readonly string[]): string[] {
  const { status, stderr } = spawnSync('openssl', [command!, '-help'], { encoding: 'utf8' })
  if (status !== 0) return [command!]
  const flags = new Set(Array.from(stderr.matchAll(/^ (-[\w-]+)/gm), ([, flag]) => flag))
  const isDigest = (word: string): boolean => /^ -\*/m.test(stderr) && /^-sha\d+$/.test(word)
  return words.filter((word) => word.startsWith('-') && !flags.has(word) && !isDigest(word))
}

// From systemctl(1) and journalctl(1) of Debian 13, and the help of crictl 1.36.
test.each([
  ['systemctl', /^(?:cat|restart|status|list-units --all) \S+$/],
  ['journalctl', /^(?:(?:-u \S+|-n \d+)(?: |$))+$/],
  ['crictl', /^(?:ps(?: -[aq]+)*(?: --name \S+)?|logs (?:\S+|\$\(crictl ps -aq --name \S+ \| head -n 1\)))$/],
])('%s in a message has a known subcommand and known flags', (program, known) => {
  const commands = printedCommands(program).filter(({ words }) => words[0] !== 'VALUE')
  expect(commands.length).toBeGreaterThan(2)
  expect(commands.filter(({ words }) => !known.test(words.join(' ')))).toEqual([])
})
