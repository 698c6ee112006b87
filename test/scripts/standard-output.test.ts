import { spawn, spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { folder, folderWithCa, opensslRequest } from './ca-files.ts'

// Standard output that cannot be written (/dev/full is a full disk), and readers that close the pipe.

const program = resolve('bin/run.js')
const env = { PATH: process.env.PATH, HOME: '/nonexistent' }

function intoFull(args: readonly string[], at: string, stream: 'stdout' | 'stderr' = 'stdout') {
  const full = openSync('/dev/full', 'w')
  try {
    const stdio = stream === 'stdout' ? ['ignore', full, 'pipe'] : ['ignore', 'pipe', full]
    return spawnSync(process.execPath, [program, ...args], {
      cwd: at,
      env,
      encoding: 'utf8',
      stdio: stdio as [],
    })
  } finally {
    closeSync(full)
  }
}

const signingCa = ['--ca', 'ca.pem', '--ca-key', 'ca-key.pem']
const hasFull = existsSync('/dev/full')

test.skipIf(!hasFull).each([
  [['--help'], ''],
  [['--version'], ''],
  [['csr', 'check', '--help'], ''],
  [['inspect', 'ca.pem'], ''],
  [['inspect', 'ca.pem', '-o', 'json'], ''],
  [['verify', 'ca.pem', '--roots', 'ca.pem'], ''],
  [['key', 'generate', '--out', '-'], ''],
  [['key', 'generate', '--out', 'new.pem'], '; completed changes stay: new.pem is written'],
  [
    ['ca', 'init', '--cn', 'x', '--out', 'new.pem', '--key-out', 'new.key'],
    '; completed changes stay: new.issuance-log.jsonl has a new line, new.key is written, new.pem is written',
  ],
  [
    ['ca', 'sign', 'a.csr', ...signingCa, '--profile', 'server', '--out', '-'],
    '; completed changes stay: ca.issuance-log.jsonl has a new line',
  ],
  [
    ['csr', 'create', '--user', 'ann', '--key-out', 'ann.key'],
    '; completed changes stay: ann.key is written',
  ],
])(
  '%j on a full disk reports that standard output was not written, and which changes were made',
  (args, stands) => {
    const at = folderWithCa()
    opensslRequest(at, 'a', '-addext', 'subjectAltName=DNS:a.example.com')
    const { status, stderr } = intoFull(args, at)
    expect(stderr).toBe(
      `KCERT_FILE_NOT_WRITTEN: standard output could not be written\nwhy: ENOSPC: no space left on device, write${stands}\nfix: check where it goes, and the free disk space there\nnext: df\n`,
    )
    expect(status).toBe(4)
  },
)

test.skipIf(!hasFull)(
  'a monitoring plugin without standard output reports why on standard error, and does not exit with OK',
  () => {
    const { status, stderr } = intoFull(['inspect', 'absent.pem', '-o', 'nagios'], folder())
    expect(stderr).toMatch(/^KCERT_FILE_NOT_FOUND: absent.pem does not exist\n/)
    expect(status).toBe(2)
  },
)

test.skipIf(!hasFull).each([
  [['ca', 'init', '--cfssl', 's.json', '--out', 'x.pem'], 2],
  [['inspct'], 2],
  [['inspect', 'ca.pem'], 0],
])('%j continues, and keeps its exit code, when standard error cannot be written', (args, exit) => {
  expect(intoFull(args, folderWithCa(), 'stderr').status).toBe(exit)
})

test('ends quietly when the reader closes the pipe, and a watch with its next frame', async () => {
  const at = folderWithCa()
  for (const args of [
    ['inspect', 'ca.pem'],
    ['inspect', 'ca.pem', '--watch', '--every', '0.1s'],
    ['--help'],
  ]) {
    const child = spawn(process.execPath, [program, ...args], { cwd: at, env })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.stdout.once('data', () => child.stdout.destroy())
    const exit = await new Promise((done) => child.once('close', done))
    expect([exit, stderr]).toEqual([0, ''])
  }
})
