import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { opensslRequest } from './ca-files.ts'
import { kcert, type Session } from './program.ts'
import { tracesOf } from './secret-traces.ts'

// Keys of known bytes are put into every place where a command line can name a file, right or wrong, in every format, with every
// debug switch on. No run may print a part of them.

const at = mkdtempSync(join(tmpdir(), 'kcert-secrets-'))
afterAll(() => rmSync(at, { recursive: true }))
writeFileSync(join(at, 'password'), 'correct horse battery staple\n')
const keys = [
  ['RSA-2048', 'kubernetes'],
  ['RSA-2048', 'encrypted'],
  ['ECDSA-P256', 'pkcs8'],
  ['ECDSA-P256', 'kubernetes'],
  ['ECDSA-P384', 'encrypted'],
  ['Ed25519', 'pkcs8'],
].map(([keyType, format]) => {
  const file = `${keyType}-${format}.key`
  const how = format === 'encrypted' ? ['--password-file', 'password'] : ['--format', format!]
  kcert(['key', 'generate', '--key-type', keyType!, '--out', file, ...how], { cwd: at })
  return { file, encrypted: format === 'encrypted' }
})
const traces = keys.flatMap(({ file, encrypted }) =>
  tracesOf(readFileSync(join(at, file), 'utf8'), encrypted ? 'correct horse battery staple' : undefined),
)

const debug = { DEBUG: '*', OCLIF_DEBUG: '1', NODE_DEBUG: '', KCERT_DEBUG: '1', VERBOSE: '1' }

function leaks({ stdout, stderr }: Session): string[] {
  const shown = stdout + stderr
  return [...traces, 'correct horse'].filter((trace) => shown.includes(trace))
}

test('finds the traces in a printed key', () => {
  const printed = keys.map(({ file }) => ({
    stdout: readFileSync(join(at, file), 'utf8'),
    stderr: '',
    exit: 0,
  }))
  expect(printed.map((session) => leaks(session).length > 0)).toEqual(printed.map(() => true))
})

test.each(keys)('prints no part of $file in any command, wherever it is named', ({ file, encrypted }) => {
  const password = encrypted ? ['--ca-password-file', 'password'] : []
  const ca = `${file}.ca.pem`
  const init = ['ca', 'init', '--cn', 'x', '--key', file, '--out', ca]
  const made = kcert([...init, ...(encrypted ? ['--password-file', 'password'] : [])], {
    cwd: at,
    env: debug,
  })
  expect([made.exit, made.stderr]).toEqual([0, ''])
  if (!readdirSync(at).includes('a.csr')) opensslRequest(at, 'a')

  const pair = ['--ca', ca, '--ca-key', file, ...password]
  const works: string[][] = [
    ['ca', 'sign', 'a.csr', ...pair, '--profile', 'server', '--out', '-'],
    ['ca', 'renew', ...pair, '--out', '-'],
    ['ca', 'bundle', ca, '--out', '-'],
  ]
  const keyAsPassword = ['--ca', ca, '--ca-key', file, '--ca-password-file', file]
  const signWithIt = ['ca', 'sign', 'a.csr', ...keyAsPassword, '--profile', 'server', '--out', '-']
  // A key that needs no password does not read the file.
  if (!encrypted) works.push(signWithIt)
  const fails: string[][] = [
    ...(encrypted ? [signWithIt] : []),
    ['ca', 'sign', file, ...pair, '--profile', 'server', '--out', '-'],
    ['ca', 'sign', 'a.csr', ...pair, '--config', file, '--out', '-'],
    ['ca', 'sign', 'a.csr', ...pair, '--profile', 'server', '--issuance-log', file, '--out', '-'],
    ['ca', 'sign', 'a.csr', '--ca', file, '--ca-key', file, '--profile', 'server', '--out', '-'],
    ['ca', 'sign', 'a.csr', ...pair, '--profile', 'server', '--out', file],
    ['ca', 'renew', ...pair, '--out', file],
    ['ca', 'bundle', file],
    ['ca', 'init', '--cfssl', file, '--out', '-', '--key-out', 'k'],
    ['ca', 'init', '--cn', 'x', '--key', ca, '--out', '-'],
    ['key', 'generate', '--out', file],
    ['key', 'generate', '--out', file, '--no-such-flag'],
  ]
  const before = readFileSync(join(at, file), 'utf8')
  const run = (args: readonly string[]): number | null => {
    const session = kcert(args, { cwd: at, env: debug })
    expect(leaks(session), args.join(' ')).toEqual([])
    return session.exit
  }
  for (const format of ['text', 'json', 'yaml']) {
    for (const args of works) expect(run([...args, '-o', format])).toBe(0)
  }
  for (const args of fails) expect(run(args), args.join(' ')).toBeGreaterThanOrEqual(2)
  expect(readFileSync(join(at, file), 'utf8')).toBe(before)
  const kept = readdirSync(at).filter((name) => !/\.key$|^password$/.test(name))
  for (const name of kept) {
    const session = { stdout: readFileSync(join(at, name), 'latin1'), stderr: '', exit: 0 }
    expect(leaks(session), name).toEqual([])
  }
})
