import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { answersFor } from '../../src/completion/answers.ts'
import { completionTree, type Manifest } from '../../src/completion/tree.ts'
import { labKubectl } from './lab-kubectl.ts'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { hasTmux, Terminal } from './tmux.ts'

// The completion of every shell, in the shell itself. All shells complete the same lines with the same words.

const at = temporaryFolder('completion')
const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as Manifest
const { oclif } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  oclif: { topics: Record<string, { description: string }> }
}
const tree = completionTree({ commands }, oclif.topics)
const isThere = (program: string): boolean => spawnSync(program, ['--version']).status === 0

beforeAll(() => {
  mkdirSync(join(at, 'pki'))
  writeFileSync(join(at, 'pki.pem'), '')
  writeFileSync(join(at, 'with space.pem'), '')
  for (const shell of ['bash', 'zsh', 'fish'])
    writeFileSync(join(at, `completion.${shell}`), kcert(['completion', shell]).stdout)
})

/** The words after "kcert", of which the last is being typed, and the offered completions, including files of the folder. */
const lines: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ['insp', ['inspect']],
  ['rotate-ca re', ['recover']],
  [
    'csr ',
    ['approve', 'check', 'create', 'deny', 'describe', 'explain', 'fetch', 'list', 'request', 'submit'],
  ],
  ['csr list --sig', ['--signer']],
  ['inspect -o js', ['json', 'jsonpath']],
  ['inspect --output ya', ['yaml']],
  ['verify pki.pem --purpose ', ['any', 'client', 'server']],
  ['inspect pki.p', ['pki.pem']],
  ['inspect --password-file pki.p', ['pki.pem']],
  ['csr list --signer ', []],
  ['token list x', []],
  ['completion z', ['zsh']],
]

const plain = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t')[0]!.trim())
    .sort()

test.each(lines)('the words of "kcert %s"', (line, offered) => {
  const answers = answersFor(line.split(' '), tree)
  const typed = line.split(' ').at(-1)!
  const files =
    answers.also === 'file' ? ['pki.pem', 'with space.pem'].filter((name) => name.startsWith(typed)) : []
  expect([...answers.words.map(([word]) => word), ...files].sort()).toEqual(offered)
})

test('completes every command, and every flag that its help shows', () => {
  for (const [id, { flags }] of Object.entries(commands)) {
    const words = id.split(':')
    expect(answersFor(words, tree).words.map(([word]) => word)).toContain(words.at(-1))
    const offered = answersFor([...words, '--'], tree).words.map(([word]) => word)
    for (const { name, hidden } of Object.values(flags)) if (!hidden) expect(offered).toContain(`--${name}`)
  }
})

test('completes after a value, after "--" and inside --flag=value', () => {
  const words = (...line: string[]): string[] => answersFor(line, tree).words.map(([word]) => word)
  expect(words('inspect', '-o', 'json', '--wa')).toEqual(['--warn', '--watch'])
  expect(words('inspect', '--output=pro')).toEqual(['prometheus'])
  expect(answersFor(['inspect', '--', '-'], tree)).toEqual({ words: [], also: 'file' })
  expect(answersFor(['rotate-ca', 'runbook', ''], tree).also).toBe('folder')
})

test('rejects another shell as wrong usage', () => {
  const { exit, stderr } = kcert(['completion', 'powershell'])
  expect(exit).toBe(2)
  expect(stderr).toContain('bash, zsh, fish')
})

test.each(lines)('bash offers the words of "kcert %s"', (line, offered) => {
  const words = ['kcert', ...line.split(' ')].map((word) => `'${word}'`).join(' ')
  const script = `source ./completion.bash; COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _kcert; printf '%s\\n' "\${COMPREPLY[@]}"`
  const run = spawnSync('bash', ['--norc', '-c', script], { cwd: at, encoding: 'utf8' })
  expect(run.stderr.replaceAll(/.*compopt: not currently executing.*\n/g, '')).toBe('')
  expect(plain(run.stdout)).toEqual(offered)
})

test('bash splits --flag=value', () => {
  const script =
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own
    'source ./completion.bash; COMP_WORDS=(kcert inspect --output = wi); COMP_CWORD=4; _kcert; printf \'%s\\n\' "${COMPREPLY[@]}"'
  expect(execFileSync('bash', ['--norc', '-c', script], { cwd: at, encoding: 'utf8' })).toBe('wide\n')
})

describe.skipIf(!isThere('fish'))('fish (skipped where it is not installed)', () => {
  test('offers the same words', () => {
    const script = [
      'source ./completion.fish',
      ...lines.map(([line]) => `echo '=='; complete -C ${JSON.stringify(`kcert ${line}`)}`),
    ].join('\n')
    const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', script], { cwd: at, encoding: 'utf8' })
    expect(stderr).toBe('')
    const answers = stdout.split('==\n').slice(1).map(plain)
    expect(answers).toEqual(lines.map(([, offered]) => offered))
  })
})

describe.skipIf(!isThere('zsh'))('zsh (skipped where it is not installed)', () => {
  // zsh's own processing of the completions is left out here, because it works only in its line editor.
  const offers = `_describe() { print -rl -- "\${(@P)\${@[-1]}%%:*}"; }
compadd() { shift; print -rl -- "$@"; }
_files() { if [[ "$1" == -/ ]]; then print -rl -- *(N/); else print -rl -- *.pem(N); fi; }
compset() { :; }
compdef() { :; }
source ./completion.zsh
`

  test.each(lines)('offers the words of "kcert %s"', (line, offered) => {
    const words = ['kcert', ...line.split(' ')].map((word) => `'${word}'`).join(' ')
    const script = `${offers}words=(${words}); CURRENT=\${#words}; _kcert`
    const { stdout, stderr } = spawnSync('zsh', ['-f', '-c', script], { cwd: at, encoding: 'utf8' })
    expect(stderr).toBe('')
    const typed = line.split(' ').at(-1)!
    expect(plain(stdout).filter((word) => word.startsWith(typed))).toEqual(offered)
  })

  test.skipIf(!hasTmux)('completes the typed word in a terminal (skipped without tmux)', async () => {
    const terminal = new Terminal(100, 'zsh -f -i', at)
    terminal.type('autoload -Uz compinit; compinit -u -D; source ./completion.zsh; echo rea""dy', 'Enter')
    await terminal.shows(/^ready$/m)
    terminal.type('kcert insp', 'Tab', '--wat', 'Tab')
    await terminal.shows(/kcert inspect --watch/)
    terminal.type('C-u', 'kcert rotate-ca ', 'Tab')
    await terminal.shows(/rollback[\s\S]*Show the state of a rotation by phase/)
  })
})

describe('kubectl', () => {
  const bin = join(at, 'bin')

  beforeAll(() => {
    mkdirSync(bin)
    // Linked as by npm.
    for (const [name, file] of Object.entries(binaries())) symlinkSync(resolve(file), join(bin, name))
  })

  function binaries(): Record<string, string> {
    const { bin: its } = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: Record<string, string> }
    for (const file of Object.values(its)) chmodSync(file, 0o755)
    return its
  }

  const path = (): string => [bin, resolve('node_modules/.bin'), process.env.PATH].join(delimiter)

  test('kubectl_complete-kcert prints completions in the format of kubectl', () => {
    const run = (...line: string[]): string =>
      execFileSync(join(bin, 'kubectl_complete-kcert'), line, {
        encoding: 'utf8',
        env: { PATH: path(), HOME: at },
      })
    expect(run('insp')).toBe(
      'inspect\tList certificates, when they expire, and what is wrong with them.\n:4\n',
    )
    expect(run('inspect', '')).toBe(':0\n')
    expect(run('rotate-ca', 'runbook', '')).toBe(':16\n')
    expect(run('inspect', '-o', 'js')).toBe('json\njsonpath\n:4\n')
  })

  test.skipIf(labKubectl === undefined)(
    'the real kubectl runs and completes it (skipped where the lab was never built)',
    () => {
      const run = (...line: string[]): string =>
        execFileSync(labKubectl!, line, {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
          env: { PATH: path(), HOME: at },
        })
      expect(run('kcert', '--version')).toMatch(/^kcert\/\d/)
      expect(run('plugin', 'list')).toContain(join(bin, 'kubectl-kcert'))
      expect(run('__complete', 'kcert', 'rotate-ca', 'st')).toContain('status\t')
      expect(run('__complete', 'kcert', 'inspect', '-o', 'na')).toContain('nagios\n:4')
    },
  )
})
