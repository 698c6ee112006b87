import { createPublicKey } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { type JournalRecord, journalLine } from '../../src/rotation/journal.ts'
import { element, explicit, integer, octetString, oid, sequence } from '../../src/x509/der-writer.ts'
import { createRequest } from '../../src/x509/issuing.ts'
import { oidOf } from '../../src/x509/oids.ts'
import { writePem } from '../../src/x509/pem.ts'
import { questionAbout } from '../differential/pki-arbitrary.ts'
import { keys, selfSigned } from '../fixtures/certificates.ts'
import { hasOpenSsl, openssl } from '../peers/openssl.ts'
import { controlPlaneTree } from '../pki/kubeadm-tree.ts'

// The initial inputs for fuzzing: valid documents of every kind, created here.

export const password = 'fuzz'

const now = new Date('2026-11-21T09:00:00Z')
const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1')
const privateKeys = Object.values(keys)

/** Certificates with every extension that kcert reads, from the generator of test/differential. */
const certificates = fc
  .sample(questionAbout(now), { numRuns: 60, seed: 7 })
  .flatMap(({ leaf, roots, intermediates }) => [leaf, ...roots.slice(0, 1), ...intermediates.slice(0, 1)])

const request = createRequest(
  {
    subject: { commonName: 'system:node:a', organization: ['system:nodes'] },
    subjectAltNames: {
      dns: ['a', '*.b.example'],
      ip: ['10.0.0.1', 'fd00::1'],
      email: ['a@b'],
      uri: ['spiffe://c/d'],
    },
  },
  keys.p256,
)
const encodedKeys = privateKeys.flatMap((key) => [
  key.export({ format: 'der', type: 'pkcs8' }),
  createPublicKey(key).export({ format: 'der', type: 'spki' }),
])
const encryptedKey = keys.p256.export({
  format: 'pem',
  type: 'pkcs8',
  cipher: 'aes-256-cbc',
  passphrase: password,
})

const contentInfo = (type: 'data' | 'signedData', content: Uint8Array): Uint8Array =>
  sequence(oid(oidOf(type)), explicit(0, content))
const pkcs7 = contentInfo(
  'signedData',
  sequence(
    integer(1),
    element(0x31, new Uint8Array()),
    sequence(oid(oidOf('data'))),
    element(0xa0, Buffer.concat(certificates.slice(0, 2))),
    element(0x31, new Uint8Array()),
  ),
)

export const ders: readonly Uint8Array[] = [...certificates, request, pkcs7, ...encodedKeys]

export const derWords: readonly (string | Uint8Array)[] = [
  ...(
    [
      'subjectAltName',
      'nameConstraints',
      'keyUsage',
      'extKeyUsage',
      'basicConstraints',
      'rsaEncryption',
      'sha256',
    ] as const
  ).map((name) => oid(oidOf(name))),
  ...[
    '3000',
    '0500',
    '0101ff',
    '020100',
    '0201ff',
    '30800000',
    '3084ffffffff',
    '1f8180',
    'a003020102',
    '0303070080',
    '2400',
    '0c04f09f8080',
  ].map((hex) => Buffer.from(hex, 'hex')),
  ...[
    '1711393931323331323335393539305a',
    '170d3236313132313039303030305a',
    '180f39393939313233313233353935395a',
  ].map((hex) => Buffer.from(hex, 'hex')),
]

export const pems: readonly Uint8Array[] = [
  ...certificates.slice(0, 6).map((der) => bytes(writePem('CERTIFICATE', der))),
  bytes(
    certificates
      .slice(0, 3)
      .map((der) => `subject=x\n${writePem('CERTIFICATE', der)}`)
      .join(''),
  ),
  bytes(writePem('CERTIFICATE REQUEST', request)),
  ...privateKeys.map((key) => bytes(key.export({ format: 'pem', type: 'pkcs8' }) as string)),
  bytes(encryptedKey as string),
  bytes(
    '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011\n\nAAAA\n-----END RSA PRIVATE KEY-----\n',
  ),
  bytes(
    `\ufeff-----BEGIN CERTIFICATE-----\r\n${Buffer.from(certificates[0]!).toString('base64')}\r\n-----END CERTIFICATE-----`,
  ),
]
export const pemWords: readonly string[] = [
  ...[
    '-----BEGIN CERTIFICATE-----',
    '-----END CERTIFICATE-----',
    '-----BEGIN ',
    '-----END ',
    '-----',
    '----',
    '\n',
    '\r\n',
    '\r',
    '=',
    '==',
  ],
  ...[
    'Proc-Type: 4,ENCRYPTED\n',
    'DEK-Info: ',
    ': ',
    ' ',
    '\t',
    '\0',
    'PRIVATE KEY-----',
    'X509 CRL',
    'TRUSTED ',
    '\xef\xbb\xbf',
    '\xff\xfe',
  ],
]

export const stores: readonly Uint8Array[] = [plainStore(), ...opensslStores()]

export const kubeconfigs: readonly Uint8Array[] = [
  controlPlaneTree({ madeAt: now }).files.get('/etc/kubernetes/admin.conf')!.bytes,
  bytes(
    'apiVersion: v1\nkind: Config\nclusters:\n- &c {name: a, cluster: {server: "https://a:6443", certificate-authority: ca.crt}}\n- *c\nusers: []\ncontexts: null\ncurrent-context: ""\n',
  ),
  bytes(
    '{"apiVersion":"v1","kind":"Config","clusters":[{"name":"a","cluster":{"server":"https://a","insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":"t","exec":{"command":"x","args":["y"],"env":[{"name":"A","value":"b"}]}}}],"contexts":[{"name":"c","context":{"cluster":"a","user":"u","namespace":"n"}}],"current-context":"c"}',
  ),
  bytes(
    "users:\n- name: u\n  user:\n    client-certificate-data: |\n      QUJD\n    client-key-data: >-\n      QUJD\n    auth-provider: {name: oidc}\n--- # two\nclusters: [ {name: \"\\u00e4\", cluster: {server: 'a''b'}} ]\n...\n",
  ),
  bytes(
    '? clusters\n: - name: !!str 1\n    cluster: !<tag:yaml.org,2002:map> {server: ~}\n  - name: 0x1f\n<<: {users: []}\n',
  ),
]
export const yamlWords: readonly string[] = [
  ...[
    ': ',
    '- ',
    '? ',
    '\n',
    '\n  ',
    '\n- ',
    '--- ',
    '---\n',
    '...\n',
    '&a ',
    '*a',
    '|',
    '|2-\n',
    '>',
    '>+\n',
    '"',
    "'",
    '{',
    '}',
    '[',
    ']',
    ', ',
    '# ',
    '!!',
    '!!binary ',
    '!<',
    '%YAML 1.1\n',
  ],
  ...[
    '<<: ',
    'null',
    '~',
    '.inf',
    '0x1',
    '1e3',
    'true',
    '2026-11-21',
    '\t',
    '\0',
    '\xc2\x85',
    '\xe2\x80\xa8',
    '\\u',
    '\\x',
    '\xef\xbb\xbf',
    '\xed\xa0\x80',
  ],
  ...[
    'clusters',
    'users',
    'contexts',
    'name',
    'cluster',
    'user',
    'rules',
    'builtin',
    'decision',
    'signerNames',
    'usages',
    'cidrs',
  ],
]

export const policies: readonly Uint8Array[] = readFileSync('docs/policy.md', 'utf8')
  .split('```')
  .filter((block) => block.startsWith('yaml\n') && block.includes('rules'))
  .map((block) => bytes(block.slice(5)))

export const journals: readonly Uint8Array[] = [rotationJournal(), bytes(issuanceLogText())]
export const jsonWords: readonly string[] = [
  ...[
    '{',
    '}',
    '[',
    ']',
    '"',
    ':',
    ',',
    '\n',
    'null',
    'true',
    '-0',
    '1e999',
    '""',
    '{}',
    '[]',
    '\\u0000',
    '\\ud800',
  ],
  ...[
    '"kind":',
    '"phase":',
    '"rotation"',
    '"intent"',
    '"evidence"',
    '"waiver"',
    '"undone"',
    '"__proto__":',
    '"changes":',
    '"time":',
    '"previous":',
  ],
]

/** Returns a keystore without encryption, so that mutations reach its content. */
function plainStore(): Uint8Array {
  const bag = (type: 'certBag' | 'keyBag', value: Uint8Array): Uint8Array =>
    sequence(oid(oidOf(type)), explicit(0, value))
  const certificate = selfSigned({}, keys.p256)
  const safe = sequence(
    bag('certBag', sequence(oid(oidOf('x509Certificate')), explicit(0, octetString(certificate)))),
    bag('keyBag', keys.p256.export({ format: 'der', type: 'pkcs8' })),
  )
  return sequence(
    integer(3),
    contentInfo('data', octetString(sequence(contentInfo('data', octetString(safe))))),
  )
}

/** Keystores with one round of key derivation, so that an input costs microseconds. */
function opensslStores(): Uint8Array[] {
  if (!hasOpenSsl) return []
  const folder = mkdtempSync(join(tmpdir(), 'kcert-fuzz-'))
  try {
    const [key, certificate] = [join(folder, 'a.key'), join(folder, 'a.crt')]
    writeFileSync(key, keys.p256.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 })
    writeFileSync(certificate, writePem('CERTIFICATE', selfSigned({}, keys.p256)))
    const common = [
      'pkcs12',
      '-export',
      '-inkey',
      key,
      '-in',
      certificate,
      '-name',
      'a',
      '-passout',
      `pass:${password}`,
      '-iter',
      '1',
    ]
    return [[], ['-certpbe', 'PBE-SHA1-3DES', '-keypbe', 'PBE-SHA1-3DES', '-macalg', 'sha1']].map(
      (more, index) => {
        const out = join(folder, `${index}.p12`)
        openssl([...common, ...more, '-out', out])
        return readFileSync(out)
      },
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function rotationJournal(): Uint8Array {
  const digest = 'a'.repeat(64)
  const ca = { digest, spki: digest, subject: 'CN=kubernetes', notAfter: '2036-01-01T00:00:00Z' }
  const records = [
    {
      kind: 'rotation',
      changes: [{ ca: 'cluster', oldCa: ca, newCa: ca }],
      settings: { cas: ['cluster'], withBridge: true, newKeys: false },
    },
    { kind: 'phase', phase: 1, event: 'started' },
    { kind: 'intent', phase: 1, action: digest, what: 'write cp1:/etc/kubernetes/pki/ca.crt' },
    { kind: 'done', phase: 1, action: digest, what: 'write cp1:/etc/kubernetes/pki/ca.crt' },
    { kind: 'evidence', phase: 1, key: 'signs', ok: true, atMs: 1, detail: 'x' },
    { kind: 'waiver', id: 'pod/a' },
    { kind: 'phase', phase: 1, event: 'rolled-back', detail: 'undo' },
  ] as unknown as JournalRecord[]
  let last: string | undefined
  const lines = records.map((record, index) => {
    last = journalLine(record, index, last)
    return `${last}\n`
  })
  return bytes(lines.join(''))
}

function issuanceLogText(): string {
  const entry = {
    serialNumber: '1f',
    subject: 'CN=a',
    notBefore: '2026-11-21T09:00:00Z',
    notAfter: '2027-11-21T09:00:00Z',
    fingerprintSha256: 'b'.repeat(64),
    issuedAt: '2026-11-21T09:00:00Z',
  }
  return `${JSON.stringify(entry)}\n${JSON.stringify({ ...entry, serialNumber: '20' })}\n`
}
