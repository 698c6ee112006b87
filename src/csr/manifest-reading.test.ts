import { describe, expect, test } from 'vitest'
import { requestPem } from '../../test/csr/made-requests.ts'
import { admissionFindings } from './admission.ts'
import { preflight, refuseBroken } from './draft.ts'
import { readSigningRequests } from './manifest-reading.ts'

// Objects that the API server rejects before it parses the request.

const pem = requestPem({ subject: { commonName: 'ann' } })
const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64')
const apiVersion = 'certificates.k8s.io/v1'
const kind = 'CertificateSigningRequest'
const spec = {
  request: base64(pem),
  signerName: 'kubernetes.io/kube-apiserver-client',
  usages: ['client auth'],
  expirationSeconds: 3600,
}
const right = { apiVersion, kind, metadata: { name: 'ann' }, spec }

/** Returns the unmet rules of the API server, with their details. */
async function refusals(object: object): Promise<string[]> {
  const [read] = await readSigningRequests(JSON.stringify(object))
  return unmet(read!)
}

type Read = Awaited<ReturnType<typeof readSigningRequests>>[number]

function unmet(object: Read): string[] {
  return admissionFindings(object)
    .filter(({ outcome }) => outcome === 'unmet')
    .map(({ id, detail }) => `${id}: ${detail}`)
}

const withMetadata = (metadata: object) => ({ ...right, metadata: { name: 'ann', ...metadata } })
const withSpec = (change: object) => ({ ...right, spec: { ...spec, ...change } })
const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u' }

test('finds no broken rule in a valid manifest', async () => {
  expect(await refusals(right)).toEqual([])
  expect(
    await refusals(
      withMetadata({
        labels: {
          app: '',
          'example.com/App_1.x': 'A-b_c.9',
          nothing: null,
          ['k'.repeat(63)]: 'v'.repeat(63),
        },
        annotations: { 'Example.com/any': 'any text\n', b: null },
        finalizers: ['example.com/x', 'orphan', 'kubernetes'],
        ownerReferences: [
          { ...owner, controller: true },
          { ...owner, apiVersion: 'v1', controller: false },
          { ...owner, apiVersion: 'events.k8s.io/v1', kind: 'Event' },
        ],
        namespace: null,
      }),
    ),
  ).toEqual([])
})

test('reads every field of the API', async () => {
  const metadata = {
    ...{ name: 'ann', generateName: 'a-', namespace: 'n', selfLink: '/s', uid: 'u-1', resourceVersion: '7' },
    ...{
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      deletionTimestamp: '2026-01-02T00:00:00Z',
    },
    ...{ deletionGracePeriodSeconds: 1, labels: { a: 'b', c: null }, annotations: { d: 'e' } },
    ...{ ownerReferences: [], finalizers: [], managedFields: [] },
  }
  const whole = {
    ...right,
    metadata,
    spec: { ...spec, username: 'ann', uid: 'u-2', groups: ['ops', null], extra: { k: ['v', 'w'] } },
    status: {
      certificate: base64('chain'),
      conditions: [
        { type: 'Approved', status: 'False', reason: 'R', message: 'M', lastUpdateTime: 'T' },
        { status: '' },
      ],
    },
  }
  expect(await readSigningRequests(JSON.stringify(whole))).toEqual([
    {
      apiVersion,
      ...{ name: 'ann', generateName: 'a-', uid: 'u-1', resourceVersion: '7' },
      ...{ creationTimestamp: '2026-01-01T00:00:00Z', deletionTimestamp: '2026-01-02T00:00:00Z' },
      labels: { a: 'b', c: '' },
      annotations: { d: 'e' },
      request: Buffer.from(pem),
      signerName: spec.signerName,
      usages: ['client auth'],
      expirationSeconds: 3600,
      ...{ username: 'ann', userUid: 'u-2', groups: ['ops', ''], extra: { k: ['v', 'w'] } },
      conditions: [
        { type: 'Approved', status: 'False', reason: 'R', message: 'M', lastUpdateTime: 'T' },
        { type: '', status: 'True' },
      ],
      certificate: Buffer.from('chain'),
      faults: ['spec.groups[1] is not a string', 'status.conditions[1].type is missing'],
    },
  ])
})

test('reads a missing field as empty, and lists a field that is not in the API', async () => {
  const empty = {
    apiVersion: '',
    labels: {},
    request: Buffer.of(),
    signerName: '',
    usages: [],
    groups: [],
    extra: {},
    conditions: [],
  }
  const unknown = { kind, a: 1, metadata: { b: 1 }, spec: { c: 1 }, status: { d: 1, certificate: '!' } }
  expect(await readSigningRequests(JSON.stringify({ kind }))).toEqual([empty])
  expect(await readSigningRequests(JSON.stringify(unknown))).toEqual([
    { ...empty, unknownFields: ['a', 'metadata.b', 'spec.c', 'status.d'] },
  ])
})

test.each([
  ['YWJj', 'abc'],
  ['YW\nJ\rj', 'abc'],
  ['YWI=', 'ab'],
  ['YWJ', undefined],
  ['=YWJ', undefined],
  ['YW=J', undefined],
  ['YWJjZ', undefined],
  ['Y-Jj', undefined],
  ['YQ===', undefined],
])('decodes the base64 %j as %j, as Go does', async (request, expected) => {
  const [read] = await readSigningRequests(JSON.stringify(withSpec({ request })))
  expect(read?.request && Buffer.from(read.request).toString()).toBe(expected)
})

test('ignores other objects, alone and in lists', async () => {
  const other = { ...right, kind: 'Secret' }
  const names = async (object: object) =>
    (await readSigningRequests(JSON.stringify(object))).map(({ name }) => name)
  expect(await names(other)).toEqual([])
  expect(await names({ kind: 'SecretList', items: [right] })).toEqual([])
  expect(await names({ apiVersion: 'v1', kind: 'List', items: [other, right] })).toEqual(['ann'])
})

test.each([
  ['a: [', 'the manifest cannot be read at line 1', /./],
  [
    'a: *b',
    'the manifest cannot be read',
    /^a value that starts with "\*" is an alias, and no anchor is before it: quote the value$/,
  ],
])('rejects invalid YAML with the line, if it is known: %s', async (text, message, why) => {
  await expect(readSigningRequests(text)).rejects.toMatchObject({
    code: 'KCERT_MANIFEST_MALFORMED',
    message,
    why: expect.stringMatching(why),
  })
})

test.each<[string, object, string]>([
  ['no apiVersion', { kind, metadata: right.metadata, spec }, 'api-version: the object has none'],
  [
    'an older apiVersion',
    { ...right, apiVersion: 'certificates.k8s.io/v1beta1' },
    'api-version: "certificates.k8s.io/v1beta1"',
  ],
])('rejects %s', async (_name, object, expected) => {
  expect(await refusals(object)).toEqual([expected])
})

test('an item of a CertificateSigningRequestList has the apiVersion of its list, and an item of a List has its own', async () => {
  const item = { kind, metadata: right.metadata, spec }
  expect(await refusals({ apiVersion, kind: `${kind}List`, items: [item] })).toEqual([])
  expect(await refusals({ kind: `${kind}List`, items: [item] })).toEqual(['api-version: the object has none'])
  expect(await refusals({ apiVersion: 'v1', kind: 'List', items: [item] })).toEqual([
    'api-version: the object has none',
  ])
})

test.each<[string, object]>([
  ['spec.expirationSeconds is not a number', withSpec({ expirationSeconds: '3600' })],
  ['spec.usages is not a list', withSpec({ usages: 'client auth' })],
  ['spec.extra["a"] is not a list', withSpec({ extra: { a: 'b' } })],
  ['metadata.name is not a string', withMetadata({ name: 5 })],
  ['metadata.labels["a"] is not a string', withMetadata({ labels: { a: 1 } })],
  ['metadata.labels["a"] is not a string', withMetadata({ labels: { a: true } })],
  ['metadata.labels is not an object', withMetadata({ labels: ['a'] })],
  ['metadata.annotations["a"] is not a string', withMetadata({ annotations: { a: 1.5 } })],
  ['metadata.finalizers is not a list', withMetadata({ finalizers: 'a.b/c' })],
  ['metadata.finalizers[0] is not a string', withMetadata({ finalizers: [1] })],
  ['metadata.ownerReferences is not a list', withMetadata({ ownerReferences: owner })],
  [
    'metadata.ownerReferences[0].controller is not a boolean',
    withMetadata({ ownerReferences: [{ ...owner, controller: 'true' }] }),
  ],
  ['metadata.generation is not a number', withMetadata({ generation: '1' })],
])('rejects a field of another type: %s', async (expected, object) => {
  const found = await refusals(object)
  expect(found).toContain(`object-form: ${expected}`)
})

test.each<[object, string]>([
  [{ labels: { 'a b': 'c' } }, 'metadata.labels: "a b" is not a valid label key'],
  [{ labels: { 'a/b/c': 'c' } }, 'metadata.labels: "a/b/c" is not a valid label key'],
  [{ labels: { 'Example.com/a': 'c' } }, 'metadata.labels: "Example.com/a" is not a valid label key'],
  [{ labels: { '/a': 'c' } }, 'metadata.labels: "/a" is not a valid label key'],
  [{ labels: { 'a.b/': 'c' } }, 'metadata.labels: "a.b/" is not a valid label key'],
  [{ labels: { '': 'c' } }, 'metadata.labels: "" is not a valid label key'],
  [{ labels: { ['a'.repeat(64)]: 'c' } }, `metadata.labels: "${'a'.repeat(64)}" is not a valid label key`],
  [{ labels: { a: '-c' } }, 'metadata.labels: "-c" is not a valid label value'],
  [{ labels: { a: 'x y' } }, 'metadata.labels: "x y" is not a valid label value'],
  [{ labels: { a: 'c'.repeat(64) } }, `metadata.labels: "${'c'.repeat(64)}" is not a valid label value`],
  [{ annotations: { 'a b': 'c' } }, 'metadata.annotations: "a b" is not a valid annotation key'],
  [{ annotations: { a: 'x'.repeat(262_144) } }, 'metadata.annotations have 262145 bytes, more than 262144'],
  [{ finalizers: ['mine'] }, 'metadata.finalizers: "mine" is not DOMAIN/NAME'],
  [{ finalizers: ['a b/c'] }, 'metadata.finalizers: "a b/c" is not DOMAIN/NAME'],
  [
    { finalizers: ['orphan', 'foregroundDeletion'] },
    'metadata.finalizers: orphan and foregroundDeletion are mutually exclusive',
  ],
  [{ ownerReferences: [{ ...owner, uid: '' }] }, 'metadata.ownerReferences[0].uid is empty'],
  [{ ownerReferences: [{ ...owner, name: null }] }, 'metadata.ownerReferences[0].name is empty'],
  [{ ownerReferences: [{ ...owner, kind: '' }] }, 'metadata.ownerReferences[0].kind is empty'],
  [
    { ownerReferences: [{ ...owner, apiVersion: 'a/b/c' }] },
    'metadata.ownerReferences[0].apiVersion is not GROUP/VERSION',
  ],
  [
    { ownerReferences: [{ ...owner, apiVersion: '' }] },
    'metadata.ownerReferences[0].apiVersion is not GROUP/VERSION',
  ],
  [
    { ownerReferences: [{ ...owner, apiVersion: 'apps/' }] },
    'metadata.ownerReferences[0].apiVersion is not GROUP/VERSION',
  ],
  [
    { ownerReferences: [{ ...owner, apiVersion: 'v1', kind: 'Event' }] },
    'metadata.ownerReferences[0]: an Event cannot be an owner',
  ],
  [
    {
      ownerReferences: [
        { ...owner, controller: true },
        { ...owner, controller: true },
      ],
    },
    'metadata.ownerReferences: more than one has controller: true',
  ],
])('rejects metadata %j', async (metadata, expected) => {
  expect(await refusals(withMetadata(metadata))).toEqual([`object-form: ${expected}`])
})

test('accepts annotations of up to 256 KiB in total', async () => {
  expect(await refusals(withMetadata({ annotations: { a: 'x'.repeat(262_143) } }))).toEqual([])
})

test('shows the first three of many errors', async () => {
  const [found] = await refusals(withMetadata({ finalizers: ['a', 'b', 'c', 'd'] }))
  expect(found?.split('; ')).toHaveLength(3)
})

describe('PEM that the API server does not find', () => {
  const bytes = Buffer.from(pem)
  const crOnly = pem.replaceAll('\n', '\r')
  const body = pem.indexOf('\n') + 1

  test.each<[string, string | Buffer, string, string]>([
    ['after a byte order mark', `\ufeff${pem}`, 'a byte order mark', 'tail -c +4 FILE.csr > NEW.csr'],
    ['in UTF-16', Buffer.from(`\ufeff${pem}`, 'utf16le'), 'UTF-16 characters', 'iconv -f UTF-16 -t ASCII'],
    ['with CR line ends', crOnly, 'CR line ends', "tr '\\r' '\\n' < FILE.csr > NEW.csr"],
    ['after a line that ends in CR', `text\r${pem}`, 'CR line ends', 'tr'],
    ['with CR after the BEGIN line', `${pem.slice(0, body - 1)}\r${pem.slice(body)}`, 'CR line ends', 'tr'],
    ['with CR before the END line', pem.replace('\n-----END', '\r-----END'), 'CR line ends', 'tr'],
    ['with CR after the END line', `${pem.trimEnd()}\r`, 'CR line ends', 'tr'],
    ['with blanks and CR after the END line', `${pem.trimEnd()} \t\rtext`, 'CR line ends', 'tr'],
  ])('is rejected and not sent: %s', async (_name, text, form, fix) => {
    const [read] = await readSigningRequests(JSON.stringify(withSpec({ request: base64(text) })))
    const finding = admissionFindings(read!).find(({ outcome }) => outcome === 'unmet')
    expect(finding).toMatchObject({
      id: 'request-pem',
      detail: `the API server cannot find the PEM block in a text with ${form}`,
      fix: expect.stringContaining(fix),
    })
    expect(() => refuseBroken(read!, preflight(read!))).toThrow(
      expect.objectContaining({ code: 'KCERT_CSR_SIGNER_REFUSED', fix: finding!.fix }),
    )
  })

  test.each<[string, string | Buffer]>([
    ['CRLF', pem.replaceAll('\n', '\r\n')],
    ['no newline at the end', pem.trimEnd()],
    ['text before it', `text\n${pem}`],
    ['text after it', `${pem}text\r`],
    ['blanks after the END line', `${pem.trimEnd()} \t\n`],
    ['CR within the base64', pem.replace(/\n(?=[^-\n]+\n-----END)/, '\r')],
    ['as it is', bytes],
  ])('is found with %s', async (_name, text) => {
    expect(await refusals(withSpec({ request: base64(text) }))).toEqual([])
  })
})

test('NodeRestriction rejects a node user without a name for every signer', async () => {
  const groups = ['system:nodes']
  for (const signerName of [spec.signerName, 'example.com/serving'])
    expect(await refusals(withSpec({ signerName, username: 'system:node:', groups }))).toEqual([
      'node-restriction: the user "system:node:" is a node without a name',
    ])
  expect(await refusals(withSpec({ username: 'system:node:', groups: [] }))).toEqual([])
})
