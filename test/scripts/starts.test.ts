import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { Config } from '@oclif/core'
import { expect, test } from 'vitest'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// bin/run.js starts a known command with only the part of oclif that runs it. Here full oclif also runs the same command lines,
// as it loads any program. Output and exit code must be equal.

const root = process.cwd()
const mark = '\u0000next\u0000'

/** Runs command lines in sequence in one process. Returns the output and exit code of each. */
function runLines(start: string, lines: readonly (readonly string[])[]) {
  const script = join(temporaryFolder('starts'), 'starts.mjs')
  writeFileSync(
    script,
    `import { EventEmitter } from 'node:events'
import { writeSync } from 'node:fs'
// Each command adds listeners to the streams.
EventEmitter.defaultMaxListeners = 0
${start}
for (const line of JSON.parse(process.argv[2])) {
  process.exitCode = 0
  process.argv.length = 2
  await run(line)
  for (const fd of [1, 2]) writeSync(fd, process.exitCode + ${JSON.stringify(mark)})
}
process.exitCode = 0
`,
  )
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, JSON.stringify(lines)], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: '/nonexistent' },
    cwd: root,
    maxBuffer: 1 << 28,
  })
  expect([status, stderr.split(mark).at(-1)]).toEqual([0, ''])
  const [out, err] = [stdout.split(mark), stderr.split(mark)]
  expect(out.length).toBe(lines.length + 1)
  // The second in which a report was created.
  return lines.map((line, index) => ({
    line: line.join(' '),
    stdout: out[index]!.replace(/generatedAt"?: "[^"]+"/, ''),
    stderr: err[index]!,
  }))
}

const quickStart = `import { createRequire } from 'node:module'
import { existsSync, readFileSync } from 'node:fs'
const require = createRequire(${JSON.stringify(`${root}/dist/`)})
const { main } = require('./main.js')
const scripts = {
  has: (name) => existsSync('dist/' + name),
  load: (name) => require('./' + name),
  text: (name) => readFileSync('dist/' + name, 'latin1'),
}
const run = (line) => main(line, scripts, ${JSON.stringify(root)})`

const generalStart = `import { createRequire } from 'node:module'
const { Config } = createRequire(${JSON.stringify(`${root}/`)})('@oclif/core')
const config = await Config.load({ root: ${JSON.stringify(root)} })
const run = async (line) => {
  const words = Math.max(...config.commandIDs.map((id) => id.split(':')).map((id) => id.every((word, i) => word === line[i]) ? id.length : 0))
  await config.runCommand(line.slice(0, words).join(':'), line.slice(words))
}`

const file = 'examples/kubelet.kubeconfig'

test('both starts give the same output for every command, valid or not', async () => {
  const { commandIDs } = await Config.load({ root })
  const wrong = commandIDs.flatMap((id) => [
    [...id.split(':'), '--no-such-flag'],
    [...id.split(':'), '--no-color', '--no-such-flag', 'x', 'y'],
    [...id.split(':'), '--output=nothing-of-the-kind'],
  ])
  const at = ['--at', '2025-01-01T00:00:00Z']
  const lines = [
    ...wrong,
    ['inspect', file, ...at],
    ['inspect', file, '-o', 'json', ...at],
    ['inspect', '-o=wide', ...at, '--', file],
    ['inspect', file, '--only', 'expired,ca', '-oyaml', ...at],
    ['inspect', file, '-o', 'nagios', ...at],
    ['inspect', file, '--warn'],
    ['inspect', file, '--warn', 'soon'],
    ['inspect', file, '--every', '5s'],
    ['inspect', '/nowhere/at/all'],
    ['inspect', ''],
    ['verify'],
    ['verify', file, '--roots'],
    ['verify', '/nowhere', '--roots', file],
    ['csr', 'create', '--cn', 'x', '--key', '/nowhere'],
    ['csr', 'approve', 'a', '--concurrency', 'many'],
    ['csr', 'approve', 'a', '--concurrency', '0'],
    ['ca', 'init'],
    ['ca', 'sign', '/nowhere', '--days', '-1'],
    ['key', 'generate', '--algorithm', 'none'],
    ['kubeconfig', 'set-ca', file],
    ['rotate-ca', '--phase', '13'],
    ['rotate-ca', 'plan', '--kubeconfig', '/nowhere'],
    ['token', 'create', '--dry-run', '--ttl', 'x'],
  ]
  const quick = runLines(quickStart, lines)
  expect(quick).toEqual(runLines(generalStart, lines))
  expect(new Set(quick.map(({ stderr }) => stderr)).size).toBeGreaterThan(30)
})

test("the list of commands in the build equals oclif's, on a terminal and in a pipe", () => {
  const general = { OCLIF_COLUMNS: '80' }
  const help = kcert(['--help'], { env: general })
  for (const line of [[], ['--help']]) expect(kcert(line)).toEqual(help)
  expect(kcert(['--version'])).toEqual(kcert(['--version'], { env: general }))
  const onTerminal = (line: string, setting = ''): string => {
    const command = `stty cols 97; ${setting} ${process.execPath} ${resolve('bin/run.js')} ${line}`
    const env = { PATH: process.env.PATH, TERM: 'xterm-256color' }
    return spawnSync('script', ['-qec', command, '/dev/null'], { encoding: 'utf8', env }).stdout
  }
  for (const [line, heading] of [
    ['--help', 'TOPICS'],
    ['rotate-ca --help', 'COMMANDS'],
    ['help ca sign', 'EXIT CODES'],
  ] as const) {
    const quick = onTerminal(line)
    expect(quick, line).toContain(`\x1b[1m${heading}\x1b[22m`)
    expect(quick, line).toBe(onTerminal(line, 'OCLIF_COLUMNS=97'))
  }
})

test("the help of every command equals oclif's, at any width", async () => {
  const { commandIDs } = await Config.load({ root })
  const load = createRequire(`${root}/dist/`)
  const { commandHelp } = load('./cli/command-help.js') as typeof import('../../src/cli/command-help.ts')
  const { plainHelp } = load('./cli/help.js') as typeof import('../../src/cli/help.ts')
  for (const [index, id] of commandIDs.entries()) {
    const entries = readFileSync(`dist/help/${id.replaceAll(':', '/')}.json`, 'utf8')
    for (const width of [80, 40 + 4 * index]) {
      const whole = await plainHelp(root, id.split(':'), width, 'kcert')
      expect(await commandHelp(JSON.parse(entries), width), `${id} at ${width}`).toBe(whole)
    }
  }
})

test.each([
  ['csr', '--help'],
  ['csr', 'list', '--help', '--no-color'],
  ['csr', 'lst', '--help'],
  ['help', 'csr', 'list', 'x'],
])('leaves help that is not for one command to oclif: %s %s %s %s', (...line) => {
  const words = line.filter(Boolean)
  expect(kcert(words)).toEqual(kcert(words, { env: { OCLIF_COLUMNS: '80' } }))
})
