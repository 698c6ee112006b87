import { execFileSync } from 'node:child_process'
import { expect, expectTypeOf, test } from 'vitest'
import { argumentVector, type CommandLine, commandLine, embed, fixed } from './command-line.ts'

const hostile = [
  'a;touch INJ;.pem',
  'c; touch INJ #',
  '$(touch INJ)',
  '`touch INJ`',
  "it's; touch INJ",
  "'; touch INJ; '",
  'a\ntouch INJ\n',
  'a\rb\tc\u001b[2J',
  "back\\slash'\n",
  '\u009b31m',
  'a\u202eb\u200bc',
  'e\u0301',
  'a\u2800b',
  'Größe 漢字 😀',
  '',
  '~root',
  '*',
  '{a,b}',
  '!!',
  '&& touch INJ',
  '| touch INJ',
  '> INJ',
]

/** Returns the words of a command line after shell processing. */
function wordsOf(line: string, shell: string): string[] {
  const script = `set -e; ${line}`.replace(/(^|; )show /g, `$1printf '%s\\0' `)
  return execFileSync(shell, ['-c', script], { encoding: 'utf8', cwd: '/' }).split('\0').slice(0, -1)
}

test.each(hostile)('passes %j as one word through the shell', (name) => {
  const line = commandLine`show ${name} --user=${name} ${[name, 'b']}`
  expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{M}\u2800]/u)
  expect(wordsOf(line, 'bash')).toEqual([name, `--user=${name}`, name, 'b'])
  // dash does not support $'...' and passes it as plain text.
  if (!line.includes("$'")) expect(wordsOf(line, 'sh')).toEqual([name, `--user=${name}`, name, 'b'])
})

test.each([
  [commandLine`rm -f ${'-rf'}`, 'rm -f ./-rf'],
  [commandLine`${'-x'}`, './-x'],
  [commandLine`ls ${'=ls'}`, "ls '=ls'"],
  [commandLine`kcert inspect ${['-o', '-']}`, 'kcert inspect ./-o -'],
  [commandLine`kubectl --context ${'-x'} version`, 'kubectl --context -x version'],
  [commandLine`ssh ${'-oProxyCommand=x'}:22`, 'ssh ./-oProxyCommand=x:22'],
])('does not turn a value that begins with "-" into an option: %s', (line, expected) => {
  expect(line).toBe(expected)
})

test('omits an undefined value with the space before it', () => {
  expect(commandLine`kcert inspect ${[]} ${undefined} -o tree`).toBe('kcert inspect -o tree')
  expect(commandLine`kcert csr list ${undefined}`).toBe('kcert csr list')
  expect(commandLine`on the node: ${embed(commandLine``)}kubeadm init`).toBe('on the node: kubeadm init')
})

test('inserts built command lines, fixed words and argument vectors unchanged', () => {
  const inner = commandLine`kcert inspect ${'a b'}`
  expect(commandLine`look at ${fixed('that file')}: ${embed(inner)}`).toBe(
    "look at that file: kcert inspect 'a b'",
  )
  expect(commandLine`kcert csr create ${argumentVector(['--cn', 'a b'])}`).toBe("kcert csr create --cn 'a b'")
})

test('rejects by type a built command as a value and a variable as fixed words', () => {
  const line: CommandLine = commandLine`kcert`
  // @ts-expect-error a built line is embedded
  commandLine`sudo ${line}`
  const name: string = 'x'
  // @ts-expect-error a variable is quoted
  fixed(name)
  // @ts-expect-error only the tag builds one
  const other: CommandLine = 'kcert'
  expectTypeOf(other).toExtend<string>()
})
