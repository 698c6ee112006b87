import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Config } from '@oclif/core'
import { expect, onTestFinished, test } from 'vitest'
import { kcert } from './program.ts'

test('--version prints the version of package.json', () => {
  expect(kcert(['--version'])).toMatchObject({
    stdout: expect.stringMatching(/^kcert\/\d+\.\d+\.\d+ /),
    stderr: '',
    exit: 0,
  })
})

test('prints the list of commands for a bare kcert, help and --help', () => {
  const [bare, word, flag] = [kcert([]), kcert(['help']), kcert(['--help'])]
  expect(bare.stdout).toContain('inspect')
  expect(word).toEqual(flag)
  expect(bare).toEqual(flag)
  expect(flag.exit).toBe(0)
})

test('every command has a summary of at most 80 characters, exit codes and at least three examples in --help', async () => {
  const { commands } = await Config.load({ root: process.cwd() })
  expect(commands.length).toBeGreaterThan(0)
  for (const { id, summary, examples = [] } of commands) {
    // The first line of the help is not wrapped.
    expect(summary?.length, id).toBeLessThanOrEqual(80)
    const { stdout, exit } = kcert([...id.split(':'), '--help'])
    expect(exit, id).toBe(0)
    expect(stdout, id).toMatch(/^EXIT CODES\n {2}0 {2}/m)
    expect(examples.length, id).toBeGreaterThanOrEqual(3)
    expect(stdout, id).toContain('EXAMPLES')
  }
})

test('suggests the nearest command for an unknown one and exits with 2', () => {
  expect(kcert(['inspct', 'x'])).toEqual({
    stdout: '',
    stderr:
      'KCERT_USAGE: unknown command "inspct x"\nwhy: did you mean "inspect"?\nnext: kcert inspect --help\n',
    exit: 2,
  })
})

test.each([
  [['key', 'gen'], 'unknown command "key gen"', 'key generate'],
  [['ca', 'inti', '--cn', 'x'], 'unknown command "ca inti x"', 'ca init'],
  [['key:generate', '--out', 'k'], 'unknown command "key:generate k"', 'key generate'],
  [['--no-color', 'inspect', 'x'], 'flag --no-color is before the command', 'inspect'],
])('%j is wrong usage and suggests the intended command', (args, message, near) => {
  const { stdout, stderr, exit } = kcert(args)
  expect([stdout, exit]).toEqual(['', 2])
  expect(stderr).toContain(`KCERT_USAGE: ${message}\n`)
  expect(stderr).toContain(`next: kcert ${near} --help\n`)
})

test('rejects an unknown flag as wrong usage, with the help command', () => {
  expect(kcert(['inspect', '--frobnicate'])).toEqual({
    stdout: '',
    stderr: 'KCERT_USAGE: unknown flag: --frobnicate\nnext: kcert inspect --help\n',
    exit: 2,
  })
})

const olderNode = ['/usr/bin/node', '/usr/local/bin/node'].find((path) => {
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return /^v(1\d|2[0-3])\./.test(stdout ?? '')
})

test.skipIf(olderNode === undefined)(
  'an older Node prints the required version, before anything is imported',
  () => {
    const run = spawnSync(olderNode!, ['bin/run.js', 'inspect', 'examples/kubelet.kubeconfig'], {
      encoding: 'utf8',
    })
    expect(run.status).toBe(2)
    expect(run.stdout).toBe('')
    expect(run.stderr).toMatch(/^KCERT_NODE_TOO_OLD: .*\nwhy: .*\nnext: .*\n$/)
  },
)

test('caches compiled code in a private folder of the user, not where others can write, and not in a missing home', () => {
  const home = mkdtempSync(join(tmpdir(), 'kcert-home-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  expect(kcert(['inspect', 'examples/kubelet.kubeconfig'], { env: { HOME: home } }).exit).toBe(3)
  const kept = join(home, '.cache/kcert')
  const [code = ''] = readdirSync(kept).filter((name) => name.startsWith('commands.inspect.js-'))
  const damaged = readFileSync(join(kept, code)).fill(0, 100_000, 200_000)
  writeFileSync(join(kept, code), damaged)
  // V8 itself would crash on it.
  expect(kcert(['inspect', 'examples/kubelet.kubeconfig'], { env: { HOME: home } }).exit).toBe(3)
  expect(readFileSync(join(kept, code)).equals(damaged)).toBe(false)

  const absent = join(home, 'absent')
  expect(kcert(['inspect', 'examples/kubelet.kubeconfig'], { env: { HOME: absent } }).exit).toBe(3)
  expect(existsSync(absent)).toBe(false)

  const shared = mkdtempSync(join(tmpdir(), 'kcert-shared-'))
  onTestFinished(() => rmSync(shared, { recursive: true }))
  spawnSync('sh', ['-c', `mkdir -m 0777 ${shared}/kcert && chmod 0777 ${shared}/kcert`])
  expect(kcert(['inspect', 'examples/kubelet.kubeconfig'], { env: { XDG_CACHE_HOME: shared } }).exit).toBe(3)
  expect(readdirSync(join(shared, 'kcert'))).toEqual([])
})

test.runIf(process.getuid?.() === 0)('no compiled code is cached below what another user can change', () => {
  const stranger = 65534
  const base = mkdtempSync(join(tmpdir(), 'kcert-cache-'))
  onTestFinished(() => rmSync(base, { recursive: true }))
  const home = join(base, 'home')
  const open = join(base, 'open')
  mkdirSync(home)
  mkdirSync(open)
  chownSync(home, stranger, stranger)
  chmodSync(open, 0o777)
  for (const env of [{ HOME: home }, { XDG_CACHE_HOME: home }, { XDG_CACHE_HOME: open }]) {
    expect(kcert(['inspect', 'examples/kubelet.kubeconfig'], { env }).exit).toBe(3)
    expect([...readdirSync(home), ...readdirSync(open)]).toEqual([])
  }
  // The cache of an earlier run, in another user's home.
  mkdirSync(join(home, '.cache'))
  chownSync(join(home, '.cache'), stranger, stranger)
  mkdirSync(join(home, '.cache/kcert'), { mode: 0o700 })
  expect(kcert(['inspect', 'examples/kubelet.kubeconfig'], { env: { HOME: home } }).exit).toBe(3)
  expect(readdirSync(join(home, '.cache/kcert'))).toEqual([])
})

test.runIf(process.getuid?.() === 0)("compiled code that is not the caller's own is not used", () => {
  const home = mkdtempSync(join(tmpdir(), 'kcert-home-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  const inspect = () => kcert(['inspect', 'examples/kubelet.kubeconfig'], { env: { HOME: home } }).exit
  expect(inspect()).toBe(3)
  const kept = join(home, '.cache/kcert')
  const path = join(kept, readdirSync(kept).find((name) => name.startsWith('commands.inspect.js-'))!)
  const change: [string, () => void][] = [
    ['another owner', () => chownSync(path, 65534, 0)],
    ['writable by everyone', () => chmodSync(path, 0o666)],
    [
      'a symbolic link',
      () => {
        renameSync(path, join(home, 'code'))
        symlinkSync(join(home, 'code'), path)
      },
    ],
  ]
  for (const [what, act] of change) {
    const { ino } = statSync(path)
    expect(inspect()).toBe(3)
    expect(statSync(path).ino, 'what is used is not written again').toBe(ino)
    act()
    expect(inspect()).toBe(3)
    const { uid, mode, ino: now } = lstatSync(path)
    expect([uid, mode & 0o7777, lstatSync(path).isFile(), now === ino], what).toEqual([
      process.getuid?.(),
      0o600,
      true,
      false,
    ])
  }
})

test('works without a cache folder if none can be created', () => {
  const run = spawnSync(process.execPath, ['bin/run.js', 'inspect', 'examples/kubelet.kubeconfig'], {
    env: { PATH: process.env.PATH, HOME: '/nonexistent', XDG_CACHE_HOME: '/proc' },
    timeout: 120_000,
  })
  expect(run.status).toBe(3)
})

test('help fits the width of the terminal, keeps tables and code unchanged, and wraps no command', () => {
  const help = kcert(['ca', 'sign', '--help']).stdout
  expect(help).toContain(
    '\n      default:\n        usages: [digital signature, key encipherment, server auth]\n',
  )
  expect(help).toContain('--usage "digital signature" --usage "server auth" --out server.crt\n')
  const prose = help.split('\n').filter((line) => !line.startsWith('    $ '))
  expect(Math.max(...prose.map((line) => line.length))).toBeLessThanOrEqual(80)
  expect(kcert(['csr', 'create', '--help']).stdout).toContain(`
  cfssl       {"csr", "key"} for cfssljson -bare. It contains the private key,
              so it needs --out FILE (mode 0600) or --key-out -. With --key or
              --key-out FILE it has no "key"
`)
  expect(kcert(['ca', 'init', '--help']).stdout).toContain('USAGE\n  $ kcert ca init --out FILE [FLAGS]\n')
})

test('every topic has a description in the list of commands', async () => {
  const { topics } = await Config.load({ root: process.cwd() })
  expect(topics.length).toBeGreaterThan(0)
  for (const { name, description } of topics) expect(description, name).toMatch(/\w.*\.$/)
})
