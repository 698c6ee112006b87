import { execFileSync, spawnSync } from 'node:child_process'
import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { kcert } from './program.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'kcert-key-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

const openssl = (...args: string[]) => execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' })

test('generates a key with mode 0600, and reports its type without the key', () => {
  const file = join(folder(), 'key.pem')
  const { stdout, stderr, exit } = kcert(['key', 'generate', '--out', file])
  expect([stderr, exit]).toEqual(['', 0])
  expect(stdout).toMatch(
    /^private key {2}.*\/key\.pem\ntype {9}ECDSA P-256\nformat {7}PKCS#8\npublic key {3}sha256:[0-9a-f]{64}\n$/,
  )
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(openssl('pkey', '-in', file, '-noout', '-text')).toContain('NIST CURVE: P-256')
})

test.each([
  ['RSA-2048', 'pkcs1', 'RSA PRIVATE KEY'],
  ['RSA-3072', 'kubernetes', 'RSA PRIVATE KEY'],
  ['ECDSA-P384', 'sec1', 'EC PRIVATE KEY'],
  ['ECDSA-P521', 'kubernetes', 'EC PRIVATE KEY'],
  ['Ed25519', 'pkcs8', 'PRIVATE KEY'],
  ['ed25519', 'kubernetes', 'PRIVATE KEY'],
])('%s in format %s is %s, which openssl reads', (keyType, format, label) => {
  const file = join(folder(), 'key.pem')
  expect(kcert(['key', 'generate', '--key-type', keyType, '--format', format, '--out', file]).exit).toBe(0)
  expect(readFileSync(file, 'utf8').split('\n')[0]).toBe(`-----BEGIN ${label}-----`)
  openssl('pkey', '-in', file, '-noout', '-check')
})

test.each(['000', '022', '077', '777'])('creates the file with mode 0600 under umask %s', (umask) => {
  const file = join(folder(), 'key.pem')
  const command = `umask ${umask}; exec "${process.execPath}" "${resolve('bin/run.js')}" key generate --out "${file}"`
  const { status } = spawnSync('sh', ['-c', command], {
    env: { PATH: process.env.PATH, HOME: '/nonexistent' },
  })
  expect([status, statSync(file).mode & 0o777]).toEqual([0, 0o600])
})

test('replaces an existing file only with --force, and makes it private to its user', () => {
  const file = join(folder(), 'key.pem')
  writeFileSync(file, 'mine', { mode: 0o644 })
  expect(kcert(['key', 'generate', '--out', file])).toEqual({
    stdout: '',
    stderr: `KCERT_FILE_EXISTS: ${file} exists and is not replaced\nwhy: it may be the only copy\nfix: name another file, or add --force to replace it\n`,
    exit: 5,
  })
  expect(readFileSync(file, 'utf8')).toBe('mine')
  expect(kcert(['key', 'generate', '--out', file, '--force']).exit).toBe(0)
  expect([readFileSync(file, 'utf8').slice(0, 10), statSync(file).mode & 0o777]).toEqual([
    '-----BEGIN',
    0o600,
  ])
})

test.each([[[]], [['--force']]])('writes a key through no link and into no FIFO, with %j', (force) => {
  const at = folder()
  const [link, dangling, fifo, target] = ['link', 'dangling', 'fifo', 'target'].map((name) =>
    join(at, name),
  ) as [string, string, string, string]
  writeFileSync(target, 'theirs')
  symlinkSync(target, link)
  symlinkSync(join(at, 'nowhere'), dangling)
  execFileSync('mkfifo', [fifo])
  for (const path of [link, dangling, fifo]) {
    const before = lstatSync(path).ino
    const { stdout, stderr, exit } = kcert(['key', 'generate', '--out', path, ...force])
    expect([stdout, exit]).toEqual(['', 5])
    expect(stderr).toMatch(/^KCERT_FILE_EXISTS: .*(symbolic link|FIFO)/)
    expect(lstatSync(path).ino).toBe(before)
  }
  expect(readFileSync(target, 'utf8')).toBe('theirs')
  expect(readdirSync(at).sort()).toEqual(['dangling', 'fifo', 'link', 'target'])
})

test('--out - prints only the key; a report never contains it', () => {
  const { stdout, stderr, exit } = kcert(['key', 'generate', '--out', '-'])
  expect([stderr, exit]).toEqual(['', 0])
  expect(stdout).toMatch(/^-----BEGIN PRIVATE KEY-----\n[A-Za-z0-9+/=\n]+-----END PRIVATE KEY-----\n$/)
  const refused = kcert(['key', 'generate', '--out', '-', '-o', 'json'])
  expect(refused).toMatchObject({ stdout: '', exit: 5, stderr: expect.stringContaining('KCERT_KEY_EXPOSED') })
  const report = kcert(['key', 'generate', '--out', join(folder(), 'k'), '-o', 'json'])
  expect(report.stdout).not.toContain('PRIVATE')
  expect(JSON.parse(report.stdout)).toMatchObject({ kind: 'GeneratedKey', format: 'pkcs8', encrypted: false })
})

test('opens an encrypted key with the password, the first line of its file', () => {
  const at = folder()
  const [file, password] = [join(at, 'key.pem'), join(at, 'password')]
  writeFileSync(password, 'käse mit brot\r\nnot this\n')
  const { stderr, exit } = kcert(['key', 'generate', '--out', file, '--password-file', password])
  expect([exit, stderr]).toEqual([
    0,
    expect.stringMatching(/^note: Kubernetes components do not read encrypted keys/),
  ])
  expect(readFileSync(file, 'utf8')).toMatch(/^-----BEGIN ENCRYPTED PRIVATE KEY-----/)
  openssl('pkey', '-in', file, '-passin', 'pass:käse mit brot', '-noout')
  expect(() => openssl('pkey', '-in', file, '-passin', 'pass:kaese', '-noout')).toThrow()
  const byInput = kcert(['key', 'generate', '--out', '-', '--password-file', '-'], { stdin: 'secret' })
  expect(byInput.stdout).toMatch(/^-----BEGIN ENCRYPTED PRIVATE KEY-----/)
})

test.each([
  [[], 2, /^KCERT_USAGE: .*Missing required flag out/s],
  [
    ['--out', '/proc/nowhere/key.pem'],
    4,
    /^KCERT_FILE_NOT_WRITTEN: \/proc\/nowhere\/key\.pem could not be written/,
  ],
  [['--out', 'x', '--key-type', 'RSA-1024'], 2, /^KCERT_USAGE: unsupported key type "RSA-1024"/],
  [
    ['--out', 'x', '--key-type', 'Ed25519', '--format', 'pkcs1'],
    2,
    /^KCERT_USAGE: format pkcs1 does not support ed25519/,
  ],
  [
    ['--out', 'x', '--format', 'sec1', '--password-file', 'package.json'],
    2,
    /^KCERT_USAGE: a key in format sec1 cannot be/,
  ],
  [['--out', 'x', '--password-file', '/dev/null'], 2, /^KCERT_FILE_UNREADABLE: \/dev\/null cannot be read/],
  [['--out', 'x', '--password-file', 'nowhere'], 2, /^KCERT_FILE_NOT_FOUND: nowhere does not exist/],
])('%j exits with %d', (args, exit, stderr) => {
  expect(kcert(['key', 'generate', ...args])).toEqual({
    stdout: '',
    stderr: expect.stringMatching(stderr),
    exit,
  })
})

test('refuses an empty password', () => {
  const { stderr, exit } = kcert(['key', 'generate', '--out', '-', '--password-file', '-'], { stdin: '\nx' })
  expect([exit, stderr]).toEqual([
    2,
    expect.stringContaining('the first line of the password file standard input is empty'),
  ])
})
