import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folder, folderWithCa, inFolder, opensslRequest } from './ca-files.ts'

// The outputs of a command must not be its inputs or each other, and only another key may replace a private key.

const signingCa = ['--ca', 'ca.pem', '--ca-key', 'ca-key.pem']
const sign = ['ca', 'sign', 'a.csr', ...signingCa, '--profile', 'server', '--force']

function contentsOf(at: string): Record<string, string> {
  const files = readdirSync(at, { withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(files.map(({ name }) => [name, readFileSync(join(at, name), 'latin1')]))
}

test.each([
  [[...sign, '--out', 'ca-key.pem'], '--out ca-key.pem is also the input --ca-key ca-key.pem'],
  [[...sign, '--out', './ca.pem'], '--out ./ca.pem is also the input --ca ca.pem'],
  [[...sign, '--out', 'link/a.csr'], '--out link/a.csr is also the input REQUEST a.csr'],
  [[...sign, '--out', 'hard.pem'], '--out hard.pem is also the input --ca ca.pem'],
  [
    [...sign, '--out', 'ca.issuance-log.jsonl'],
    '--out ca.issuance-log.jsonl and --issuance-log ca.issuance-log.jsonl are the same',
  ],
  [
    [...sign, '--out', 'x', '--issuance-log', 'ca-key.pem'],
    '--issuance-log ca-key.pem is also the input --ca-key ca-key.pem',
  ],
  [[...sign, '--out', 'a.key'], 'a.key contains a private key and is not replaced'],
  [
    ['ca', 'renew', ...signingCa, '--force', '--out', 'ca-key.pem'],
    '--out ca-key.pem is also the input --ca-key',
  ],
  [
    ['ca', 'renew', ...signingCa, '--force', '--out', 'ca.issuance-log.jsonl'],
    '--out ca.issuance-log.jsonl and --issuance-log ca.issuance-log.jsonl are the same file',
  ],
  [
    ['ca', 'renew', '--ca', 'both.pem', '--ca-key', 'both.pem'],
    'both.pem contains a private key and is not replaced',
  ],
  [
    ['ca', 'bundle', 'ca.pem', '--force', '--out', 'ca-key.pem'],
    'ca-key.pem contains a private key and is not',
  ],
  [['ca', 'bundle', '--out', '', 'ca.pem'], '--out "" is not a file name'],
  [
    ['ca', 'init', '--cn', 'x', '--key', 'ca-key.pem', '--force', '--out', 'ca-key.pem'],
    '--out ca-key.pem is also the input --key ca-key.pem',
  ],
  [
    ['ca', 'init', '--cn', 'x', '--force', '--out', 'new.pem', '--key-out', './new.pem'],
    '--key-out ./new.pem and --out new.pem are the same file',
  ],
  [
    ['ca', 'init', '--cn', 'x', '--force', '--out', 'new.pem', '--key-out', 'link/new.pem'],
    '--key-out link/new.pem and --out new.pem are the same file',
  ],
  [
    ['ca', 'init', '--cfssl', 's.json', '--force', '--out', 'new.pem', '--key-out', 's.json'],
    '--key-out s.json is also the input --cfssl s.json',
  ],
  [
    ['key', 'generate', '--force', '--password-file', 'pw', '--out', 'pw'],
    '--out pw is also the input --password-file',
  ],
  [
    ['csr', 'create', '--cn', 'x', '--key', 'a.key', '--force', '--out', 'a.key'],
    '--out a.key is also the input --key a.key',
  ],
  [
    ['csr', 'create', '--user', 'ann', '--force', '--key-out', './same', '--out', 'same'],
    '--key-out ./same and --out same are the same file',
  ],
  [
    ['csr', 'create', '--user', 'ann', '--key-out', './same', '--out', 'same'],
    '--key-out ./same and --out same are the same file',
  ],
  [
    ['csr', 'create', '--cfssl', 's.json', '--force', '--key-out', 's.json'],
    '--key-out s.json is also the input --cfssl s.json',
  ],
  [
    ['ca', 'sign', '--csr', 'x', ...signingCa, '--force', '--out', 'ca-key.pem'],
    '--out ca-key.pem is also the input --ca-key ca-key.pem',
  ],
  [
    [
      'csr',
      'create',
      '--kubeadm',
      'front-proxy-client',
      '--force',
      '--cert-dir',
      '.',
      '--kubeadm-config',
      'link/front-proxy-client.key',
    ],
    '--cert-dir front-proxy-client.key is also the input --kubeadm-config link/front-proxy-client.key',
  ],
  [['inspect', 'ca.pem', '--output-file', 'ca.pem'], '--output-file ca.pem is also the input TARGET ca.pem'],
  [['inspect', 'ca.pem', '--output-file', 'a.key'], 'a.key contains a private key and is not replaced'],
])('refuses %j and changes no file', (args, message) => {
  const at = folderWithCa()
  opensslRequest(at, 'a')
  symlinkSync('.', join(at, 'link'))
  linkSync(join(at, 'ca.pem'), join(at, 'hard.pem'))
  writeFileSync(join(at, 's.json'), '{"CN":"x"}')
  writeFileSync(join(at, 'front-proxy-client.key'), 'kind: ClusterConfiguration\n')
  writeFileSync(join(at, 'pw'), 'secret\n')
  writeFileSync(
    join(at, 'both.pem'),
    ['ca.pem', 'ca-key.pem'].map((name) => readFileSync(join(at, name))).join(''),
  )
  const before = contentsOf(at)
  const { stdout, stderr, exit } = inFolder(at)(args)
  expect([stdout, stderr]).toEqual(['', expect.stringContaining(message)])
  expect(exit).toBe(stderr.startsWith('KCERT_USAGE') ? 2 : 5)
  expect(contentsOf(at)).toEqual(before)
})

test('a bundle may replace one of its input files, and a key another key, with --force', () => {
  const at = folderWithCa()
  const run = inFolder(at)
  expect(run(['ca', 'bundle', 'ca.pem', '--out', 'ca.pem', '--force']).exit).toBe(0)
  expect(run(['key', 'generate', '--out', 'ca-key.pem', '--force']).exit).toBe(0)
})

test('reads standard input once, and requires --issuance-log for a CA from there', () => {
  const at = folder()
  const run = inFolder(at)
  mkdirSync(join(at, 'empty'))
  const twice = run([
    'ca',
    'sign',
    '-',
    ...signingCa,
    '--ca-password-file',
    '-',
    '--profile',
    'server',
    '--out',
    'x',
  ])
  expect(twice).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining('--ca-password-file and REQUEST cannot both be standard input'),
  })
  const nowhere = run(['ca', 'sign', 'a', '--ca', '-', '--ca-key', 'k', '--profile', 'server', '--out', 'x'])
  expect(nowhere).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining('--issuance-log is required with --ca -'),
  })
  expect(readdirSync(at)).toEqual(['empty'])
})
