import { expect, test } from 'vitest'
import { kindOf, readEvent } from './event.ts'

// The events have the fields and formats of kube-apiserver 1.36, level Metadata.

const fingerprint = '3f'.repeat(32)
const event = {
  kind: 'Event',
  apiVersion: 'audit.k8s.io/v1',
  level: 'Metadata',
  auditID: '8ee17730-f830-446e-bd22-ce212d2536a9',
  stage: 'ResponseComplete',
  requestURI: '/api/v1/namespaces/default/pods?limit=500',
  verb: 'list',
  user: {
    username: 'kubernetes-admin',
    groups: ['kubeadm:cluster-admins', 'system:authenticated'],
    extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] },
  },
  sourceIPs: ['192.0.2.7'],
  userAgent: 'kubectl/v1.36.3 (linux/amd64) kubernetes/1c2e10a',
  objectRef: { resource: 'pods', namespace: 'default', apiVersion: 'v1' },
  responseStatus: { metadata: {}, code: 200 },
  requestReceivedTimestamp: '2026-11-25T10:00:00.123456Z',
  stageTimestamp: '2026-11-25T10:00:00.234567Z',
  annotations: { 'authorization.k8s.io/decision': 'allow' },
}
const podUser = {
  username: 'system:serviceaccount:shop:cart',
  uid: 'f1',
  groups: ['system:serviceaccounts', 'system:authenticated'],
  extra: {
    'authentication.kubernetes.io/credential-id': ['JTI=0b6f7b1c-1f54-4a3a-9d5c-0d2a6d5f8c11'],
    'authentication.kubernetes.io/node-name': ['w1'],
    'authentication.kubernetes.io/pod-name': ['cart-0'],
  },
}
const read = (changes: object) => readEvent(JSON.stringify({ ...event, ...changes }))

test('reads the credential, user, address, user agent and time of a request', () => {
  expect(read({})).toEqual({
    atMs: Date.parse('2026-11-25T10:00:00.123Z'),
    isLast: true,
    username: 'kubernetes-admin',
    credentials: [`X509SHA256=${fingerprint}`],
    sourceIp: '192.0.2.7',
    forwardedFor: '',
    userAgent: 'kubectl/v1.36.3 (linux/amd64) kubernetes/1c2e10a',
    pod: '',
    node: '',
    isStale: false,
    issued: undefined,
    certificate: undefined,
  })
})

test('reads the pod and node of a token, and that its pod should have reloaded it', () => {
  const annotations = {
    'authentication.k8s.io/stale-token':
      'subject: system:serviceaccount:shop:cart, seconds after warning threshold: 4185',
  }
  expect(read({ user: podUser, annotations })).toMatchObject({
    credentials: ['JTI=0b6f7b1c-1f54-4a3a-9d5c-0d2a6d5f8c11'],
    pod: 'shop/cart-0',
    node: 'w1',
    isStale: true,
  })
})

test('does not count the earlier stages of a request', () => {
  for (const stage of ['RequestReceived', 'ResponseStarted'])
    expect(read({ stage })).toMatchObject({ isLast: false, username: 'kubernetes-admin' })
  expect(read({ stage: 'Panic' })).toMatchObject({ isLast: true })
})

test('takes the credential of the user that authenticated, not of the one that it impersonates', () => {
  const extra = { 'authentication.kubernetes.io/credential-id': ['JTI=another'] }
  expect(read({ impersonatedUser: { username: 'ann', extra } })).toMatchObject({
    username: 'kubernetes-admin',
    credentials: [`X509SHA256=${fingerprint}`],
  })
})

test('takes the last source address, because the client chooses the others', () => {
  const sourceIPs = ['10.9.9.9', '10.8.8.8', '192.0.2.7']
  expect(read({ sourceIPs })).toMatchObject({ sourceIp: '192.0.2.7', forwardedFor: '10.9.9.9, 10.8.8.8' })
})

test('names a legacy token by its Secret, or by its account where the API server does not name the Secret', () => {
  const user = { ...podUser, extra: undefined }
  const legacy = { 'authentication.k8s.io/legacy-token': 'system:serviceaccount:shop:cart' }
  const secret = { 'authentication.k8s.io/legacy-token-manual-secret': 'cart-token' }
  expect(read({ user, annotations: { ...legacy, ...secret } })).toMatchObject({
    credentials: ['SECRET=shop/cart-token'],
  })
  expect(read({ user, annotations: legacy })).toMatchObject({
    credentials: ['LEGACY=system:serviceaccount:shop:cart'],
  })
  expect(kindOf('SECRET=shop/cart-token')).toBe('legacy-token')
})

test('reads the ID of a token that the request created', () => {
  const annotations = { 'authentication.kubernetes.io/issued-credential-id': 'JTI=1' }
  expect(read({ annotations })).toMatchObject({ issued: 'JTI=1' })
})

test('reads the certificate that a signer adds to a request, and no other object', () => {
  const objectRef = {
    apiGroup: 'certificates.k8s.io',
    resource: 'certificatesigningrequests',
    subresource: 'status',
    name: 'csr-1',
  }
  const requestObject = { status: { certificate: Buffer.from('PEM').toString('base64') } }
  const issued = { verb: 'update', objectRef, requestObject }
  expect(read(issued)).toMatchObject({ certificate: { of: 'csr csr-1', pem: 'PEM' } })
  for (const changes of [
    { verb: 'create' },
    { objectRef: { ...objectRef, apiGroup: 'example.com' } },
    { objectRef: { ...objectRef, subresource: undefined } },
  ])
    expect(read({ ...issued, ...changes })).toMatchObject({ certificate: undefined })
})

test.each([
  ['', 'malformed'],
  ['{"kind":"Event"', 'malformed'],
  ['null', 'malformed'],
  ['[]', 'malformed'],
  ['{}', 'other'],
  ['{"kind":"Event","apiVersion":"v1"}', 'other'],
  ['{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete"}', 'malformed'],
  [
    '{"kind":"Event","apiVersion":"audit.k8s.io/v1","requestReceivedTimestamp":"2026-11-25T10:00:00Z"}',
    'malformed',
  ],
  [
    '{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"Panic","requestReceivedTimestamp":"yesterday"}',
    'malformed',
  ],
])('finds no event in %s', (line, why) => {
  expect(readEvent(line)).toBe(why)
})

test('reads fields of the wrong type as absent', () => {
  const user = { username: 7, extra: { 'authentication.kubernetes.io/credential-id': 'X509SHA256=1' } }
  const wrong = {
    user,
    sourceIPs: { 0: 'a' },
    userAgent: ['a'],
    annotations: 'a',
    objectRef: 3,
    requestObject: null,
  }
  expect(read(wrong)).toMatchObject({
    username: '',
    credentials: [],
    sourceIp: '',
    userAgent: '',
    issued: undefined,
  })
})

test('keeps at most 256 characters of what a client chooses', () => {
  const found = read({ userAgent: 'x'.repeat(1_000_000) })
  expect(found).toMatchObject({ userAgent: `${'x'.repeat(256)}…` })
})
