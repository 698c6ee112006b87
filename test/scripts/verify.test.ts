import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { createServer } from 'node:tls'
import * as v from 'valibot'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type VerificationReport, verificationReportSchema } from '../../src/verification/report.ts'
import { kcert, type Session } from './program.ts'
import { client, createCa, folderWith, type Issued, issued, sessionTime } from './small-pki.ts'

const ca = createCa()
const laterCa = createCa()
const server = issued(
  {
    subject: { commonName: 'kube-apiserver' },
    keyUsage: ['digitalSignature', 'keyEncipherment'],
    extendedKeyUsage: ['serverAuth'],
    basicConstraints: { ca: false },
    subjectAltNames: { dns: ['kubernetes', 'kubernetes.default.svc'], ip: ['10.96.0.1'] },
  },
  ca,
)
const issuing = issued(
  { subject: { commonName: 'issuing' }, basicConstraints: { ca: true }, keyUsage: ['keyCertSign'] },
  ca,
)
const web = issued(
  {
    subject: { commonName: 'web' },
    extendedKeyUsage: ['serverAuth'],
    subjectAltNames: { dns: ['*.example.com'] },
  },
  issuing,
)
const admin = client('kubernetes-admin', ca, {
  subject: { commonName: 'kubernetes-admin', organization: ['kubeadm:cluster-admins'] },
})

const hasOpenssl = spawnSync('openssl', ['version']).status === 0

const base64 = (text: string): string => Buffer.from(text).toString('base64')

function kubeconfig(cluster: Issued, user: Issued): string {
  return [
    'apiVersion: v1',
    'kind: Config',
    'current-context: me@cluster',
    `clusters: [{name: cluster, cluster: {server: "https://192.0.2.1:6443", certificate-authority-data: ${base64(cluster.pem)}}}]`,
    `users: [{name: me, user: {client-certificate-data: ${base64(user.pem)}, client-key-data: ${base64(user.keyPem)}}}]`,
    'contexts: [{name: me@cluster, context: {cluster: cluster, user: me}}]',
    '',
  ].join('\n')
}

function session(files: Readonly<Record<string, string | Uint8Array>>) {
  const cwd = folderWith(files)
  return {
    cwd,
    verify: (args: readonly string[], stdin = ''): Session =>
      kcert(['verify', ...args, ...(args.includes('--at') ? [] : ['--at', sessionTime])], { cwd, stdin }),
  }
}

function jsonOf({ stdout }: Session): VerificationReport {
  return v.parse(v.strictObject(verificationReportSchema.entries), JSON.parse(stdout))
}

test('exits with 0 for a trusted chain, with the verdict first', () => {
  const { verify } = session({ 'server.crt': server.pem, 'ca.crt': ca.pem })
  const { stdout, stderr, exit } = verify(['server.crt', '--roots', 'ca.crt', '--name', '10.96.0.1'])
  expect({ stderr, exit }).toEqual({ stderr: '', exit: 0 })
  expect(stdout).toBe(`TRUSTED as a server certificate for 10.96.0.1

CHAIN  SUBJECT         EXPIRES (UTC)     FOUND IN
leaf   kube-apiserver  2027-12-31 00:00  server.crt
root   kubernetes      2036-01-01 00:00  ca.crt

verified at    2026-11-21 09:00:00 UTC
trusted until  2027-12-31 00:00:00 UTC

differs  refused by Python 3.13: it follows RFC 5280 strictly: every certificate below a root has an authority key identifier (Missing Authority Key Identifier)
`)
})

test('exits with 3 for an untrusted chain, with the certificate at fault and the fix', () => {
  const { verify } = session({ 'server.crt': server.pem, 'ca.crt': laterCa.pem })
  const { stdout, stderr, exit } = verify(['server.crt', '--roots', 'ca.crt'])
  expect({ stderr, exit }).toEqual({ stderr: '', exit: 3 })
  expect(stdout).toMatch(/^NOT TRUSTED as a server certificate: ISSUER_KEY_OTHER\n/)
  expect(stdout).toMatch(/^leaf +kube-apiserver .* at fault +server\.crt$/m)
  expect(stdout).toMatch(/^next +kcert inspect server\.crt ca\.crt -o tree$/m)
})

describe('the report in JSON', () => {
  test('is valid against its schema, and the same in YAML', async () => {
    const { verify } = session({ 'web.pem': web.pem + issuing.pem, 'ca.crt': ca.pem })
    const asked = ['web.pem', '--roots', 'ca.crt', '--name', 'a.example.com']
    const { generatedAt, ...report } = jsonOf(verify([...asked, '-o', 'json']))
    expect(report).toMatchObject({ trusted: true, at: sessionTime, purpose: 'server', name: 'a.example.com' })
    expect(report.chains[0]?.map(({ source, entry }) => `${source} ${entry}`)).toEqual([
      'web.pem certificate 1',
      'web.pem certificate 2',
      'ca.crt ',
    ])
    const { parse } = await import('yaml')
    const { generatedAt: _, ...fromYaml } = parse(
      verify([...asked, '-o', 'yaml']).stdout,
    ) as VerificationReport
    expect(fromYaml).toEqual(report)
    expect(generatedAt).toMatch(/^\d{4}-/)
  })

  test('names the certificate at fault, its position and its fingerprint', () => {
    const { verify } = session({ 'web.crt': web.pem, 'ca.crt': ca.pem })
    const run = verify(['web.crt', '--roots', 'ca.crt', '-o', 'json'])
    const { trusted, code, certificate, alsoRefusedBy } = jsonOf(run)
    expect(run.exit).toBe(3)
    expect({ trusted, code, alsoRefusedBy }).toEqual({
      trusted: false,
      code: 'ISSUER_UNKNOWN',
      alsoRefusedBy: ['openssl', 'node', 'python'],
    })
    expect(certificate).toMatchObject({ source: 'web.crt', subject: { commonName: 'web' } })
  })

  test.skipIf(!hasOpenssl)(
    'reports where OpenSSL has another result, as it really has (needs openssl)',
    () => {
      // Two CAs of one name without key identifiers, as after a careless rotation.
      const { cwd, verify } = session({ 'server.crt': server.pem, 'bundle.crt': laterCa.pem + ca.pem })
      const report = jsonOf(verify(['server.crt', '--roots', 'bundle.crt', '-o', 'json']))
      expect([report.trusted, report.alsoRefusedBy]).toEqual([true, ['openssl', 'node', 'python']])
      const openssl = () =>
        execFileSync('openssl', ['verify', '-attime', '1795251600', '-CAfile', 'bundle.crt', 'server.crt'], {
          cwd,
          stdio: 'pipe',
        })
      expect(openssl).toThrow(/certificate signature failure/)
    },
  )
})

describe('inputs', () => {
  test('accepts a kubeconfig and several files as roots', () => {
    const files = { 'server.crt': server.pem, 'other.crt': laterCa.pem, 'admin.conf': kubeconfig(ca, admin) }
    const { verify } = session(files)
    const run = verify(['server.crt', '--roots', 'other.crt', '--roots', 'admin.conf', '-o', 'json'])
    expect(jsonOf(run).chains[0]?.at(-1)).toMatchObject({
      source: 'admin.conf',
      entry: 'cluster cluster: certificate-authority-data',
    })
  })

  test('verifies a kubeconfig as leaf against its own CA, as a client certificate', () => {
    const { verify } = session({
      'admin.conf': kubeconfig(ca, admin),
      'stale.conf': kubeconfig(laterCa, admin),
    })
    const { stdout, exit } = verify(['admin.conf'])
    expect(exit).toBe(0)
    expect(stdout).toMatch(/^TRUSTED as a client certificate\n/)
    expect(stdout).toMatch(/^user +kubernetes-admin, groups kubeadm:cluster-admins$/m)
    expect(stdout).not.toContain('PRIVATE KEY')
    expect(verify(['stale.conf']).exit).toBe(3)
  })

  test('reads the leaf from standard input, in DER, with its intermediates in a separate file', () => {
    const { cwd, verify } = session({ 'ca.crt': ca.pem, 'issuing.crt': issuing.pem })
    const asked = ['--roots', 'ca.crt', '--intermediates', 'issuing.crt']
    expect(verify(['-', ...asked], web.pem).exit).toBe(0)
    writeFileSync(join(cwd, 'web.der'), web.der)
    expect(verify(['web.der', ...asked]).exit).toBe(0)
  })

  test('reads a pipe of the shell: --roots <(command)', () => {
    const { cwd } = session({ 'ca.crt': ca.pem, 'server.crt': server.pem })
    const program = `"${process.execPath}" "${join(process.cwd(), 'bin/run.js')}"`
    const line = `${program} verify server.crt --roots <(cat ca.crt) --at ${sessionTime} -o json`
    expect(JSON.parse(execFileSync('bash', ['-c', line], { cwd, encoding: 'utf8' })).trusted).toBe(true)
  })
})

test('a leaf as host:port is the served certificate; roots are never read from a server', async () => {
  const { cwd } = session({ 'ca.crt': ca.pem })
  const listening = createServer({ cert: web.pem + issuing.pem, key: web.keyPem })
  listening.on('tlsClientError', () => {})
  listening.on('secureConnection', (socket) => socket.on('error', () => {}))
  onTestFinished(() => void listening.close())
  await new Promise<void>((ready) => listening.listen(0, '127.0.0.1', ready))
  const address = `127.0.0.1:${(listening.address() as AddressInfo).port}`
  const asked = ['verify', address, '--name', 'a.example.com', '--at', sessionTime, '-o', 'json']

  const trusted = await beside([...asked, '--roots', 'ca.crt'], cwd)
  expect(trusted.exit).toBe(0)
  expect(jsonOf(trusted).chains[0]?.map(({ source, entry }) => `${source} ${entry}`)).toEqual([
    `${address} certificate 1`,
    `${address} certificate 2`,
    'ca.crt ',
  ])
  const refused = await beside([...asked, '--roots', address], cwd)
  expect(refused).toMatchObject({ exit: 2, stdout: '' })
  expect(refused.stderr).toMatch(/^KCERT_FILE_NOT_FOUND: /)
})

/** Asynchronous, because a server in this process could not respond during a synchronous run. */
function beside(args: readonly string[], cwd: string): Promise<Session> {
  const env = { PATH: process.env.PATH, HOME: '/nonexistent' }
  const program = spawn(process.execPath, [resolve('bin/run.js'), ...args], { cwd, env })
  const left = { stdout: '', stderr: '' }
  program.stdout.on('data', (chunk: Buffer) => (left.stdout += chunk.toString()))
  program.stderr.on('data', (chunk: Buffer) => (left.stderr += chunk.toString()))
  return new Promise((ended) => program.on('close', (exit) => ended({ ...left, exit })))
}

test('applies the purpose, and "any" requires none', () => {
  const { verify } = session({ 'admin.crt': admin.pem, 'ca.crt': ca.pem })
  const exits = ['server', 'client', 'any'].map(
    (purpose) => verify(['admin.crt', '--roots', 'ca.crt', '--purpose', purpose]).exit,
  )
  expect(exits).toEqual([3, 0, 0])
  const { stdout } = verify(['admin.crt', '--roots', 'ca.crt', '--at', '2026-11-21'])
  expect(stdout).toMatch(/^advice +if a client uses it, add --purpose client/m)
  expect(stdout).toMatch(/^next +kcert verify admin\.crt --roots ca\.crt --at 2026-11-21 --purpose client$/m)
})

test('applies the time of --at', () => {
  const { verify } = session({ 'server.crt': server.pem, 'ca.crt': ca.pem })
  const evaluated = (at: string): number | null =>
    verify(['server.crt', '--roots', 'ca.crt', '--at', at]).exit
  expect(['2025-12-31', '2026-01-01', '2027-12-31T00:00:00Z', '2027-12-31T00:00:01Z'].map(evaluated)).toEqual(
    [3, 0, 0, 3],
  )
})

describe('bad input reports what, why and next', () => {
  const files = {
    'server.crt': server.pem,
    'ca.crt': ca.pem,
    'ca.key': ca.keyPem,
    'broken.crt': server.pem.replace(/M/g, '!'),
    'cut.der': server.der.slice(0, 60),
    'token.conf': 'apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: verysecret}}]\n',
  }
  test.for<[rule: string, args: readonly string[], exit: number, message: RegExp]>([
    ['no roots', ['server.crt'], 2, /^KCERT_USAGE: --roots is required\nwhy: .*\nnext: kcert verify/],
    ['no leaf', [], 2, /^KCERT_USAGE: LEAF is missing/],
    [
      'a file that is not there',
      ['no.crt', '--roots', 'ca.crt'],
      2,
      /^KCERT_FILE_NOT_FOUND: no\.crt does not exist\nnext: /,
    ],
    [
      'a folder',
      ['server.crt', '--roots', '.'],
      2,
      /^KCERT_FILE_UNREADABLE: \. cannot be read\nwhy: is a folder/,
    ],
    [
      'a key',
      ['server.crt', '--roots', 'ca.key'],
      2,
      /^KCERT_USAGE: ca\.key contains no certificate\nwhy: .*\nnext: kcert inspect/,
    ],
    [
      'broken PEM',
      ['broken.crt', '--roots', 'ca.crt'],
      3,
      /^KCERT_X509_MALFORMED: broken\.crt: line \d+: .*\nwhy: .*\nnext: /,
    ],
    [
      'cut DER',
      ['cut.der', '--roots', 'ca.crt'],
      3,
      /^KCERT_X509_MALFORMED: cut\.der: certificate: offset 0: truncated/,
    ],
    [
      'a user with a token',
      ['token.conf'],
      2,
      /^KCERT_USAGE: token\.conf: user u has no client certificate\nwhy: it has: token\n/,
    ],
    ['a purpose of its own', ['server.crt', '--purpose', 'x'], 2, /^KCERT_USAGE: .*purpose/],
    [
      'a time',
      ['server.crt', '--roots', 'ca.crt', '--at', 'soon'],
      2,
      /^KCERT_USAGE: invalid time "soon"\nfix: /,
    ],
    [
      'an empty name',
      ['server.crt', '--roots', 'ca.crt', '--name', ''],
      2,
      /^KCERT_USAGE: --name is empty\nwhy: /,
    ],
    [
      'standard input twice',
      ['-', '--roots', '-'],
      2,
      /^KCERT_USAGE: standard input can be used only once\nwhy: /,
    ],
  ])('%s', ([, args, exit, message]) => {
    const run = session(files).verify(args)
    expect(run.stdout).toBe('')
    expect(run.exit).toBe(exit)
    expect(run.stderr).toMatch(message)
    expect(run.stderr).not.toMatch(/verysecret|\n {4}at /)
  })
})

test('help has the exit codes and examples', () => {
  const { stdout, exit } = kcert(['verify', '--help'])
  expect(exit).toBe(0)
  expect(stdout).toMatch(/EXIT CODES\n +0 +trusted\n/)
  expect(stdout.match(/\$ kcert verify /g)?.length).toBeGreaterThanOrEqual(4)
})

describe('reports PEM that Go does not read', () => {
  const warningsOf = (run: Session) => jsonOf(run).warnings.map(({ source, code }) => [source, code])

  test('rejects roots with a byte order mark: a component that reads them trusts no CA', () => {
    const { verify } = session({ 'server.crt': server.pem, 'ca.crt': `\ufeff${ca.pem}` })
    const run = verify(['server.crt', '--roots', 'ca.crt', '-o', 'json'])
    expect(run.exit).toBe(3)
    expect(jsonOf(run)).toMatchObject({
      code: 'ISSUER_UNKNOWN',
      reason: expect.stringMatching(
        /: ca\.crt begins with a byte order mark, so Go finds no certificate there$/,
      ),
      next: expect.stringMatching(/^sed /),
      acceptedBy: ['openssl', 'node'],
    })
    expect(warningsOf(run)).toEqual([['ca.crt', 'NOT_PLAIN_PEM']])
    expect(jsonOf(run).warnings[0]!.message).toBe(
      'begins with a byte order mark: Go finds no certificate in this, so clients with these roots trust no server',
    )
  })

  test('rejects roots in DER; verifies a leaf in DER, and reports that it is not PEM', () => {
    const { verify } = session({ 'server.der': server.der, 'ca.der': ca.der, 'ca.crt': ca.pem })
    const refused = verify(['server.der', '--roots', 'ca.der', '-o', 'json'])
    expect([refused.exit, jsonOf(refused).code, jsonOf(refused).acceptedBy]).toEqual([
      3,
      'ISSUER_UNKNOWN',
      [],
    ])
    expect(warningsOf(refused)).toEqual([
      ['ca.der', 'NOT_PLAIN_PEM'],
      ['server.der', 'NOT_PLAIN_PEM'],
    ])
    const trusted = verify(['server.der', '--roots', 'ca.crt', '-o', 'json'])
    expect([trusted.exit, warningsOf(trusted)]).toEqual([0, [['server.der', 'NOT_PLAIN_PEM']]])
  })
})

describe('reports wrong usage:', () => {
  function complaint(args: readonly string[], files: Record<string, string | Uint8Array> = {}): string {
    const { verify } = session({ 'a.crt': server.pem, 'ca.crt': ca.pem, ...files })
    const { stdout, stderr, exit } = verify(args)
    expect([stdout, exit]).toEqual(['', 2])
    return stderr
  }

  test('a keystore instead of a certificate', () => {
    const pfx = Buffer.from('30820010020103300b06092a864886f70d010701', 'hex')
    expect(complaint(['a.p12', '--roots', 'ca.crt'], { 'a.p12': pfx })).toBe(
      'KCERT_USAGE: a.p12 is a PKCS#12 keystore\nwhy: Kubernetes components do not read keystores; extract the certificates as PEM, and verify these\nnext: openssl pkcs12 -nokeys -in a.p12 -out a.p12.pem\n',
    )
  })

  test.each(['10.96.0.1:6443', 'https://api.example.com', 'api.example.com/x', '[::1]:6443'])(
    'a name with extra parts: %s',
    (name) => {
      expect(complaint(['a.crt', '--roots', 'ca.crt', '--name', name])).toMatch(
        /^KCERT_USAGE: --name ".*" is not a host name or IP address\nwhy: .*\nnext: kcert verify a.crt .*--name \S+\n$/,
      )
    },
  )

  test('no leaf', () => {
    expect(complaint(['--roots', 'ca.crt'])).toBe(
      'KCERT_USAGE: LEAF is missing\nwhy: it is a file with the certificate, "-" for standard input, a kubeconfig, or HOST:PORT\nnext: kcert verify --help\n',
    )
  })

  test('prints a path without a preceding field without a dot', () => {
    const { verify } = session({ 'a.der': Uint8Array.of(0x30, 0x05, 2, 1, 5, 5, 0), 'ca.crt': ca.pem })
    expect(verify(['a.der', '--roots', 'ca.crt']).stderr).not.toMatch(/\w\. at offset/)
  })
})

test('accepts an IPv6 address as a name, also in brackets', () => {
  const { verify } = session({ 'a.crt': server.pem, 'ca.crt': ca.pem })
  for (const name of ['::1', '[::1]']) {
    expect(verify(['a.crt', '--roots', 'ca.crt', '--name', name]).exit).toBe(3)
  }
})
