import { expect, test } from 'vitest'
import {
  attribute,
  craftedRequestPem,
  extensionsFor,
  requestPem,
  servingDescription,
} from '../../test/csr/made-requests.ts'
import { requestsInMemory } from '../../test/fakes/requests-in-memory.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { markFailed, type SignerTerms, signingCourse, uploadCertificate } from './issuing.ts'
import type { RequestObject } from './requests-api.ts'

const terms: SignerTerms = { isForKubernetes: false, usages: undefined, subjectAttributes: [] }
const approved = [{ type: 'Approved', status: 'True' }]
const request = Buffer.from(requestPem(servingDescription())).toString('base64')

function object(
  spec: Partial<RequestObject['spec']> = {},
  status: RequestObject['status'] = { conditions: approved },
): RequestObject {
  return {
    metadata: { name: 'a' },
    spec: {
      request,
      signerName: 'example.com/serving',
      usages: ['digital signature', 'server auth'],
      ...spec,
    },
    status,
  }
}

test('signs an approved request for spec.usages and the requested lifetime', () => {
  expect(signingCourse(object({ expirationSeconds: 3600 }), terms)).toMatchObject({
    course: 'sign',
    usages: ['digital signature', 'server auth'],
    expirationSeconds: 3600,
  })
})

test.each<[string, RequestObject, string]>([
  ['not approved', object({}, {}), 'skipped'],
  ['denied', object({}, { conditions: [{ type: 'Denied', status: 'True' }] }), 'skipped'],
  [
    'approved, failed',
    object({}, { conditions: [...approved, { type: 'Failed', status: 'True' }] }),
    'skipped',
  ],
  ['issued', object({}, { conditions: approved, certificate: 'LS0t' }), 'already-signed'],
  ['of a signer of Kubernetes', object({ signerName: 'kubernetes.io/kube-apiserver-client' }), 'refused'],
  ['of a name below kubernetes.io', object({ signerName: 'a.kubernetes.io/b' }), 'refused'],
  ['without a request', object({ request: 'AAAA' }), 'rule-violation'],
  ['without usages', object({ usages: [] }), 'rule-violation'],
  ['with an unknown usage', object({ usages: ['server auth', 'flying'] }), 'rule-violation'],
])('does not sign this object: %s', (_, given, course) => {
  expect(signingCourse(given, terms).course).toBe(course)
})

test('applies the rules of kube-controller-manager when it replaces it', () => {
  const inPlace = { ...terms, isForKubernetes: true }
  const serving = { signerName: 'kubernetes.io/kubelet-serving' }
  expect(signingCourse(object(serving), inPlace).course).toBe('sign')
  expect(signingCourse(object({ ...serving, usages: ['client auth'] }), inPlace)).toMatchObject({
    course: 'rule-violation',
    reason: expect.stringContaining('server auth'),
  })
})

test('allows only the usages of the profile', () => {
  const narrow: SignerTerms = { ...terms, usages: ['server auth'] }
  expect(signingCourse(object({ usages: ['server auth'] }), narrow).course).toBe('sign')
  expect(signingCourse(object(), narrow)).toMatchObject({
    course: 'rule-violation',
    reason: 'the profile does not allow "digital signature"',
  })
})

const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
const cut = new KcertError('KCERT_UNREACHABLE', 'the connection was closed')
const conflict = new KcertError('KCERT_API_CONFLICT', 'not what it was')

test('reports a write that never arrived as failed', async () => {
  const api = requestsInMemory()
  const first = api.put(object())
  api.fault = (_, count) => (count === 1 ? { error: cut, when: 'before' } : undefined)
  expect(await uploadCertificate(api, first, pem)).toMatchObject({ outcome: 'failed', error: cut })
  expect(api.writes).toEqual([])
})

test.each([
  ['after', cut],
  ['before', conflict],
  ['after', conflict],
] as const)('leaves one certificate when a write fails %s it happened (%o)', async (when, error) => {
  const api = requestsInMemory()
  const first = api.put(object())
  api.fault = (_, count) => (count === 1 ? { error, when } : undefined)
  expect(await uploadCertificate(api, first, pem)).toMatchObject({ outcome: 'written' })
  expect(Buffer.from(api.peek('a')!.status!.certificate!, 'base64').toString()).toBe(pem)
  expect(api.writes).toHaveLength(1)
})

test('never writes a certificate to a swapped object, in 200 tries', async () => {
  for (let run = 0; run < 200; run++) {
    const api = requestsInMemory()
    const first = api.put(object())
    const at = 1 + (run % 3)
    api.fault = (_, count) => (count === 1 ? { error: conflict, when: 'before' } : undefined)
    api.meanwhile = () => {
      if (api.calls.length !== at) return
      api.remove('a')
      api.put(object({ usages: ['client auth'] }))
    }
    const { outcome } = await uploadCertificate(api, first, pem)
    if (api.peek('a')!.spec.usages![0] === 'client auth')
      expect([outcome, api.peek('a')!.status?.certificate]).toEqual(['changed', undefined])
  }
})

test('keeps a certificate of another signer', async () => {
  const api = requestsInMemory()
  const first = api.put(object())
  api.put({ ...first, status: { ...first.status, certificate: 'b3RoZXI=' } })
  expect(await uploadCertificate(api, first, pem)).toMatchObject({ outcome: 'already-signed' })
  expect(api.peek('a')!.status!.certificate).toBe('b3RoZXI=')
})

test('adds the condition Failed once, with the broken rule', async () => {
  const api = requestsInMemory()
  const first = api.put(object())
  api.fault = (_, count) => (count === 1 ? { error: cut, when: 'after' } : undefined)
  expect(await markFailed(api, first, 'no usages')).toMatchObject({ outcome: 'written' })
  expect(api.peek('a')!.status!.conditions).toEqual([
    ...approved,
    { type: 'Failed', status: 'True', reason: 'SignerValidationFailure', message: 'no usages' },
  ])
})

test('a request that another writer marked as failed is failed, not signed', async () => {
  const api = requestsInMemory()
  const first = api.put(object())
  const failed = { type: 'Failed', status: 'True', reason: 'SignerValidationFailure', message: 'no' }
  api.put({ ...first, status: { ...first.status, conditions: [...approved, failed] } })
  expect(await markFailed(api, first, 'no usages')).toEqual({
    outcome: 'written',
    reason: 'another writer set the condition Failed first',
  })
  expect(api.peek('a')!.status!.conditions).toEqual([...approved, failed])
})

test('does not sign what no kcert policy approves: other subject attributes, and attributes that Kubernetes does not read', () => {
  const of = (pem: string) => object({ request: Buffer.from(pem).toString('base64') })
  const unit = of(requestPem({ subject: { commonName: 'a', organizationalUnit: ['x'] } }))
  expect(signingCourse(unit, terms)).toMatchObject({
    course: 'rule-violation',
    reason: 'the profile does not allow "OU" in the subject',
    fix: expect.stringContaining('--allow-subject-attributes OU'),
  })
  expect(signingCourse(unit, { ...terms, subjectAttributes: ['OU'] }).course).toBe('sign')
  // Go's signer omits these from the certificate.
  const dropped = of(
    requestPem({ subject: [[{ type: 'CN', value: 'a' }], [{ type: 'emailAddress', value: 'a@b' }]] }),
  )
  expect(signingCourse(dropped, terms).course).toBe('sign')
  const microsoft = attribute(
    '1.3.6.1.4.1.311.2.1.14',
    extensionsFor({ subject: {}, subjectAltNames: { dns: ['x'] } }),
  )
  expect(signingCourse(of(craftedRequestPem({ commonName: 'a' }, [microsoft])), terms)).toMatchObject({
    course: 'rule-violation',
    reason: 'the request has "msExtensionRequest", which Kubernetes does not read',
  })
})
