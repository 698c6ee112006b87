import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { issueRoot } from '../../src/ca/root.ts'
import { generatePrivateKey } from '../../src/x509/new-key.ts'
import { writePem } from '../../src/x509/pem.ts'
import {
  certificateIn,
  folder,
  folderWithCa,
  inFolder,
  issuanceLogIn,
  openssl,
  opensslAccepts,
  opensslRequest,
} from './ca-files.ts'

const modeOf = (at: string, name: string) => statSync(join(at, name)).mode & 0o777
const init = ['ca', 'init', '--out', 'ca.pem', '--key-out', 'ca-key.pem']

// `cfssl gencert -initca` of the Kubernetes documentation (managing-tls-in-a-cluster).
const cfsslRequest = JSON.stringify({ CN: 'My Example Signer', key: { algo: 'rsa', size: 2048 } })

test("creates the CA of the documentation's cfssl request, from standard input", () => {
  const at = folder()
  const { stdout, stderr, exit } = inFolder(at)([...init, '--cfssl', '-'], cfsslRequest)
  expect([stderr, exit]).toEqual(['', 0])
  expect(stdout).toMatch(/^CA created {4}CN=My Example Signer\n/)
  const ca = certificateIn(at, 'ca.pem')
  expect([ca.subject.text, ca.publicKey.bits, ca.isCa, ca.keyUsage]).toEqual([
    'CN=My Example Signer',
    2048,
    true,
    ['keyCertSign', 'cRLSign'],
  ])
  expect((ca.notAfter.getTime() - ca.notBefore.getTime()) / 3_600_000).toBe(43_800)
  expect([modeOf(at, 'ca.pem'), modeOf(at, 'ca-key.pem'), modeOf(at, 'ca.issuance-log.jsonl')]).toEqual([
    0o644, 0o600, 0o600,
  ])
  expect(opensslAccepts(at, 'ca.pem', 'ca.pem')).toBe(true)
  expect(issuanceLogIn(at)).toMatchObject([
    { serialNumber: ca.serialNumber, subject: 'CN=My Example Signer' },
  ])
})

test("follows cfssl's names, ca.expiry and pathlen, and reports the fields that it ignores", () => {
  const at = folder()
  const request = {
    CN: 'x',
    hosts: ['ca.example.com'],
    names: [{ C: 'DE', O: 'Example Ltd', OU: 'IT', L: 'Berlin', ST: 'Berlin' }],
    key: { algo: 'ecdsa', size: 384 },
    ca: { expiry: '87600h', pathlen: 1 },
    crl_url: 'http://example.com/crl',
  }
  writeFileSync(join(at, 'ca.json'), JSON.stringify(request))
  const { stderr, exit } = inFolder(at)([...init, '--cfssl', 'ca.json'])
  expect([exit, stderr.split('\n')]).toEqual([
    0,
    [
      'note: hosts left out, because a CA certificate has no SANs: ca.example.com',
      'note: "crl_url" of ca.json is ignored',
      '',
    ],
  ])
  const ca = certificateIn(at, 'ca.pem')
  expect(ca.subject.text).toBe('CN=x,OU=IT,O=Example Ltd,L=Berlin,ST=Berlin,C=DE')
  expect([ca.basicConstraints, ca.publicKey.curve]).toEqual([{ ca: true, pathLength: 1 }, 'P-384'])
  expect((ca.notAfter.getTime() - ca.notBefore.getTime()) / 3_600_000).toBe(87_600)
})

test('creates a CA of ten years from flags; --days and --expiry set another validity', () => {
  const at = folderWithCa('--org', 'Example Ltd', '--key-type', 'Ed25519', '--path-length', '0')
  const ca = certificateIn(at, 'ca.pem')
  expect([ca.subject.text, ca.publicKey.algorithm, ca.basicConstraints]).toEqual([
    'CN=signer,O=Example Ltd',
    'Ed25519',
    { ca: true, pathLength: 0 },
  ])
  const days = (file: string) => {
    const { notBefore, notAfter } = certificateIn(at, file)
    return (notAfter.getTime() - notBefore.getTime()) / 86_400_000
  }
  expect(days('ca.pem')).toBe(3650)
  for (const [flags, want] of [
    [['--days', '30'], 30],
    [['--expiry', '72h'], 3],
  ] as const) {
    inFolder(at)(['ca', 'init', '--cn', 'b', '--key', 'ca-key.pem', '--out', 'b.pem', '--force', ...flags])
    expect(days('b.pem')).toBe(want)
    expect(certificateIn(at, 'b.pem').publicKey.sha256).toBe(ca.publicKey.sha256)
  }
})

test('does not overwrite existing files', () => {
  for (const there of ['ca.pem', 'ca-key.pem']) {
    const at = folder()
    writeFileSync(join(at, there), 'mine')
    const { exit, stderr } = inFolder(at)([...init, '--cn', 'x'])
    expect([exit, stderr]).toEqual([5, expect.stringContaining(`${there} exists and is not replaced`)])
    expect(readdirSync(at)).toEqual([there])
    expect(inFolder(at)([...init, '--cn', 'x', '--force']).exit).toBe(0)
    expect(inFolder(at)(['ca', 'renew', '--ca', 'ca.pem', '--ca-key', 'ca-key.pem']).exit).toBe(0)
  }
})

test('completes files that a crash left half written before it uses the CA', () => {
  const at = folderWithCa()
  const pem = readFileSync(join(at, 'ca.pem'), 'utf8')
  const key = readFileSync(join(at, 'ca-key.pem'))
  const keySha256 = execFileSync('sha256sum', { input: key, encoding: 'utf8' }).slice(0, 64)
  writeFileSync(
    join(at, '.ca.pem.pair.kcert-tmp'),
    JSON.stringify({ certificate: pem, keyPath: join(at, 'ca-key.pem'), keySha256 }),
  )
  writeFileSync(join(at, 'ca.pem'), 'the certificate of another key')
  opensslRequest(at, 'a')
  const sign = [
    'ca',
    'sign',
    'a.csr',
    '--ca',
    'ca.pem',
    '--ca-key',
    'ca-key.pem',
    '--profile',
    'client',
    '--out',
    'a.crt',
  ]
  expect(inFolder(at)(sign).exit).toBe(0)
  expect(readFileSync(join(at, 'ca.pem'), 'utf8')).toBe(pem)
  expect(readdirSync(at).filter((name) => name.startsWith('.'))).toEqual([])
})

test('--out - and --key-out - print only PEM', () => {
  const at = folder()
  const { stdout, exit } = inFolder(at)(['ca', 'init', '--cn', 'x', '--out', '-', '--key-out', '-'])
  expect([exit, readdirSync(at)]).toEqual([0, []])
  expect(stdout.match(/-----BEGIN [A-Z ]+-----/g)).toEqual([
    '-----BEGIN PRIVATE KEY-----',
    '-----BEGIN CERTIFICATE-----',
  ])
  writeFileSync(join(at, 'both.pem'), stdout)
  expect(opensslAccepts(at, 'both.pem', 'both.pem')).toBe(true)
  const report = inFolder(at)(['ca', 'init', '--cn', 'x', '--out', 'c', '--key-out', '-', '-o', 'json'])
  expect(report).toMatchObject({ exit: 5, stdout: '', stderr: expect.stringContaining('KCERT_KEY_EXPOSED') })
})

test('signs with an encrypted CA key only if it has the password', () => {
  const at = folder()
  writeFileSync(join(at, 'pw'), 'secret\n')
  writeFileSync(join(at, 'wrong'), 'geheim\n')
  opensslRequest(at, 'a')
  const run = inFolder(at)
  expect(run([...init, '--cn', 'x', '--password-file', 'pw']).exit).toBe(0)
  const sign = [
    'ca',
    'sign',
    'a.csr',
    '--ca',
    'ca.pem',
    '--ca-key',
    'ca-key.pem',
    '--profile',
    'client',
    '--out',
    'a.crt',
  ]
  expect(run(sign)).toMatchObject({
    exit: 2,
    stderr: expect.stringMatching(/^KCERT_KEY_ENCRYPTED: .*\n.*--ca-password-file/),
  })
  expect(run([...sign, '--ca-password-file', 'wrong'])).toMatchObject({
    exit: 3,
    stderr: expect.stringContaining('KCERT_PASSWORD_WRONG'),
  })
  expect(run([...sign, '--ca-password-file', 'pw']).exit).toBe(0)
  expect(opensslAccepts(at, 'ca.pem', 'a.crt')).toBe(true)
})

test.each([
  [['--out', 'ca.pem', '--key-out', 'k'], 'KCERT_USAGE: no CA name given'],
  [['--cn', 'x', '--out', 'ca.pem'], 'KCERT_USAGE: --key-out or --key is required'],
  [['--cn', 'x', '--out', 'a', '--key-out', 'a'], 'KCERT_USAGE: --key-out a and --out a are the same file'],
  [
    ['--cn', 'x', '--out', 'a', '--key-out', 'k', '--expiry', '-1h'],
    'KCERT_USAGE: --expiry -1h is not a positive duration',
  ],
  [
    ['--cn', 'x', '--out', 'a', '--key-out', 'k', '--expiry', '1m'],
    'KCERT_USAGE: the CA would be expired from the start',
  ],
  [['--cfssl', 'no.json', '--out', 'a', '--key-out', 'k'], 'KCERT_FILE_NOT_FOUND: no.json does not exist'],
  [
    ['--cfssl', '-', '--out', 'a', '--key-out', 'k'],
    'KCERT_CFSSL_INVALID: the cfssl request is not a JSON object',
  ],
  [['--cfssl', '-', '--cn', 'x', '--out', 'a', '--key-out', 'k'], 'KCERT_USAGE: '],
])('ca init %j is wrong usage and writes nothing', (flags, message) => {
  const at = folder()
  const { stdout, stderr, exit } = inFolder(at)(['ca', 'init', ...flags])
  expect([stdout, exit, stderr]).toEqual(['', 2, expect.stringContaining(message)])
  expect(readdirSync(at)).toEqual([])
})

test('existing certificates chain to a renewed CA; the old one is kept as a backup, and nothing is revoked', () => {
  const at = folderWithCa('--days', '30')
  const run = inFolder(at)
  opensslRequest(at, 'a')
  run([
    'ca',
    'sign',
    'a.csr',
    '--ca',
    'ca.pem',
    '--ca-key',
    'ca-key.pem',
    '--profile',
    'server',
    '--out',
    'a.crt',
  ])
  const old = certificateIn(at, 'ca.pem')
  const { stdout, stderr, exit } = run([
    'ca',
    'renew',
    '--ca',
    'ca.pem',
    '--ca-key',
    'ca-key.pem',
    '--days',
    '300',
    '-o',
    'json',
  ])
  expect([exit, stderr]).toEqual([0, ''])
  const report = JSON.parse(stdout) as { files: { backup: string }; notices: string[] }
  expect(report.notices[1]).toMatch(/^nothing is revoked/)

  const renewed = certificateIn(at, 'ca.pem')
  expect([renewed.subject.equals(old.subject), renewed.publicKey.sha256]).toEqual([
    true,
    old.publicKey.sha256,
  ])
  expect(renewed.serialNumber).not.toBe(old.serialNumber)
  expect(renewed.notAfter.getTime()).toBeGreaterThan(old.notAfter.getTime())
  expect(report.files.backup).toMatch(/^ca\.pem\.\d{8}T\d{6}Z\.bak$/)
  expect(certificateIn(at, report.files.backup).equals(old)).toBe(true)
  expect([opensslAccepts(at, 'ca.pem', 'a.crt'), opensslAccepts(at, report.files.backup, 'a.crt')]).toEqual([
    true,
    true,
  ])
  expect(new Set(issuanceLogIn(at).map(({ serialNumber }) => serialNumber)).size).toBe(3)
})

test('writes a renewed CA to another file only if that does not exist, or with --force and a backup', () => {
  const at = folderWithCa()
  const renew = ['ca', 'renew', '--ca', 'ca.pem', '--ca-key', 'ca-key.pem', '--out', 'new.pem']
  const before = readFileSync(join(at, 'ca.pem'), 'utf8')
  expect(inFolder(at)(renew).exit).toBe(0)
  expect(readFileSync(join(at, 'ca.pem'), 'utf8')).toBe(before)
  expect(inFolder(at)(renew).exit).toBe(5)
  expect(inFolder(at)([...renew, '--force']).stdout).toMatch(/^backup {8}new\.pem\.\d{8}T\d{6}Z\.bak$/m)
})

test("renews openssl's CA so that openssl verifies it, and refuses certificates that name the old serial number, as announced", () => {
  const at = folder()
  writeFileSync(
    join(at, 'openssl.cnf'),
    '[v3]\nbasicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid:always,issuer:always\n[leaf]\nauthorityKeyIdentifier=keyid,issuer:always\n[req]\ndistinguished_name=dn\n[dn]\n',
  )
  openssl(
    at,
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    'ca-key.pem',
    '-subj',
    '/CN=easy-rsa',
    '-config',
    'openssl.cnf',
    '-extensions',
    'v3',
    '-days',
    '30',
    '-out',
    'ca.pem',
  )
  opensslRequest(at, 'a')
  openssl(
    at,
    'x509',
    '-req',
    '-in',
    'a.csr',
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca-key.pem',
    '-extfile',
    'openssl.cnf',
    '-extensions',
    'leaf',
    '-out',
    'a.crt',
  )
  opensslRequest(at, 'b')
  const run = inFolder(at)
  run([
    'ca',
    'sign',
    'b.csr',
    '--ca',
    'ca.pem',
    '--ca-key',
    'ca-key.pem',
    '--profile',
    'server',
    '--out',
    'b.crt',
  ])
  const accepted = () =>
    ['a.crt', 'b.crt', 'ca.pem'].map((file) => {
      try {
        openssl(at, 'verify', '-CAfile', 'ca.pem', file)
        return true
      } catch {
        return false
      }
    })
  expect(accepted()).toEqual([true, true, true])
  const { stderr, exit } = run(['ca', 'renew', '--ca', 'ca.pem', '--ca-key', 'ca-key.pem'])
  expect([exit, stderr]).toEqual([
    0,
    expect.stringContaining('OpenSSL rejects certificates with that serial number'),
  ])
  expect(accepted()).toEqual([false, true, true])
})

test.each([
  ['a leaf', 'a.crt', 'a.key', /^KCERT_CA_UNFIT: a\.crt is not a CA: /],
  ['the key of another', 'ca.pem', 'a.key', /^KCERT_CA_UNFIT: the key a\.key does not match the CA ca\.pem/],
  ['a bundle', 'two.pem', 'ca-key.pem', /^KCERT_CA_UNFIT: two\.pem contains 2 certificates/],
  [
    'a key instead of a certificate',
    'ca-key.pem',
    'ca-key.pem',
    /^KCERT_X509_MALFORMED: ca-key\.pem: no certificate found/,
  ],
  [
    'a certificate instead of a key',
    'ca.pem',
    'ca.pem',
    /^KCERT_X509_MALFORMED: ca\.pem: no private key found/,
  ],
])('%s renews nothing', (_, ca, key, stderr) => {
  const at = folderWithCa()
  opensslRequest(at, 'a')
  const run = inFolder(at)
  run([
    'ca',
    'sign',
    'a.csr',
    '--ca',
    'ca.pem',
    '--ca-key',
    'ca-key.pem',
    '--profile',
    'server',
    '--out',
    'a.crt',
  ])
  writeFileSync(join(at, 'two.pem'), readFileSync(join(at, 'ca.pem'), 'utf8').repeat(2))
  const before = readdirSync(at)
  expect(run(['ca', 'renew', '--ca', ca, '--ca-key', key])).toEqual({
    stdout: '',
    stderr: expect.stringMatching(stderr),
    exit: 3,
  })
  expect(readdirSync(at)).toEqual(before)
})

test('a bundle contains each CA once and in order, on standard output or in a file', () => {
  const at = folderWithCa()
  const run = inFolder(at)
  run(['ca', 'init', '--cn', 'second', '--out', 'second.pem', '--key-out', 'second.key'])
  const [first, second] = ['ca.pem', 'second.pem'].map((name) => readFileSync(join(at, name), 'utf8'))
  expect(run(['ca', 'bundle', 'second.pem', 'ca.pem', 'second.pem'])).toEqual({
    stdout: `${second}${first}`,
    stderr: '',
    exit: 0,
  })
  const { stdout } = run(['ca', 'bundle', '-', 'second.pem', '--out', 'bundle.pem'], first)
  expect(stdout.split('\n').map((line) => line.split(' ')[0])).toEqual([
    'BUNDLE',
    'in',
    'in',
    '',
    'bundle',
    '',
  ])
  expect([readFileSync(join(at, 'bundle.pem'), 'utf8'), modeOf(at, 'bundle.pem')]).toEqual([
    `${first}${second}`,
    0o644,
  ])
  expect(run(['ca', 'bundle', 'ca.pem', '--out', 'bundle.pem']).exit).toBe(5)
  for (const line of [
    ['--force=false', 'ca.pem'],
    ['ca.pem', '--force=false'],
  ])
    expect(run(['ca', 'bundle', ...line, '--out', 'bundle.pem']).exit).toBe(2)
  expect(run(['ca', 'bundle', 'ca.pem', '--out', '--force=false']).exit).toBe(2)
  expect(existsSync(join(at, '--force=false'))).toBe(false)
  expect(run(['ca', 'bundle', 'bundle.pem', 'ca.pem', '--out', 'bundle.pem', '--force']).exit).toBe(0)
  expect(readFileSync(join(at, 'bundle.pem'), 'utf8')).toBe(`${first}${second}`)
})

test('a bundle excludes expired CAs, and reports every CA that it adds', () => {
  const at = folderWithCa()
  const key = generatePrivateKey({ algorithm: 'Ed25519' })
  const expired = issueRoot(
    { subject: { commonName: 'old' }, ttlMs: 86_400_000 },
    key,
    new Date('2020-01-01T00:05:00Z'),
    '01',
  )
  writeFileSync(join(at, 'old.pem'), writePem('CERTIFICATE', expired.der))
  opensslRequest(at, 'a')
  const run = inFolder(at)
  run([
    'ca',
    'sign',
    'a.csr',
    '--ca',
    'ca.pem',
    '--ca-key',
    'ca-key.pem',
    '--profile',
    'server',
    '--out',
    'a.crt',
  ])
  const made = run(['ca', 'bundle', 'old.pem', 'ca.pem'])
  expect(made).toEqual({
    stdout: readFileSync(join(at, 'ca.pem'), 'utf8'),
    stderr: 'note: left out, because it expired at 2020-01-02T00:00:00Z: CN=old (old.pem)\n',
    exit: 0,
  })
  expect(run(['ca', 'bundle', 'ca.pem', 'a.crt'])).toMatchObject({
    stdout: '',
    exit: 3,
    stderr: expect.stringMatching(/a.crt is not a CA.*add --allow-non-ca/s),
  })
  expect(run(['ca', 'bundle', 'ca.pem', 'a.crt', '--allow-non-ca'])).toMatchObject({
    exit: 0,
    stderr: expect.stringContaining('clients trust this certificate itself'),
  })
  expect(run(['ca', 'bundle', 'old.pem'])).toMatchObject({ stdout: '', exit: 3 })
  expect(run(['ca', 'bundle'])).toMatchObject({ stdout: '', exit: 2 })
})

test('writes certificates through a link, because they contain no secret', () => {
  const at = folderWithCa()
  symlinkSync('real.pem', join(at, 'link.pem'))
  writeFileSync(join(at, 'real.pem'), 'old')
  expect(inFolder(at)(['ca', 'bundle', 'ca.pem', '--out', 'link.pem', '--force']).exit).toBe(0)
  expect(readFileSync(join(at, 'real.pem'), 'utf8')).toBe(readFileSync(join(at, 'ca.pem'), 'utf8'))
  expect(existsSync(join(at, 'link.pem'))).toBe(true)
})
