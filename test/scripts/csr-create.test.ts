import { execFileSync } from 'node:child_process'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { schemaFiles } from '../../scripts/docs/schemas.ts'
import type { CreateReport } from '../../src/csr/create-report.ts'
import { readSigningRequests } from '../../src/csr/manifest-reading.ts'
import { readRequestContent, type SigningRequest } from '../../src/csr/signing-request.ts'
import { readPrivateKeyFile } from '../../src/x509/keys.ts'
import { readPem } from '../../src/x509/pem.ts'
import { CertificateRequest } from '../../src/x509/request.ts'
import { kcert, type Session } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

const folder = temporaryFolder('csr-create')
let folders = 0

/** Returns a new empty folder. */
function place(): string {
  const path = join(folder, String(folders++))
  mkdirSync(path)
  return path
}

function create(cwd: string, args: readonly string[], stdin = ''): Session {
  return kcert(['csr', 'create', ...args], { cwd, stdin })
}

function requestIn(path: string): CertificateRequest {
  return CertificateRequest.parse(readPem(readFileSync(path)).blocks[0]!.der)
}

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

/** The input of `cfssl genkey` in the Kubernetes documentation. */
const seed = `{
  "hosts": [
    "my-svc.my-namespace.svc.cluster.local",
    "my-pod.my-namespace.pod.cluster.local",
    "192.0.2.24",
    "10.0.34.2"
  ],
  "CN": "my-pod.my-namespace.pod.cluster.local",
  "key": {
    "algo": "ecdsa",
    "size": 256
  }
}
`
const seedNames = {
  dns: ['my-svc.my-namespace.svc.cluster.local', 'my-pod.my-namespace.pod.cluster.local'],
  ip: ['192.0.2.24', '10.0.34.2'],
}

describe("cfssl's JSON", () => {
  test('from the documentation creates the same request and key as cfssl', () => {
    const at = place()
    const run = create(at, ['--cfssl', '-', '--key-out', 'server-key.pem', '--out', 'server.csr'], seed)
    expect(run).toMatchObject({ stderr: '', exit: 0 })
    const request = requestIn(join(at, 'server.csr'))
    expect(request.subject.text).toBe('CN=my-pod.my-namespace.pod.cluster.local')
    expect(request.subjectAltNames).toMatchObject(seedNames)
    expect(request.verifySignature('possession').ok).toBe(true)
    expect(readFileSync(join(at, 'server-key.pem'), 'utf8')).toMatch(/^-----BEGIN EC PRIVATE KEY-----\n/)
    expect(modeOf(join(at, 'server-key.pem'))).toBe('600')
    const key = readPrivateKeyFile(readFileSync(join(at, 'server-key.pem')))
    expect(key.publicKey!.sha256).toBe(request.publicKey.sha256)
    expect(
      execFileSync('openssl', ['req', '-in', 'server.csr', '-noout', '-verify'], {
        cwd: at,
        encoding: 'utf8',
        stdio: 'pipe',
      }),
    ).toBe('')
  })

  test('replaces cfssl genkey in a pipeline, if --key-out - allows printing the key', () => {
    const { stdout, stderr, exit } = create(place(), ['--cfssl', '-', '-o', 'cfssl', '--key-out', '-'], seed)
    expect({ stderr, exit }).toEqual({ stderr: '', exit: 0 })
    const document = JSON.parse(stdout) as Record<string, string>
    expect(Object.keys(document)).toEqual(['csr', 'key'])
    const { publicKey } = readPrivateKeyFile(Buffer.from(document.key!))
    expect(CertificateRequest.parse(readPem(document.csr!).blocks[0]!.der).publicKey.sha256).toBe(
      publicKey!.sha256,
    )
  })

  test('out contains a key only in a separate file, and only if the key has no other file', () => {
    const at = place()
    const refused = create(at, ['--cfssl', '-', '-o', 'cfssl'], seed)
    expect(refused).toMatchObject({ stdout: '', exit: 5 })
    expect(refused.stderr).toMatch(
      /^KCERT_KEY_EXPOSED: .*\nwhy: .*\nnext: kcert csr create .*--out csr\.json\n/,
    )
    expect(create(at, ['--cfssl', '-', '-o', 'cfssl', '--out', 'both.json'], seed)).toMatchObject({ exit: 0 })
    expect(modeOf(join(at, 'both.json'))).toBe('600')
    expect(Object.keys(JSON.parse(readFileSync(join(at, 'both.json'), 'utf8')) as object)).toEqual([
      'csr',
      'key',
    ])
    const apart = create(at, ['--cfssl', '-', '-o', 'cfssl', '--key-out', 'k.pem'], seed)
    expect(Object.keys(JSON.parse(apart.stdout) as object)).toEqual(['csr'])
  })

  const cfssl = '.bench/bin/cfssl'
  test.skipIf(!existsSync(cfssl))(
    `says what ${cfssl} says, for every kind of key and of name (skipped where it is not built)`,
    () => {
      const at = place()
      const documents = [
        seed,
        '{"CN":"a b","names":[{"C":"DE","O":"Example, Ltd","OU":"ops"},{"O":"second","ST":"BY","L":"München"}],"key":{"algo":"rsa","size":2048}}',
        '{"CN":"n","hosts":["*.example.com","2001:DB8::1","ops@example.com","spiffe://example.com/x"],"key":{"algo":"rsa","size":3072}}',
        '{"CN":"p521","serialnumber":"7","key":{"algo":"ecdsa","size":521}}',
        '{"CN":"p384","names":[{"OID":{"1.2.3.4":"x"}}],"key":{"algo":"ecdsa","size":384}}',
        '{"cn":"any case","Hosts":["h.example.com"],"unknown":{"a":[1]}}',
      ]
      for (const [index, document] of documents.entries()) {
        writeFileSync(join(at, `${index}.json`), document)
        const fromCfssl = JSON.parse(
          execFileSync(cfssl, ['genkey', join(at, `${index}.json`)], { stdio: 'pipe', encoding: 'utf8' }),
        ) as Record<string, string>
        const fromKcert = JSON.parse(
          create(at, ['--cfssl', `${index}.json`, '-o', 'cfssl', '--key-out', '-']).stdout,
        ) as Record<string, string>
        const [a, b] = [fromCfssl, fromKcert].map((one) => factsOf(readPem(one.csr!).blocks[0]!.der))
        expect({ document, ...b }).toEqual({ document, ...a })
        const labels = [fromCfssl, fromKcert].map((one) => one.key!.split('\n')[0])
        expect(labels[1]).toBe(labels[0])
      }
    },
  )

  test('with the host "", as in old files, requests no name; cfssl writes an empty SAN, which no client accepts', () => {
    const at = place()
    expect(
      create(at, ['--cfssl', '-', '--key-out', 'k.pem', '--out', 'r.csr'], '{"CN":"a","hosts":[""]}').exit,
    ).toBe(0)
    expect(requestIn(join(at, 'r.csr')).extensions).toEqual([])
  })

  test.each([
    ['no JSON', 'hello'],
    ['an unknown algorithm', '{"CN":"a","key":{"algo":"dsa","size":1024}}'],
    ['a weak key', '{"CN":"a","key":{"algo":"rsa","size":1024}}'],
    ['a "ca" section', '{"CN":"a","ca":{"expiry":"1h"}}'],
    ['hosts that are not a list', '{"CN":"a","hosts":"b"}'],
  ])('with %s is refused without writing a file', (_name, document) => {
    const at = place()
    const run = create(at, ['--cfssl', '-', '--key-out', 'k.pem', '--out', 'r.csr'], document)
    expect(run).toMatchObject({ stdout: '', exit: 2 })
    expect(run.stderr).toMatch(/^KCERT_CFSSL_INVALID: .*\nwhy: /)
    expect(existsSync(join(at, 'k.pem'))).toBe(false)
  })
})

// Not compared: names.E, which cfssl writes as UTF8String where RFC 5280 requires IA5String.
/** Returns the common content of two requests for the same subject: everything except the key and values derived from it. */
function factsOf(der: Uint8Array): object {
  const request = CertificateRequest.parse(der)
  const { dns, ip, email, uri } = request.subjectAltNames
  const { algorithm, bits, curve } = request.publicKey
  return {
    subject: Buffer.from(request.subject.der).toString('hex'),
    names: { dns, ip, email, uri },
    key: [algorithm, bits, curve],
    signature: request.signatureAlgorithm,
    extensions: request.extensions.map(({ oid, critical, value }) => [
      oid,
      critical,
      Buffer.from(value).toString('hex'),
    ]),
    version: request.version,
  }
}

describe('presets', () => {
  async function objectOf(args: readonly string[]): Promise<SigningRequest> {
    const run = create(place(), [...args, '--key-out', 'k.pem', '-o', 'manifest'])
    expect(run).toMatchObject({ stderr: '', exit: 0 })
    return (await readSigningRequests(run.stdout))[0]!
  }

  test.each<[string, string[], string, object, object]>([
    [
      'a user with groups',
      ['--user', 'ann', '--org', 'dev', '--org', 'ops'],
      'CN=ann,O=dev+O=ops',
      {},
      {
        name: 'ann',
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['digital signature', 'client auth'],
      },
    ],
    [
      'a user with an RSA key',
      ['--user', 'ann', '--key-type', 'RSA-2048', '--expiration-seconds', '86400', '--name', 'ann-2'],
      'CN=ann',
      {},
      {
        name: 'ann-2',
        usages: ['digital signature', 'key encipherment', 'client auth'],
        expirationSeconds: 86_400,
      },
    ],
    [
      'a kubelet as client',
      ['--kubelet-client', 'node-1'],
      'CN=system:node:node-1,O=system:nodes',
      { dns: [], ip: [] },
      {
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['digital signature', 'client auth'],
      },
    ],
    [
      'a kubelet as server',
      ['--kubelet-serving', 'node-1', '--dns', 'node-1', '--ip', '10.0.0.7', '--ip', '2001:DB8:0::7'],
      'CN=system:node:node-1,O=system:nodes',
      { dns: ['node-1'], ip: ['10.0.0.7', '2001:db8::7'] },
      { signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] },
    ],
    [
      'a Service',
      ['--service', 'web.shop', '--ip', '10.96.0.9', '--signer', 'example.com/serving'],
      'CN=web.shop.svc',
      { dns: ['web.shop.svc.cluster.local', 'web.shop.svc', 'web.shop', 'web'], ip: ['10.96.0.9'] },
      { name: 'web.shop', signerName: 'example.com/serving', usages: ['digital signature', 'server auth'] },
    ],
  ])(
    '%s: has the subject, the SANs, the signer and the usages',
    async (_name, args, subject, names, object) => {
      const made = await objectOf(args)
      expect(made).toMatchObject({ apiVersion: 'certificates.k8s.io/v1', ...object })
      const { request } = readRequestContent(made.request)
      expect(request!.subject.text).toBe(subject)
      expect(request!.subjectAltNames).toMatchObject(names)
      expect(request!.verifySignature('possession').ok).toBe(true)
    },
  )

  test.each([
    ['--user', 'ann'],
    ['--kubelet-client', 'node-1'],
    ['--kubelet-serving', 'node-1', '--ip', '10.0.0.7'],
  ])('the request of %s %s passes its own check', (...args) => {
    const at = place()
    expect(create(at, [...args, '--key-out', 'k.pem', '-o', 'manifest', '--out', 'csr.yaml'])).toMatchObject({
      exit: 0,
    })
    expect(kcert(['csr', 'check', 'csr.yaml'], { cwd: at })).toMatchObject({ stderr: '', exit: 0 })
  })

  test('notes the only SAN of a kubelet without names', () => {
    expect(create(place(), ['--kubelet-serving', 'node-1', '--key-out', 'k.pem']).stderr).toMatch(
      /^note: the only SAN is "node-1"/,
    )
  })

  test.each([
    [
      ['--cn', 'node-7', '--dns', 'node-7', '--signer', 'kubernetes.io/kubelet-serving'],
      'it requires organization (O) exactly system:nodes, but the subject has none\nwhy: after the approval',
    ],
    [['--user', 'root', '--org', 'system:masters'], 'O=system:masters is forbidden'],
    [['--user', 'ann', '--usage', 'server auth'], '"server auth" is not allowed'],
    [['--user', 'ann', '--expiration-seconds', '60'], '60 is below 600'],
    [['--user', 'ann', '--signer', 'nonsense'], '"nonsense" is not a domain'],
  ])('%j: does not create an object that would fail on the cluster', (args, words) => {
    const at = place()
    const run = create(at, [...args, '--key-out', 'k.pem', '-o', 'manifest'])
    expect(run).toMatchObject({ stdout: '', exit: 3 })
    expect(run.stderr).toMatch(/^KCERT_CSR_SIGNER_REFUSED: /)
    expect(run.stderr).toContain(words)
    expect(existsSync(join(at, 'k.pem'))).toBe(false)
  })

  test.each<[string[], string]>([
    [['--kubelet-client', ''], 'not a valid Node name'],
    [['--kubelet-client', 'system:node:n1'], 'next: kcert csr create --key-out k.pem --kubelet-client n1'],
    [['--kubelet-client', 'n1', '--ip', '10.0.0.1'], 'does not sign requests with SANs'],
    [['--kubelet-serving', 'n1', '--email', 'a@b.c'], 'signs only DNS names and IP addresses'],
    [['--kubelet-serving', 'n1', '--org', 'x'], '--org and --kubelet-serving are mutually exclusive'],
    [['--service', 'web'], 'use NAME.NAMESPACE'],
    [['--service', 'web.shop.svc'], 'next: kcert csr create --key-out k.pem --service web.shop'],
    [['--service', 'web.shop', '-o', 'manifest'], '--signer example.com/serving'],
    [
      ['--cn', 'x', '--signer', 'a.b/c', '-o', 'manifest'],
      '--key-out k.pem --usage "digital signature" --usage "server auth"',
    ],
    [['--user', ''], 'a user needs a name'],
    [['--user', 'a', '--service', 'b.c'], '--user and --service are mutually exclusive'],
    [['--cn', ''], '--cn is empty'],
    [['--cn', 'x', '--dns', '10.0.0.1'], 'next: kcert csr create --cn x --key-out k.pem --ip 10.0.0.1'],
    [['--cn', 'x', '--dns', 'a_b!'], 'is not a DNS name'],
    [['--cn', 'x', '--dns', 'münchen.de'], 'xn--'],
    [['--cn', 'x', '--ip', '10.0.0.0/8'], 'is a range'],
    [['--cn', 'x', '--ip', 'web'], 'next: kcert csr create --cn x --key-out k.pem --dns web'],
    [['--cn', 'x', '--email', 'nobody'], 'is not an email address'],
    [['--cn', 'x', '--uri', 'nothing'], 'is not a URI'],
    [['--cn', 'x', '--key-type', 'DSA'], 'key type "DSA"'],
    [['--kubeadm', 'apiserverr'], 'kubeadm has no certificate "apiserverr"'],
  ])('%j: is reported as wrong usage', (args, words) => {
    const run = create(place(), [...args, '--key-out', 'k.pem'])
    expect(run).toMatchObject({ stdout: '', exit: 2 })
    expect(run.stderr).toMatch(/^KCERT_USAGE: /)
    expect(run.stderr).toContain(words)
  })
})

describe('keys', () => {
  const key = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey
  const keyPem = key.export({ format: 'pem', type: 'pkcs8' }) as string

  test('an existing key signs the request, and is in no output', () => {
    const at = place()
    writeFileSync(join(at, 'mine.pem'), keyPem)
    const secret = keyPem.split('\n').slice(1, -2)
    for (const format of ['pem', 'manifest', 'cfssl', 'json', 'yaml']) {
      const { stdout, stderr, exit } = create(at, ['--user', 'ann', '--key', 'mine.pem', '-o', format])
      expect({ format, stderr, exit }).toEqual({ format, stderr: '', exit: 0 })
      for (const line of secret) expect(stdout).not.toContain(line)
      expect(stdout).not.toContain('PRIVATE KEY')
    }
    const der = createPublicKey(key).export({ format: 'der', type: 'spki' })
    expect(create(at, ['--cn', 'x', '--key', '-', '--out', 'r.csr'], keyPem).exit).toBe(0)
    expect(Buffer.from(requestIn(join(at, 'r.csr')).publicKey.spki).equals(der)).toBe(true)
  })

  test('writes a new key only to its file, with mode 0600 under any umask', () => {
    for (const umask of ['000', '022', '077']) {
      const at = place()
      const command = `umask ${umask}; exec ${process.execPath} ${join(process.cwd(), 'bin/run.js')} csr create --user ann --key-out k.pem --out r.csr -o json`
      const stdout = execFileSync('sh', ['-c', command], {
        cwd: at,
        encoding: 'utf8',
        env: { PATH: process.env.PATH, HOME: '/nonexistent' },
      })
      expect(modeOf(join(at, 'k.pem'))).toBe('600')
      expect(stdout).not.toContain('PRIVATE KEY-----')
      expect(JSON.parse(stdout)).toMatchObject({
        kind: 'CreatedRequests',
        requests: [{ files: { request: 'r.csr', key: 'k.pem' } }],
      })
    }
  })

  test('overwrites nothing without --force, and writes no key through a link', () => {
    const at = place()
    writeFileSync(join(at, 'k.pem'), 'precious')
    const args = ['--cn', 'x', '--key-out', 'k.pem', '--out', 'r.csr']
    expect(create(at, args)).toMatchObject({
      stdout: '',
      exit: 5,
      stderr: expect.stringMatching(/^KCERT_FILE_EXISTS: k\.pem exists/),
    })
    expect([readFileSync(join(at, 'k.pem'), 'utf8'), existsSync(join(at, 'r.csr'))]).toEqual([
      'precious',
      false,
    ])
    expect(create(at, [...args, '--force']).exit).toBe(0)
    expect(modeOf(join(at, 'k.pem'))).toBe('600')

    symlinkSync('elsewhere.pem', join(at, 'link.pem'))
    expect(create(at, ['--cn', 'x', '--key-out', 'link.pem', '--force']).exit).toBe(5)
    expect(existsSync(join(at, 'elsewhere.pem'))).toBe(false)
    expect(create(at, ['--cn', 'x', '--key-out', 'new.pem', '--out', 'r.csr']).exit).toBe(5)
    expect(existsSync(join(at, 'new.pem'))).toBe(false)
  })

  test('opens an encrypted key with the first line of a password file, and encrypts a new one with it', () => {
    const at = place()
    writeFileSync(join(at, 'pw'), 'correct horse\nsecond line\n')
    expect(
      create(at, ['--cn', 'x', '--key-out', 'k.pem', '--password-file', 'pw', '--out', 'r.csr']).exit,
    ).toBe(0)
    expect(readFileSync(join(at, 'k.pem'), 'utf8')).toMatch(/^-----BEGIN ENCRYPTED PRIVATE KEY-----/)
    expect(create(at, ['--cn', 'y', '--key', 'k.pem'])).toMatchObject({
      exit: 2,
      stderr: expect.stringMatching(/^KCERT_KEY_ENCRYPTED: /),
    })
    expect(create(at, ['--cn', 'y', '--key', 'k.pem', '--password-file', 'pw', '--out', 'r2.csr']).exit).toBe(
      0,
    )
    expect(requestIn(join(at, 'r2.csr')).publicKey.sha256).toBe(requestIn(join(at, 'r.csr')).publicKey.sha256)
    writeFileSync(join(at, 'wrong'), 'battery\n')
    expect(create(at, ['--cn', 'y', '--key', 'k.pem', '--password-file', 'wrong'])).toMatchObject({
      exit: 3,
      stdout: '',
    })
  })

  test.each<[string[], RegExp, number]>([
    [['--cn', 'x'], /^KCERT_USAGE: --key-out or --key is required/, 2],
    [['--cn', 'x', '--key-out', '-', '-o', 'json'], /^KCERT_KEY_EXPOSED: /, 5],
    [
      ['--cn', 'x', '--key-out', '-', '-o', 'manifest', '--signer', 'a.b/c', '--usage', 'server auth'],
      /^KCERT_USAGE: the key and the manifest/,
      2,
    ],
    [
      ['--cn', 'x', '--key-out', 'a', '--out', 'a'],
      /^KCERT_USAGE: --key-out a and --out a are the same file/,
      2,
    ],
    [
      ['--cn', 'x', '--key', 'a', '--key-out', 'b'],
      /^KCERT_USAGE: --key and --key-out are mutually exclusive/,
      2,
    ],
    [['--cfssl', '-', '--key', '-'], /^KCERT_USAGE: --cfssl and --key cannot both be standard input/, 2],
    [['--cn', 'x', '--key', '/dev/null'], /^KCERT_FILE_UNREADABLE: /, 2],
    [[], /^KCERT_USAGE: no subject or SAN given/, 2],
  ])('%j: is refused', (args, stderr, exit) => {
    expect(create(place(), args)).toMatchObject({ stdout: '', stderr: expect.stringMatching(stderr), exit })
  })

  test('prints key and request to standard output if flags say so', () => {
    const { stdout, exit } = create(place(), ['--cn', 'x', '--key-out', '-'])
    expect(exit).toBe(0)
    expect(readPem(stdout).blocks.map(({ label }) => label)).toEqual(['PRIVATE KEY', 'CERTIFICATE REQUEST'])
  })

  test('signs requests with every type of key that openssl verifies, with the hash that cfssl and client-go use', () => {
    const at = place()
    for (const [type, signature] of [
      ['RSA-2048', 'sha256WithRSAEncryption'],
      ['RSA-3072', 'sha384WithRSAEncryption'],
      ['RSA-4096', 'sha512WithRSAEncryption'],
      ['ECDSA-P256', 'ecdsa-with-SHA256'],
      ['ECDSA-P384', 'ecdsa-with-SHA384'],
      ['ECDSA-P521', 'ecdsa-with-SHA512'],
      ['Ed25519', 'Ed25519'],
    ] as const) {
      expect(
        create(at, ['--cn', 'x', '--key-type', type, '--key-out', `${type}.pem`, '--out', `${type}.csr`])
          .exit,
      ).toBe(0)
      execFileSync('openssl', ['req', '-in', `${type}.csr`, '-noout', '-verify'], { cwd: at, stdio: 'pipe' })
      expect(requestIn(join(at, `${type}.csr`)).signatureAlgorithm).toBe(signature)
    }
  })
})

test('prints JSON that is valid against its schema', () => {
  const schema = JSON.parse(schemaFiles().find(([path]) => path.endsWith('/CreatedRequests.json'))![1])
  const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema)
  const at = place()
  for (const args of [
    ['--user', 'ann', '--key-out', 'a.pem', '--out', 'a.csr'],
    ['--cn', 'web', '--dns', 'web.example.com', '--key-out', 'b.pem'],
    [
      '--kubeadm',
      'all',
      '--node-name',
      'cp1',
      '--advertise-address',
      '10.0.0.1',
      '--cert-dir',
      'pki',
      '--kubeconfig-dir',
      '.',
    ],
  ]) {
    const report = JSON.parse(create(at, [...args, '-o', 'json']).stdout) as CreateReport
    expect([validate(report), validate.errors]).toEqual([true, null])
  }
})
