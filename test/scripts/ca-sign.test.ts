import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { readCertificates } from '../../src/x509/certificate.ts'
import {
  certificateIn,
  folderWithCa,
  inFolder,
  issuanceLogIn,
  openssl,
  opensslAccepts,
  opensslRequest,
} from './ca-files.ts'

const ca = ['--ca', 'ca.pem', '--ca-key', 'ca-key.pem']

// tls/server-signing-config.json of the Kubernetes documentation.
const signingConfig = JSON.stringify({
  signing: {
    default: {
      usages: ['digital signature', 'key encipherment', 'server auth'],
      expiry: '876000h',
      ca_constraint: { is_ca: false },
    },
  },
})

test("issues a serving certificate from the documentation's request and signing configuration", () => {
  const at = folderWithCa()
  opensslRequest(
    at,
    'server',
    '-addext',
    'subjectAltName=DNS:my-svc.my-namespace.svc.cluster.local,IP:192.0.2.24',
  )
  writeFileSync(join(at, 'config.json'), signingConfig)
  const request = readFileSync(join(at, 'server.csr'))
  const sign = ['ca', 'sign', '-', ...ca, '--config', 'config.json', '--out', 'server.crt']
  const { stdout, stderr, exit } = inFolder(at)(sign, request)
  expect([exit, stderr]).toEqual([
    0,
    expect.stringMatching(/^note: -: the validity is capped at the expiry of the CA: /),
  ])
  expect(stdout).toMatch(/^signed 1 certificate by CN=signer\n/)
  const leaf = certificateIn(at, 'server.crt')
  expect(leaf.subject.text).toBe('CN=server,O=group')
  expect([leaf.keyUsage, leaf.extendedKeyUsage]).toEqual([
    ['digitalSignature', 'keyEncipherment'],
    ['serverAuth'],
  ])
  expect([leaf.subjectAltNames.dns, leaf.subjectAltNames.ip]).toEqual([
    ['my-svc.my-namespace.svc.cluster.local'],
    ['192.0.2.24'],
  ])
  expect(leaf.notAfter).toEqual(certificateIn(at, 'ca.pem').notAfter)
  expect(opensslAccepts(at, 'ca.pem', 'server.crt')).toBe(true)
})

test("signs cfssl's request with SANs by cfssl's configuration if its attributes are allowed", () => {
  const at = folderWithCa()
  const names = [{ C: 'CN', ST: 'Beijing', L: 'Beijing', O: 'Kubernetes', OU: 'Kubernetes-manual' }]
  const cfssl = JSON.stringify({ CN: 'admin', key: { algo: 'ecdsa', size: 256 }, names })
  const create = ['csr', 'create', '--cfssl', '-', '--key-out', 'admin-key.pem', '--out', 'admin.csr']
  expect(inFolder(at)(create, Buffer.from(cfssl)).exit).toBe(0)
  const profiles = { kubernetes: { usages: ['signing', 'key encipherment', 'client auth'], expiry: '8760h' } }
  writeFileSync(
    join(at, 'ca-config.json'),
    JSON.stringify({ signing: { default: { expiry: '8760h' }, profiles } }),
  )
  const config = ['--config', 'ca-config.json', '--profile', 'kubernetes']
  const sign = ['ca', 'sign', 'admin.csr', ...ca, ...config, '--out', 'admin.pem']
  const refused = inFolder(at)(sign)
  expect([refused.exit, refused.stderr]).toEqual([3, expect.stringContaining('KCERT_REQUEST_REFUSED')])
  const [flag] = /--allow-subject-attributes [\w,]+$/m.exec(refused.stderr)!
  expect(flag.split(' ')[1]!.split(',').toSorted()).toEqual(['C', 'L', 'OU', 'ST'])
  expect(inFolder(at)([...sign, ...flag.split(' ')]).exit).toBe(0)
  expect(certificateIn(at, 'admin.pem').subject.text).toBe(
    'CN=admin,OU=Kubernetes-manual,O=Kubernetes,L=Beijing,ST=Beijing,C=CN',
  )
  const unknown = inFolder(at)([...sign, '--force', '--allow-subject-attributes', 'emailAddress'])
  expect([unknown.exit, unknown.stderr]).toEqual([
    2,
    expect.stringContaining('invalid subject attribute "emailAddress"'),
  ])
})

test('takes usages and duration from flags, and notes that requested extensions are left out', () => {
  const at = folderWithCa()
  opensslRequest(at, 'a', '-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=keyCertSign')
  const usages = ['--usage', 'client auth', '--usage', 'digital signature,key encipherment']
  const { stdout, stderr, exit } = inFolder(at)([
    'ca',
    'sign',
    'a.csr',
    ...ca,
    ...usages,
    '--duration',
    '1h',
    '--out',
    'a.crt',
    '-o',
    'json',
  ])
  expect([exit, stderr]).toEqual([0, ''])
  const leaf = certificateIn(at, 'a.crt')
  const [signed] = (JSON.parse(stdout) as { certificates: Record<string, unknown>[] }).certificates
  expect(signed).toMatchObject({
    source: 'a.csr',
    entry: '',
    subject: 'CN=a,O=group',
    isCa: false,
    serialNumber: leaf.serialNumber,
    keyUsage: ['digitalSignature', 'keyEncipherment'],
    extendedKeyUsage: ['clientAuth'],
    droppedExtensions: ['basicConstraints', 'keyUsage'],
    notices: ['requested extensions left out: basicConstraints'],
    pem: readFileSync(join(at, 'a.crt'), 'utf8'),
  })
  // Valid from 5 minutes ago, for one hour.
  expect((leaf.notAfter.getTime() - leaf.notBefore.getTime()) / 60_000).toBe(65)
  expect([leaf.isCa, leaf.keyUsage]).toEqual([false, ['digitalSignature', 'keyEncipherment']])
})

test('limits a duration to that of the profile, and to at least ten minutes', () => {
  const at = folderWithCa()
  opensslRequest(at, 'a')
  const minutes = (...flags: string[]) => {
    const { stderr } = inFolder(at)(['ca', 'sign', 'a.csr', ...ca, ...flags, '--out', 'a.crt', '--force'])
    const { notBefore, notAfter } = certificateIn(at, 'a.crt')
    return [(notAfter.getTime() - notBefore.getTime()) / 60_000, stderr]
  }
  expect(minutes('--profile', 'client', '--duration', '20000h')).toEqual([
    525_600,
    "note: the validity is 8760h0m0s, the profile's maximum\n",
  ])
  expect(minutes('--profile', 'client', '--duration', '1m')).toEqual([
    15,
    'note: the validity is 10m0s, the minimum\n',
  ])
  expect(minutes('--usage', 'client auth', '--duration', '20000h')).toEqual([1_200_000, ''])
})

test('signs requests of several files in order, and records them in the issuance log', () => {
  const at = folderWithCa()
  for (const name of ['a', 'b', 'c']) opensslRequest(at, name)
  writeFileSync(
    join(at, 'two.pem'),
    ['b.csr', 'c.csr'].map((name) => readFileSync(join(at, name), 'utf8')).join('text\n'),
  )
  const { stdout, exit } = inFolder(at)([
    'ca',
    'sign',
    'a.csr',
    'two.pem',
    ...ca,
    '--profile',
    'client',
    '--out',
    '-',
  ])
  expect(exit).toBe(0)
  const signed = readCertificates(stdout)
  expect(signed.map(({ subject }) => subject.commonName)).toEqual(['a', 'b', 'c'])
  const entries = issuanceLogIn(at).slice(1)
  expect(
    entries.map(({ serialNumber, fingerprintSha256, subject }) => [serialNumber, fingerprintSha256, subject]),
  ).toEqual(
    signed.map(({ serialNumber, fingerprintSha256, subject }) => [
      serialNumber,
      fingerprintSha256,
      subject.text,
    ]),
  )
})

test('creates positive serial numbers of at most 20 bytes, with 128 random bits', () => {
  const at = folderWithCa()
  opensslRequest(at, 'a')
  writeFileSync(join(at, 'many.pem'), readFileSync(join(at, 'a.csr'), 'utf8').repeat(200))
  const { stdout } = inFolder(at)(['ca', 'sign', 'many.pem', ...ca, '--profile', 'client', '--out', '-'])
  const numbers = readCertificates(stdout).map(({ serialNumber }) => BigInt(`0x${serialNumber}`))
  expect(new Set(numbers).size).toBe(200)
  expect(numbers.every((number) => number > 0n && number < 2n ** 128n)).toBe(true)
  // Each random bit is set in some numbers and clear in others. That 200 fair coins all show one side has a probability of 2^-192
  // for 128 of them.
  const [all, any] = [numbers.reduce((a, b) => a & b), numbers.reduce((a, b) => a | b)]
  expect([all, any]).toEqual([0n, 2n ** 128n - 1n])
})

test('concurrent runs use no serial number twice and lose no entry', async () => {
  const at = folderWithCa()
  opensslRequest(at, 'a')
  const sign = (index: number) =>
    new Promise<number | null>((done) => {
      const args = ['ca', 'sign', 'a.csr', ...ca, '--profile', 'client', '--out', `${index}.crt`]
      const options = {
        cwd: at,
        stdio: 'ignore' as const,
        env: { PATH: process.env.PATH, HOME: '/nonexistent' },
      }
      spawn(process.execPath, [resolve('bin/run.js'), ...args], options).on('exit', done)
    })
  expect(await Promise.all(Array.from({ length: 6 }, (_, index) => sign(index)))).toEqual([0, 0, 0, 0, 0, 0])
  const issued = Array.from({ length: 6 }, (_, index) => certificateIn(at, `${index}.crt`).serialNumber)
  const recorded = issuanceLogIn(at).map(({ serialNumber }) => serialNumber)
  expect([new Set(recorded).size, recorded.length]).toEqual([7, 7])
  expect(recorded).toEqual(expect.arrayContaining(issued))
})

test('accepts another path for the issuance log, and signs nothing without one', () => {
  const at = folderWithCa()
  opensslRequest(at, 'a')
  const sign = (issuanceLog: string) =>
    inFolder(at)([
      'ca',
      'sign',
      'a.csr',
      ...ca,
      '--profile',
      'client',
      '--out',
      'a.crt',
      '--ledger',
      issuanceLog,
    ])
  for (const nowhere of ['/proc/nowhere/issuance-log', 'ca.pem/issuance-log']) {
    expect(sign(nowhere)).toMatchObject({ stdout: '', exit: 4 })
    expect(existsSync(join(at, 'a.crt'))).toBe(false)
  }
  writeFileSync(join(at, 'damaged'), 'nonsense\n{}\n')
  expect(sign('damaged')).toMatchObject({
    stdout: '',
    exit: 5,
    stderr: expect.stringMatching(
      /^KCERT_ISSUANCE_LOG_DAMAGED: line 1 of the issuance log damaged is not an entry\nwhy: .*\nnext: .*\n$/,
    ),
  })
  expect(existsSync(join(at, 'a.crt'))).toBe(false)
  expect(sign('mine.jsonl').exit).toBe(0)
  expect(issuanceLogIn(at, 'mine.jsonl')).toHaveLength(1)
})

test('continues an issuance log with the former name, and refuses to sign if there are two logs', () => {
  const at = folderWithCa()
  opensslRequest(at, 'a')
  renameSync(join(at, 'ca.issuance-log.jsonl'), join(at, 'ca.ledger.jsonl'))
  const sign = () =>
    inFolder(at)(['ca', 'sign', 'a.csr', ...ca, '--profile', 'client', '--out', 'a.crt', '--force'])
  expect(sign()).toMatchObject({ exit: 0, stdout: expect.stringContaining('ca.ledger.jsonl') })
  expect(existsSync(join(at, 'ca.issuance-log.jsonl'))).toBe(false)
  expect(issuanceLogIn(at, 'ca.ledger.jsonl')).toHaveLength(2)

  writeFileSync(join(at, 'ca.issuance-log.jsonl'), '')
  const { exit, stderr } = sign()
  const merge = 'cat ca.ledger.jsonl >> ca.issuance-log.jsonl && mv ca.ledger.jsonl ca.ledger.jsonl.merged'
  expect([exit, stderr]).toEqual([2, expect.stringContaining(`next: ${merge}\n`)])
  spawnSync('sh', ['-c', merge], { cwd: at })
  expect(sign().exit).toBe(0)
  expect(issuanceLogIn(at)).toHaveLength(3)
})

test('signs nothing if one request is invalid', () => {
  const at = folderWithCa()
  opensslRequest(at, 'a')
  const der = Buffer.from(openssl(at, 'req', '-in', 'a.csr').split('\n').slice(1, -2).join(''), 'base64')
  der[der.length - 3]! ^= 1
  writeFileSync(join(at, 'bad.der'), der)
  const before = issuanceLogIn(at).length
  const { stdout, stderr, exit } = inFolder(at)([
    'ca',
    'sign',
    'a.csr',
    'bad.der',
    ...ca,
    '--profile',
    'client',
    '--out',
    'out.pem',
  ])
  expect([stdout, exit]).toEqual(['', 3])
  expect(stderr).toMatch(
    /^KCERT_REQUEST_REFUSED: 1 of 2 requests were refused, and none was signed\nwhy: the signature of bad\.der is invalid \(it was not created with the key in the request/,
  )
  expect([existsSync(join(at, 'out.pem')), issuanceLogIn(at).length]).toEqual([false, before])
})

test.each([
  ['no request', ['--profile', 'client', '--out', 'o'], 2, 'KCERT_USAGE: no request given'],
  ['no purpose', ['a.csr', '--out', 'o'], 2, 'KCERT_USAGE: --usage, --profile or --config is required'],
  [
    'an unknown usage',
    ['a.csr', '--usage', 'serverAuth', '--out', 'o'],
    2,
    'KCERT_USAGE: unknown usage "serverAuth"',
  ],
  [
    'an unknown profile',
    ['a.csr', '--profile', 'x', '--out', 'o'],
    2,
    'KCERT_PROFILE_INVALID: unknown profile "x"',
  ],
  [
    'usages and a profile',
    ['a.csr', '--profile', 'client', '--usage', 'any', '--out', 'o'],
    2,
    'KCERT_USAGE: ',
  ],
  [
    'no duration',
    ['a.csr', '--profile', 'client', '--duration', '0', '--out', 'o'],
    2,
    'KCERT_USAGE: --duration 0 is not a positive duration',
  ],
  [
    'a file that is there',
    ['a.csr', '--profile', 'client', '--out', 'ca.pem'],
    5,
    'KCERT_FILE_EXISTS: --out ca.pem is also the input --ca ca.pem',
  ],
  [
    'a certificate as a request',
    ['ca.pem', '--profile', 'client', '--out', 'o'],
    3,
    'KCERT_REQUEST_REFUSED: ca.pem contains no certificate request',
  ],
  [
    'a folder as a request',
    ['.', '--profile', 'client', '--out', 'o'],
    2,
    'KCERT_FILE_UNREADABLE: . cannot be read',
  ],
  [
    'standard input that is empty',
    ['-', '--profile', 'client', '--out', 'o'],
    3,
    'KCERT_REQUEST_REFUSED: standard input contains no certificate request',
  ],
  [
    'a configuration that is none',
    ['a.csr', '--config', 'a.csr', '--out', 'o'],
    2,
    'KCERT_PROFILE_INVALID: a.csr is not a file of signing profiles',
  ],
])('%s: signs nothing, and prints the next step', (_, args, exit, stderr) => {
  const at = folderWithCa()
  opensslRequest(at, 'a')
  const before = issuanceLogIn(at).length
  const run = inFolder(at)(['ca', 'sign', ...args, ...ca])
  expect([run.stdout, run.exit, run.stderr]).toEqual(['', exit, expect.stringContaining(stderr)])
  expect(issuanceLogIn(at).length).toBe(before)
})

test.each(['dry-run', 'fail', 'kubernetes-signers'])(
  'refuses --%s with request files, and signs none',
  (name) => {
    const at = folderWithCa()
    opensslRequest(at, 'a')
    const before = issuanceLogIn(at).length
    const args = ['ca', 'sign', 'a.csr', '--profile', 'client', '--out', 'a.pem', ...ca]
    const { exit, stderr } = inFolder(at)([...args, `--${name}`])
    expect([exit, stderr]).toEqual([
      2,
      expect.stringContaining(`--${name} applies only to CSRs of the cluster`),
    ])
    expect([existsSync(join(at, 'a.pem')), issuanceLogIn(at).length]).toEqual([false, before])
  },
)
