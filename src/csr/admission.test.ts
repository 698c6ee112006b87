import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { requestPem, servingRequest } from '../../test/csr/made-requests.ts'
import { readPem, writePem } from '../x509/pem.ts'
import { admissionFindings } from './admission.ts'
import type { SigningRequest } from './signing-request.ts'

const right = servingRequest()

/** Returns one line per rule: "+id: detail" when it is met, "-id: detail" when it is not. */
function findings(change: Partial<SigningRequest> = {}): string[] {
  return admissionFindings({ ...right, ...change }).map(
    ({ id, detail, outcome, question }) =>
      `${question === 'admission' && outcome === 'met' ? '+' : '-'}${id}: ${detail}`,
  )
}

const unmet = (change: Partial<SigningRequest>): string[] =>
  findings(change).filter((one) => one.startsWith('-'))

const met = [
  '+api-version: certificates.k8s.io/v1',
  '+object-form: every field has its type, and the metadata is valid',
  '+object-name: "csr-7x2lq"',
  '+request-form: PKCS#10 request for the key ECDSA P-256',
  '+request-signature: signed with the private key of the request',
  '+usages-present: "digital signature", "server auth"',
  '+usages-known: all are usages of certificates.k8s.io',
  '+usages-once: no usage is repeated',
  '+signer-name: kubernetes.io/kubelet-serving',
  '+expiration-seconds: not set: the signer decides',
  '+system-masters: not requested',
  '+node-restriction: system:node:node-1 requests its own name',
]

test('a request that the API server accepts meets every rule, in order', () => {
  expect(findings()).toEqual(met)
})

test('skips the object rules for a bare PEM or DER request', () => {
  const { apiVersion, ...file } = right
  expect(admissionFindings(file).map(({ id }) => id)).toEqual(
    met.slice(3).map((one) => one.slice(1).split(':')[0]),
  )
})

const { privateKey: rsaKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const { privateKey: smallKey } = generateKeyPairSync('rsa', { modulusLength: 512 })
const subject = { commonName: 'system:node:node-1', organization: ['system:nodes'] }

function forged(): Buffer {
  const [block] = readPem(Buffer.from(requestPem({ subject }, rsaKey))).blocks
  const der = Buffer.from(block!.der)
  der[der.length - 1]! ^= 1
  return Buffer.from(writePem('CERTIFICATE REQUEST', der))
}

test.each<[string, Partial<SigningRequest>, string]>([
  [
    'an RSA key',
    { request: Buffer.from(requestPem({ subject }, rsaKey)) },
    '+request-form: PKCS#10 request for the key RSA 2048',
  ],
  [
    'an Ed25519 key',
    { request: Buffer.from(requestPem({ subject }, generateKeyPairSync('ed25519').privateKey)) },
    '+request-form: PKCS#10 request for the key Ed25519',
  ],
  ['a name to be completed', { name: '', generateName: 'csr-' }, '+object-name: "csr-…"'],
  ['ten minutes', { expirationSeconds: 600 }, '+expiration-seconds: 600'],
  ['the longest time', { expirationSeconds: 2 ** 31 - 1 }, '+expiration-seconds: 2147483647'],
  [
    'system:masters for another signer',
    {
      signerName: 'example.com/a',
      request: Buffer.from(requestPem({ subject: { commonName: 'a', organization: ['system:masters'] } })),
    },
    '+system-masters: forbidden for kubernetes.io/kube-apiserver-client alone',
  ],
])('%s: met', (_, change, expected) => {
  expect(findings(change)).toContain(expected)
  expect(unmet(change)).toEqual([])
})

const masters = requestPem({ subject: { commonName: 'a', organization: ['system:masters'] } })

test.each<[string, Partial<SigningRequest>, string, fix: RegExp]>([
  ['no name', { name: '', generateName: '' }, '-object-name: the object has none', /^write metadata.name$/],
  ['a name with a slash', { name: 'a/b' }, '-object-name: ', /lower-case/],
  ['a generated name with a slash', { name: '', generateName: 'a/b' }, '-object-name: ', /lower-case/],
  ['a generated name with a slash beside a name', { generateName: 'a/b' }, '-object-name: ', /lower-case/],
  [
    'another version',
    { apiVersion: 'v1' },
    '-api-version: "v1"',
    /^write apiVersion: certificates.k8s.io\/v1$/,
  ],
  ['four faults', { faults: ['a', 'b', 'c', 'd'] }, '-object-form: a; b; c', /^correct the manifest$/],
  ['no PEM', { request: Buffer.from('x') }, '-request-pem: ', /./],
  [
    'a forged signature',
    { request: forged() },
    '-request-signature: it was not created with the key',
    /with its own key$/,
  ],
  [
    'a key that Kubernetes does not use',
    { request: Buffer.from(requestPem({ subject }, smallKey)) },
    '-request-signature: Kubernetes does not support such keys',
    /that Kubernetes supports$/,
  ],
  ['no usages', { usages: [] }, '-usages-present: spec.usages is empty', /--usage "client auth"$/],
  ['an unknown usage', { usages: ['server auth', 'x'] }, '-usages-known: "x" is not one', /client auth/],
  ['a usage twice', { usages: ['any', 'any'] }, '-usages-once: "any" is repeated', /once$/],
  [
    'legacy-unknown',
    { signerName: 'kubernetes.io/legacy-unknown' },
    '-signer-name: kubernetes.io/legacy-unknown was removed',
    /kubelet-serving/,
  ],
  ['a signer without a domain', { signerName: 'x' }, '-signer-name: "x" ', /example.com/],
  [
    'half a second',
    { expirationSeconds: 600.5 },
    '-expiration-seconds: 600.5 is not a 32-bit number',
    /86400/,
  ],
  [
    'too many seconds',
    { expirationSeconds: 2 ** 31 },
    '-expiration-seconds: 2147483648 is not a 32-bit number',
    /86400/,
  ],
  ['too few seconds', { expirationSeconds: 599 }, '-expiration-seconds: 599 is below 600', /600 seconds/],
  [
    'system:masters',
    { signerName: 'kubernetes.io/kube-apiserver-client', username: 'ann', request: Buffer.from(masters) },
    '-system-masters: kubernetes.io/kube-apiserver-client with O=system:masters is forbidden',
    /cluster-admin/,
  ],
  [
    'another node',
    { username: 'system:node:b' },
    '-node-restriction: system:node:b requests "system:node:node-1"',
    /CN=system:node:b$/,
  ],
  [
    'another node, of kubelet-client',
    { username: 'system:node:b', signerName: 'kubernetes.io/kube-apiserver-client-kubelet' },
    '-node-restriction: system:node:b requests',
    /CN=system:node:b$/,
  ],
  [
    'a node without a name',
    { username: 'system:node:' },
    '-node-restriction: the user "system:node:" is a node without a name',
    /CN=system:node: and its name$/,
  ],
])('%s: rejected', (_, change, expected, fix) => {
  expect(unmet(change)).toEqual([expect.stringContaining(expected)])
  expect(admissionFindings({ ...right, ...change }).find(({ outcome }) => outcome === 'unmet')?.fix).toMatch(
    fix,
  )
})

test.each<[string, Partial<SigningRequest>]>([
  ['a user', { username: 'ann' }],
  ['a node outside of system:nodes', { groups: [] }],
  ['another signer', { signerName: 'example.com/a', username: 'system:node:b' }],
])('NodeRestriction ignores %s', (_, change) => {
  expect(findings(change).filter((one) => one.includes('node-restriction'))).toEqual([])
})

test('compares 100,000 usages in linear time', () => {
  const usages = Array.from({ length: 100_000 }, (_, index) => `usage ${index}`)
  const before = process.threadCpuUsage()
  expect(unmet({ usages: [...usages, 'usage 7'] })).toContain('-usages-once: "usage 7" is repeated')
  expect(process.threadCpuUsage(before).user).toBeLessThan(3_000_000)
})
