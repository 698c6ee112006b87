import { describe, expect, test } from 'vitest'
import {
  attribute,
  craftedRequestPem,
  extensionsFor,
  requestPem,
  submitted,
} from '../../../test/csr/made-requests.ts'
import { fakeFacts } from '../../../test/fakes/approval-facts.ts'
import { contextTag } from '../../x509/der.ts'
import { element, octetString, oid, sequence, utf8String } from '../../x509/der-writer.ts'
import { encodeExtensions } from '../../x509/extension-encoding.ts'
import type { AltNamesDescription, RequestDescription } from '../../x509/issuing.ts'
import type { AttributeDescription } from '../../x509/name-encoding.ts'
import { oidOf } from '../../x509/oids.ts'
import type { SigningRequest } from '../signing-request.ts'
import { decide, type Verdict } from './decide.ts'
import { evaluateByHand } from './evaluation.ts'
import { readPolicies } from './policy-file.ts'

// Requests that ask for more than they show. No built-in or user policy approves them, and approving one by name requires
// --force.

/** User rules as permissive as their lists allow, so that only the rules common to all approvals can refuse a request. */
const policy = `apiVersion: kcert/v1
kind: ApprovalPolicy
rules:
- builtin: kubelet-client
- {builtin: kubelet-serving, dnsSuffixes: [example.com, "1"]}
- name: own
  decision: approve
  signerNames: ["*/*"]
  groups: [system:nodes]
  commonNames: ["*", "*.apps.example.com", "system:node:*"]
  organizations: ["*", "system:nodes"]
  dnsNames: ["*", "*.example.com", "*.*"]
  ipAddresses: [0.0.0.0/0, "::/0"]
  emails: ["*@example.com", "*@*.*"]
  uris: ["spiffe://cluster.local/ns/*/sa/*", "spiffe://cluster.local/*/*/*/*/*", "https://*/*"]
  usages: [digital signature, key encipherment, server auth, client auth, cert sign, crl sign]
`
const policies = await readPolicies(policy, 'policy.yaml')

const node = 'system:node:node-1'
const nodes = ['system:nodes']
const addresses = [
  { type: 'Hostname', address: 'node-1' },
  { type: 'InternalIP', address: '10.1.0.7' },
]
const facts = fakeFacts({
  allowed: [`${node} selfnodeclient`],
  nodes: [{ name: 'node-1', addresses, isControlPlane: false }],
  served: {},
  addresses: { apiServers: [], serviceCidrs: [] },
})

const signers = {
  'kubernetes.io/kube-apiserver-client-kubelet': ['digital signature', 'client auth'],
  'kubernetes.io/kubelet-serving': ['digital signature', 'server auth'],
  'kubernetes.io/kube-apiserver-client': ['client auth'],
  'example.com/serving': ['digital signature', 'server auth'],
} as const
type SignerName = keyof typeof signers

function objectFor(
  signerName: SignerName,
  pem: string,
  usages: readonly string[] = signers[signerName],
): SigningRequest {
  return submitted({ subject: {} }, { signerName, usages, request: Buffer.from(pem) })
}

const decided = (object: SigningRequest): Promise<Verdict> => decide(object, policies, facts)

async function refusedByHand(object: SigningRequest): Promise<string | undefined> {
  const { signerName, usages, username, groups, request } = object
  const { course, reason } = await evaluateByHand(
    'approve',
    facts,
    false,
  )({
    metadata: { name: 'a', uid: 'u', resourceVersion: '1' },
    spec: {
      request: Buffer.from(request!).toString('base64'),
      signerName,
      usages: [...usages],
      username: username!,
      groups: [...groups],
    },
  })
  return course === 'refused' ? reason : undefined
}

/** Asserts that no policy approves a request, and that this rule refuses an approval by name. */
async function expectRefused(rule: string, object: SigningRequest): Promise<void> {
  const { decision, findings } = await decided(object)
  expect(decision).toBe('ignore')
  expect(findings.filter(({ outcome }) => outcome === 'unmet').map(({ id }) => id)).toContain(rule)
  expect(await refusedByHand(object)).toBeDefined()
}

/** A correct subject and correct names for each signer. */
const honest: Readonly<Record<SignerName, RequestDescription>> = {
  'kubernetes.io/kube-apiserver-client-kubelet': { subject: { commonName: node, organization: nodes } },
  'kubernetes.io/kubelet-serving': {
    subject: { commonName: node, organization: nodes },
    subjectAltNames: { dns: ['node-1'], ip: ['10.1.0.7'] },
  },
  'kubernetes.io/kube-apiserver-client': { subject: { commonName: 'ann', organization: ['dev'] } },
  'example.com/serving': { subject: { commonName: 'ann' }, subjectAltNames: { dns: ['web.example.com'] } },
}
const signerNames = Object.keys(signers) as SignerName[]

test.each(signerNames)('approves the unmodified request for %s', async (signerName) => {
  const object = objectFor(signerName, requestPem(honest[signerName]))
  expect((await decided(object)).decision).toBe('approve')
  expect(await refusedByHand(object)).toBeUndefined()
})

describe.each(signerNames)('%s: refuses a subject with attributes other than CN and O', (signerName) => {
  const { commonName = '', organization = [] } = honest[signerName].subject as {
    commonName?: string
    organization?: string[]
  }
  const attributes: readonly AttributeDescription[] = [
    { type: 'OU', value: 'kubernetes.default.svc' },
    { type: 'OU', value: 'Domain Admins' },
    { type: 'emailAddress', value: 'root@example.com' },
    { type: 'serialNumber', value: '1' },
    { type: 'UID', value: 'root' },
    { type: 'C', value: 'US' },
    { type: 'DC', value: 'example' },
    // The attribute for a user's UID (Kubernetes 1.33).
    { type: '1.3.6.1.4.1.57683.2', value: '00000000-0000-4000-8000-000000000000' },
  ]

  test.each(attributes)('$type=$value', async (more) => {
    const rdns = [
      ...organization.map((value) => [{ type: 'O', value }]),
      [{ type: 'CN', value: commonName }],
      [more],
    ]
    await expectRefused(
      'plain-subject',
      objectFor(signerName, requestPem({ ...honest[signerName], subject: rdns })),
    )
  })
})

describe.each(signerNames)('%s: refuses attributes that Kubernetes does not read', (signerName) => {
  const right = honest[signerName]
  const asked = extensionsFor(right)
  const extensionRequest = oidOf('extensionRequest')
  const hidden = extensionsFor({
    subject: {},
    subjectAltNames: { dns: ['kubernetes.default.svc'] },
    basicConstraints: { ca: true },
  })
  const plain = attribute(extensionRequest, asked)

  test.each<[string, readonly Uint8Array[], readonly Uint8Array[], string]>([
    [
      "Microsoft's extensionRequest",
      [plain, attribute('1.3.6.1.4.1.311.2.1.14', hidden)],
      [],
      'msExtensionRequest',
    ],
    [
      'two values in one attribute',
      [attribute(extensionRequest, asked, hidden)],
      [],
      'extensionRequest with 2 values',
    ],
    ['no value', [plain, attribute(oidOf('challengePassword'))], [], 'challengePassword with 0 values'],
    ['the attribute twice', [plain, attribute(extensionRequest, sequence())], [], 'extensionRequest'],
    ['an unknown attribute', [plain, attribute('1.2.3.4', utf8String('x'))], [], '1.2.3.4'],
    ['no attribute at all', [plain, octetString(Buffer.from('x'))], [], 'a malformed attribute'],
    [
      'something behind the values',
      [
        sequence(
          oid(extensionRequest),
          Buffer.concat([new Uint8Array([0x31, asked.length]), asked]),
          octetString(asked),
        ),
      ],
      [],
      'a malformed attribute',
    ],
    [
      'a second list of attributes',
      [plain],
      [attribute(extensionRequest, hidden)],
      'data after the attributes',
    ],
  ])('%s', async (_name, attributes, tail, found) => {
    const object = objectFor(signerName, craftedRequestPem(right.subject, attributes, tail))
    await expectRefused('plain-request', object)
    const { findings } = await decided(object)
    expect(findings.find(({ id }) => id === 'plain-request')?.detail).toContain(found)
  })

  test('accepts a challenge password and an unstructured name, which do not change the certificate', async () => {
    const attributes = [
      plain,
      attribute(oidOf('challengePassword'), utf8String('x')),
      attribute(oidOf('unstructuredName'), utf8String('x')),
    ]
    const object = objectFor(signerName, craftedRequestPem(right.subject, attributes))
    expect((await decided(object)).decision).toBe('approve')
  })
})

const withNames = (subjectAltNames: AltNamesDescription): RequestDescription => ({
  subject: { commonName: 'ann' },
  subjectAltNames,
})
const named = (commonName: string): RequestDescription => ({ subject: { commonName } })

describe('names that programs read differently', () => {
  const hidden = [
    '\0',
    '\n',
    '\r',
    '\u001b[2J',
    '\u007f',
    '\u0085',
    '\u009b',
    '\u202e',
    '\u200b',
    '\u2066',
    '\u2028',
    '\ufeff',
    '\u2800',
  ]

  test.each(hidden.map((character) => [JSON.stringify(character), character]))(
    '%s in CN and O',
    async (_, character) => {
      for (const description of [
        named(`admin${character}.apps.example.com`),
        named(`${character}admin`),
        { subject: { commonName: 'ann', organization: [`dev${character}`] } },
      ]) {
        const object = objectFor('example.com/serving', requestPem(description))
        await expectRefused('plain-names', object)
        expect((await decided(object)).findings.find(({ id }) => id === 'plain-names')?.detail).toMatch(
          /is a name with a control or invisible character$/,
        )
      }
    },
  )

  test.each<[string, AltNamesDescription]>([
    ['NUL in a DNS name', { dns: ['web\0.example.com'] }],
    ['newline in a DNS name', { dns: ['web\n.example.com'] }],
    ['space in a DNS name', { dns: ['web .example.com'] }],
    ['an empty DNS name', { dns: [''] }],
    ['a bare wildcard', { dns: ['*'] }],
    ['a wildcard inside', { dns: ['web.*.example.com'] }],
    ['two wildcards', { dns: ['*.*.example.com'] }],
    ['a part of a label', { dns: ['w*.example.com'] }],
    ['a trailing dot', { dns: ['web.example.com.'] }],
    ['an IPv4 address in two parts', { dns: ['127.1'] }],
    ['an IPv4 address in hexadecimal', { dns: ['0x7f000001'] }],
    ['an IPv4 address in one number', { dns: ['2130706433'] }],
    ['NUL in an email address', { email: ['root@evil\0@example.com'] }],
    ['newline in an email address', { email: ['root\n@example.com'] }],
    ['two mailboxes', { email: ['root@localhost,@example.com'] }],
    ['two mailboxes with a space', { email: ['root@localhost @example.com'] }],
    ['a quoted local part', { email: ['"root@localhost"@example.com'] }],
    ['an escaped local part', { email: ['root\\@localhost@example.com'] }],
    ['a mailbox in angle brackets', { email: ['root <root@example.com>'] }],
    ['a mailbox of an address', { email: ['root@127.1'] }],
    ['no mailbox', { email: ['root'] }],
    ['a mailbox of a wildcard', { email: ['root@*.example.com'] }],
    ['dot segments', { uri: ['spiffe://cluster.local/ns/../sa/x'] }],
    ['a dot segment', { uri: ['spiffe://cluster.local/ns/./sa/x'] }],
    ['dot segments at the end', { uri: ['spiffe://cluster.local/ns/a/sa/..'] }],
    ['an escaped dot segment', { uri: ['spiffe://cluster.local/ns/%2E%2E/sa/x'] }],
    ['an escaped slash', { uri: ['spiffe://cluster.local/ns/a%2Fb/sa/x'] }],
    ['an escaped slash in lower case', { uri: ['spiffe://cluster.local/ns/a%2fb/sa/x'] }],
    ['an escaped backslash', { uri: ['spiffe://cluster.local/ns/a%5Cb/sa/x'] }],
    ['an escaped percent sign', { uri: ['spiffe://cluster.local/ns/%252E/sa/x'] }],
    ['an escaped NUL', { uri: ['spiffe://cluster.local/ns/%00/sa/x'] }],
    ['an escaped letter', { uri: ['spiffe://cluster.local/ns/%61/sa/x'] }],
    ['an escape in lower case', { uri: ['spiffe://cluster.local/ns/%c3%a4/sa/x'] }],
    ['an empty segment', { uri: ['spiffe://cluster.local//ns/a/sa/x'] }],
    ['a scheme in upper case', { uri: ['SPIFFE://cluster.local/ns/a/sa/x'] }],
    ['a host in upper case', { uri: ['spiffe://CLUSTER.local/ns/a/sa/x'] }],
    ['user information', { uri: ['https://root@example.com/x'] }],
    ['a backslash', { uri: ['https://example.com/a\\b'] }],
    ['a space', { uri: ['https://example.com/a b'] }],
    ['no scheme', { uri: ['/ns/a'] }],
  ])('%s', async (_name, names) => {
    await expectRefused('plain-names', objectFor('example.com/serving', requestPem(withNames(names))))
  })

  test.each(['https://example.com/\n', 'https://exa%00mple.com/'])(
    'refuses a request with the URI %j, which does not parse',
    async (uri) => {
      const value = sequence(element(contextTag(6), Buffer.from(uri)))
      const pem = requestPem({ subject: { commonName: 'ann' }, extensions: [{ oid: '2.5.29.17', value }] })
      const object = objectFor('example.com/serving', pem)
      expect(await decided(object)).toMatchObject({
        decision: 'ignore',
        reason: expect.stringMatching(/^the request cannot be read: .*uniformResourceIdentifier/),
      })
      expect(await refusedByHand(object)).toMatch(/^request-form: /)
    },
  )

  test.each<[AltNamesDescription]>([
    [{ dns: ['web.example.com', 'WEB.example.com'] }],
    [{ email: ['ann.lee+x@example.com'] }],
    [
      {
        uri: [
          'spiffe://cluster.local/ns/a/sa/b',
          'https://example.com/',
          'https://[2001:db8::1]:8443/x',
          'https://example.com/%C3%A4',
        ],
      },
    ],
  ])('%j is plain', async (names) => {
    const object = objectFor('example.com/serving', requestPem(withNames(names)))
    expect((await decided(object)).findings.find(({ id }) => id === 'plain-names')?.outcome).toBe('met')
    expect(await refusedByHand(object)).toBeUndefined()
  })
})

describe('values that a "*" of a user rule does not match', () => {
  test.each<[string, string, RequestDescription]>([
    ['a wildcard as CN', 'common-name', named('*.apps.example.com')],
    ['a star in a CN', 'common-name', named('a*')],
    ['a star as CN', 'common-name', named('*')],
    ['a star as O', 'organization', { subject: { commonName: 'ann', organization: ['*'] } }],
    ['a wildcard as DNS name', 'dns-names', withNames({ dns: ['*.example.com'] })],
    ['a star in an email address', 'emails', withNames({ email: ['*@example.com'] })],
    ['a star in a URI', 'uris', withNames({ uri: ['spiffe://cluster.local/ns/*/sa/x'] })],
    ['a query', 'uris', withNames({ uri: ['spiffe://cluster.local/ns/a/sa/x?admin'] })],
    ['a fragment', 'uris', withNames({ uri: ['spiffe://cluster.local/ns/a/sa/x#admin'] })],
    ['a reserved CN', 'common-name', named('system:kube-scheduler')],
    ['a reserved O', 'organization', { subject: { commonName: 'ann', organization: ['system:auditors'] } }],
  ])('%s', async (_name, rule, description) => {
    const { decision, findings } = await decided(objectFor('example.com/serving', requestPem(description)))
    expect(decision).toBe('ignore')
    expect(findings.filter(({ outcome }) => outcome === 'unmet').map(({ id }) => id)).toEqual([rule])
  })

  const rule = (fields: string) => `apiVersion: kcert/v1
kind: ApprovalPolicy
rules:
- {name: own, decision: approve, signerNames: ["*/*"], groups: [system:nodes], ${fields}}
`
  const decisionBy = async (fields: string, description: RequestDescription) => {
    const object = objectFor('example.com/serving', requestPem(description), ['server auth'])
    return (await decide(object, await readPolicies(rule(`usages: [server auth], ${fields}`), 'p'), facts))
      .decision
  }

  test('allows them where the rule spells them out', async () => {
    const wild = named('*.apps.example.com')
    expect(await decisionBy('commonNames: ["*.apps.example.com"]', wild)).toBe('ignore')
    expect(await decisionBy('commonNames: ["*.apps.example.com"], wildcards: true', wild)).toBe('approve')
    for (const odd of ['a*.apps.example.com', '*', '**.apps.example.com', '*.*.example.com'])
      expect(await decisionBy('commonNames: ["*", "*.*.*.*"], wildcards: true', named(odd))).toBe('ignore')
    const query = { ...withNames({ uri: ['https://example.com/x?y=z#w'] }), subject: {} }
    expect(await decisionBy('uris: ["https://example.com/x?y=z#w"]', query)).toBe('approve')
    expect(await decisionBy('uris: ["https://example.com/*"]', query)).toBe('ignore')
    expect(await decisionBy('uris: ["https://example.com/*?y=z#w"]', query)).toBe('ignore')
  })

  test('refuses more names than maxNames, counted over all types', async () => {
    const names = {
      dns: ['a.example.com'],
      ip: ['10.0.0.1'],
      email: ['a@example.com'],
      uri: ['https://example.com/'],
    }
    const all =
      'dnsNames: ["*.example.com"], ipAddresses: [10.0.0.1], emails: ["*@example.com"], uris: ["https://example.com/"]'
    const description = { subject: {}, subjectAltNames: names }
    expect(await decisionBy(all, description)).toBe('approve')
    expect(await decisionBy(`${all}, maxNames: 4`, description)).toBe('approve')
    expect(await decisionBy(`${all}, maxNames: 3`, description)).toBe('ignore')
  })
})

describe.each(signerNames)('%s: refuses a request for a CA certificate', (signerName) => {
  const right = honest[signerName]

  test.each<[string, RequestDescription, readonly string[], string]>([
    ['CA:TRUE', { ...right, basicConstraints: { ca: true } }, [], '"CA:TRUE"'],
    ['keyCertSign', { ...right, keyUsage: ['keyCertSign'] }, [], '"keyCertSign"'],
    ['cRLSign', { ...right, keyUsage: ['digitalSignature', 'cRLSign'] }, [], '"cRLSign"'],
    ['usage cert sign', right, ['cert sign'], '"cert sign"'],
    ['usage crl sign', right, ['crl sign'], '"crl sign"'],
  ])('%s', async (_name, description, usages, found) => {
    const object = objectFor(signerName, requestPem(description), [...signers[signerName], ...usages])
    await expectRefused('no-ca', object)
    const { findings } = await decided(object)
    expect(findings.find(({ id }) => id === 'no-ca')?.detail).toBe(
      `it requests ${found}, which only a CA may have`,
    )
  })
})

/** Returns a PEM request with these extensions in addition to correct names. */
function requestWith(description: RequestDescription, ...more: readonly Uint8Array[]): string {
  const extensions = sequence(...encodeExtensions(description, false), ...more)
  return craftedRequestPem(description.subject, [attribute(oidOf('extensionRequest'), extensions)])
}

const extension = (type: string, value: Uint8Array): Uint8Array => sequence(oid(type), octetString(value))

describe.each(signerNames)('%s: refuses extensions that another signer may copy', (signerName) => {
  const right = honest[signerName]

  test.each<[string, string, Uint8Array]>([
    ['codeSigning', 'codeSigning', extension('2.5.29.37', sequence(oid('1.3.6.1.5.5.7.3.3')))],
    ['any usage', 'anyExtendedKeyUsage', extension('2.5.29.37', sequence(oid('2.5.29.37.0')))],
    [
      "Netscape's certificate type of a CA",
      'nsCertType',
      extension('2.16.840.1.113730.1.1', new Uint8Array([3, 2, 0, 7])),
    ],
    [
      "the SID of Microsoft's domain accounts",
      '1.3.6.1.4.1.311.25.2',
      extension('1.3.6.1.4.1.311.25.2', sequence(utf8String('S-1-5-21-500'))),
    ],
    [
      'access to an OCSP responder',
      'authorityInfoAccess',
      extension('1.3.6.1.5.5.7.1.1', sequence(sequence(oid('1.3.6.1.5.5.7.48.1')))),
    ],
  ])('refuses %s', async (_name, found, more) => {
    const object = objectFor(signerName, requestWith(right, more))
    await expectRefused('plain-request', object)
    const { findings } = await decided(object)
    expect(findings.find(({ id }) => id === 'plain-request')?.detail).toContain(`"${found}"`)
  })

  test('refuses an extended key usage where spec.usages has one that is unknown to Kubernetes', async () => {
    const more = extension('2.5.29.37', sequence(oid('1.3.6.1.5.5.7.3.1')))
    const usages = [...signers[signerName], 'server auth', 'fly']
    await expectRefused('plain-request', objectFor(signerName, requestWith(right, more), usages))
  })

  test('approves the usages of spec.usages, basic constraints of a leaf, and the key identifier', async () => {
    const usage = { serverAuth: '1.3.6.1.5.5.7.3.1', clientAuth: '1.3.6.1.5.5.7.3.2' }
    const asked = (signers[signerName] as readonly string[]).includes('server auth')
      ? 'serverAuth'
      : 'clientAuth'
    const pem = requestWith(
      right,
      extension('2.5.29.37', sequence(oid(usage[asked]))),
      extension('2.5.29.19', sequence()),
      extension('2.5.29.15', new Uint8Array([3, 2, 5, 0xa0])),
      extension('2.5.29.14', octetString(Buffer.from('key'))),
    )
    expect((await decided(objectFor(signerName, pem))).decision).toBe('approve')
  })
})

describe('PEM text that programs read differently', () => {
  const right = honest['example.com/serving']
  const pem = requestPem(right)
  const other = requestPem({
    subject: { commonName: 'ann' },
    subjectAltNames: { dns: ['kubernetes.default.svc'] },
  })

  test.each<[string, string, string]>([
    // OpenSSL reads the first block, Go the second one.
    [
      'a "-" before the END line',
      `${other.replace('\n-----END', '\n-\n-----END')}${pem}`,
      'is damaged at line 1',
    ],
    ['a second block', `${pem}${other}`, 'has 2 blocks'],
    ['a damaged block after it', `${pem}${other.replace('-----END', '----END')}`, 'is damaged at line'],
    ['headers', pem.replace('-----\n', '-----\nProc-Type: 4,ENCRYPTED\n\n'), 'has headers'],
  ])('refuses %s', async (_name, text, found) => {
    const object = objectFor('example.com/serving', text)
    await expectRefused('plain-request', object)
    const { findings } = await decided(object)
    expect(findings.find(({ id }) => id === 'plain-request')?.detail).toContain(found)
  })

  test('approves text before the block, as openssl req -text writes it', async () => {
    const object = objectFor('example.com/serving', `Certificate Request:\n    Data:\n${pem}`)
    expect((await decided(object)).decision).toBe('approve')
  })
})

test('refuses a common name that is not a string: Kubernetes ignores it, and other programs do not', async () => {
  const universal = Buffer.concat([
    Buffer.from([0x1c, 20]),
    ...[...'admin'].map((c) => Buffer.from([0, 0, 0, c.charCodeAt(0)])),
  ])
  const subject = sequence(Buffer.concat([Buffer.from([0x31, 29]), sequence(oid('2.5.4.3'), universal)]))
  const { CertificateRequest } = await import('../../x509/request.ts')
  const { readPem } = await import('../../x509/pem.ts')
  const name = (await import('../../x509/name.ts')).parseName(subject)
  expect(name.commonName).toBeUndefined()
  const pem = craftedRequestPem(name, [])
  expect(CertificateRequest.parse(readPem(pem).blocks[0]!.der).unreadAttributes).toEqual([])
  await expectRefused('plain-subject', objectFor('example.com/serving', pem))
})
