import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { clientRequest, nodeNames, requestPem, servingRequest } from '../../test/csr/made-requests.ts'
import { mlDsaKeys, mlDsaRequest } from '../../test/fixtures/ml-dsa.ts'
import { recorded } from '../../test/truth/recorded.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { RequestDescription } from '../x509/issuing.ts'
import { writePem } from '../x509/pem.ts'
import { PublicKeyInfo } from '../x509/public-key.ts'
import { noFacts } from './approval/facts.ts'
import { factsOfNodes } from './approval/node-list.ts'
import { builtinPolicies, readPolicies } from './approval/policy-file.ts'
import { checkRequest } from './check.ts'
import type { CheckReport } from './check-report.ts'
import { readSigningRequests } from './manifest-reading.ts'
import type { SigningRequest } from './signing-request.ts'

const client = 'kubernetes.io/kube-apiserver-client'
const kubeletClient = 'kubernetes.io/kube-apiserver-client-kubelet'

async function check(object: SigningRequest): Promise<CheckReport> {
  return checkRequest(object, { source: 'x', policies: builtinPolicies, facts: noFacts })
}

/** Returns a request that is not submitted yet. */
function draft(
  description: RequestDescription,
  signerName: string,
  usages: readonly string[],
  { key, ...fields }: Partial<SigningRequest> & { key?: KeyObject } = {},
): SigningRequest {
  return {
    labels: {},
    request: Buffer.from(requestPem(description, ...(key ? [key] : []))),
    signerName,
    usages,
    groups: [],
    extra: {},
    conditions: [],
    ...fields,
  }
}

const ann: RequestDescription = { subject: { commonName: 'ann', organization: ['dev'] } }
const broken = ({ rules }: CheckReport): string[] => rules.filter(({ ok }) => !ok).map(({ id }) => id)

describe('a request with a key that Kubernetes does not support', () => {
  const usages = ['digital signature', 'client auth']
  const unknown =
    'ML-DSA-65, which Kubernetes up to 1.37 and etcd up to 3.7 (Go 1.26) do not support; Kubernetes 1.38 (Go 1.27) is the first to support it, in TLS 1.3'
  const mlDsa = mlDsaKeys['ML-DSA-65']
  const checkOf = (signer: KeyObject) => {
    const der = mlDsaRequest(ann.subject, mlDsa, signer)
    const request = Buffer.from(writePem('CERTIFICATE REQUEST', der))
    return check(draft(ann, client, usages, { request }))
  }
  const faults = ({ rules }: CheckReport) =>
    rules.filter(({ ok }) => !ok).map(({ id, detail }) => [id, detail])

  test('of ML-DSA is rejected by the API server and not signed up to 1.37, although its signature is valid', async () => {
    const report = await checkOf(mlDsa)
    expect(report).toMatchObject({
      request: { publicKey: { algorithm: 'ML-DSA-65' }, signatureAlgorithm: 'ML-DSA-65' },
      decision: 'deny',
      answers: { admission: 'refused', signing: 'retried' },
    })
    expect(faults(report)).toEqual([
      ['request-signature', `it is of ${unknown}`],
      ['key-strength', unknown],
      ['signer-signature', `it requires a signature that it can verify, but it is of ${unknown}`],
    ])
  })

  test('of ML-DSA, signed with another key, does not prove possession', async () => {
    expect(faults(await checkOf(mlDsaKeys.other))).toContainEqual([
      'key-possession',
      'it was not created with the key in the request, so the requester may not hold that key',
    ])
  })

  test('of ML-DSA has unknown proof of possession with an OpenSSL older than 3.5', async () => {
    const refuse = vi.spyOn(PublicKeyInfo.prototype, 'keyObject').mockImplementation(() => {
      throw new KcertError('KCERT_KEY_UNSUPPORTED', 'public key cannot be used')
    })
    onTestFinished(() => refuse.mockRestore())
    const { unknownFacts, decision } = await checkOf(mlDsa)
    expect(decision).toBe('deny')
    expect(unknownFacts).toContainEqual({
      id: 'key-possession',
      question: 'approval',
      duty: 'identity',
      detail: 'it cannot be checked: the OpenSSL of this Node.js does not support its algorithm',
      fix: 'check the signature with OpenSSL 3.5 (openssl req -verify -noout -in FILE)',
      next: 'check the signature with OpenSSL 3.5 (openssl req -verify -noout -in FILE)',
    })
  })

  test.each([
    [768, 'retried', 'RSA 768, which Kubernetes refuses since 1.33 (Go 1.24)'],
    [1024, 'signed', 'RSA 1024 is too weak'],
  ] as const)('RSA of %i bits: the signer %s', async (modulusLength, signing, strength) => {
    const { privateKey: key } = generateKeyPairSync('rsa', { modulusLength })
    const report = await check(draft(ann, client, usages, { key }))
    expect(report.answers).toEqual({ admission: signing === 'signed' ? 'accepted' : 'refused', signing })
    expect(faults(report)).toContainEqual(['key-strength', strength])
  })
})

describe('a request that is not submitted yet', () => {
  test('of a user is accepted and signed, with no objections', async () => {
    const report = await check(draft(ann, client, ['digital signature', 'client auth']))
    expect(report).toMatchObject({
      isSubmitted: false,
      decision: 'approve',
      answers: { admission: 'accepted', signing: 'signed' },
    })
    expect(broken(report)).toEqual([])
    expect(report.unknownFacts.map(({ id, duty }) => [id, duty])).toEqual([
      ['requester', 'identity'],
      ['permission', 'entitlement'],
    ])
  })

  test('for a third-party signer is left to its approvers', async () => {
    expect(await check(draft(ann, 'example.com/serving', ['server auth']))).toMatchObject({
      decision: 'ignore',
      answers: { admission: 'accepted', signing: 'other-signer' },
    })
  })

  test('for an unknown Kubernetes signer stays pending forever', async () => {
    const report = await check(draft(ann, 'kubernetes.io/kube-apiserver-serving', ['server auth']))
    expect(report).toMatchObject({ decision: 'ignore', answers: { signing: 'no-signer' } })
    expect(broken(report)).toEqual(['signer'])
  })

  test('with server auth for the client signer would end as Failed (kubernetes#108633)', async () => {
    const report = await check(draft(ann, client, ['digital signature', 'server auth']))
    expect(report).toMatchObject({ decision: 'deny', answers: { admission: 'accepted', signing: 'failed' } })
    expect(report.rules.find(({ ok }) => !ok)).toEqual({
      id: 'signer-usages',
      question: 'signing',
      ok: false,
      detail:
        'it requires usage client auth, optionally digital signature and key encipherment, and no other, but "client auth" is missing, "server auth" is not allowed',
      fix: expect.stringContaining('--usage "client auth"'),
    })
  })

  test('with system:masters is rejected at admission for the client signer', async () => {
    const masters = { subject: { commonName: 'root', organization: ['system:masters'] } }
    const report = await check(draft(masters, client, ['client auth']))
    expect(report).toMatchObject({ decision: 'deny', answers: { admission: 'refused' } })
    expect(broken(report)).toEqual(['system-masters', 'no-system-masters'])
    expect(broken(await check(draft(masters, 'example.com/x', ['client auth'])))).toEqual([
      'no-system-masters',
    ])
  })

  test('for a node with an empty name is signed by Kubernetes, and should not be approved', async () => {
    const report = await check(
      draft({ subject: { commonName: 'system:node:', organization: ['system:nodes'] } }, kubeletClient, [
        'digital signature',
        'client auth',
      ]),
    )
    expect(report).toMatchObject({ decision: 'deny', answers: { admission: 'accepted', signing: 'signed' } })
    expect(broken(report)).toEqual(['node-name'])
  })

  test.each([
    [-60, ['expiration-seconds']],
    [599, ['expiration-seconds']],
    [600, []],
    [2 ** 31, ['expiration-seconds']],
    [600.5, ['expiration-seconds']],
    [Number.NaN, ['expiration-seconds']],
  ])('for %d seconds breaks %j', async (expirationSeconds, expected) => {
    expect(broken(await check(draft(ann, client, ['client auth'], { expirationSeconds })))).toEqual(expected)
  })

  test.each([
    [[], ['usages-present', 'signer-usages']],
    [['client auth', 'client auth'], ['usages-once']],
    [
      ['client auth', 'clientAuth'],
      ['usages-known', 'signer-usages'],
    ],
  ])('with usages %j breaks %j', async (usages, expected) => {
    expect(broken(await check(draft(ann, client, usages)))).toEqual(expected)
  })

  test.each([
    ['serving', 'signer-name'],
    ['example/serving', 'signer-name'],
    ['example.com/a/b', 'signer-name'],
    ['Example.com/serving', 'signer-name'],
    ['example.com/', 'signer-name'],
    ['', 'signer-name'],
    [`${'a.'.repeat(127)}b/x`, 'signer-name'],
    [`${'a'.repeat(64)}.com/x`, 'signer-name'],
    ['kubernetes.io/legacy-unknown', 'signer-name'],
  ])('for a signer named %j breaks %s', async (signerName, id) => {
    expect(broken(await check(draft(ann, signerName, ['client auth'])))).toContain(id)
  })

  test('lists the usages that kubelets request for each key type', async () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    const ids = async (usages: string[], key?: KeyObject) =>
      (await check(draft(ann, client, usages, key ? { key } : {}))).advice.map(({ id }) => id)
    expect(await ids(['digital signature', 'client auth'])).toEqual([])
    expect(await ids(['digital signature', 'key encipherment', 'client auth'])).toEqual(['usages-by-key'])
    expect(await ids(['digital signature', 'client auth'], rsa)).toEqual(['usages-by-key'])
    expect(await ids(['digital signature', 'key encipherment', 'client auth'], rsa)).toEqual([])
  })

  test('reports what the signer drops, and the effect on clients', async () => {
    const description: RequestDescription = {
      ...ann,
      keyUsage: ['digitalSignature'],
      extendedKeyUsage: ['clientAuth'],
    }
    const dropping = await check(draft(description, client, ['client auth']))
    expect(dropping.advice).toEqual([
      expect.objectContaining({
        id: 'dropped-extensions',
        detail: expect.stringContaining('"keyUsage", "extKeyUsage"'),
      }),
    ])
    const nameless = await check(draft(ann, 'example.com/serving', ['server auth']))
    expect(nameless.advice.map(({ id }) => id)).toEqual(['server-names'])
  })

  test('reports unknown fields of a manifest', async () => {
    const request = Buffer.from(requestPem(ann)).toString('base64')
    const spec = { request, signerName: client, usages: ['client auth'], expirationSecond: 900 }
    const manifest = { kind: 'CertificateSigningRequest', metadata: { name: 'ann', lables: {} }, spec }
    const [object] = await readSigningRequests(JSON.stringify(manifest))
    const { advice } = await check(object!)
    expect(advice.map(({ id, detail }) => [id, detail])).toEqual([
      ['unknown-fields', 'unknown field "metadata.lables", "spec.expirationSecond": the API server drops it'],
    ])
  })
})

describe('a submitted object', () => {
  test('is approved only when all facts are available', async () => {
    const report = await check(servingRequest())
    expect(report).toMatchObject({ isSubmitted: true, decision: 'ignore' })
    expect(broken(report)).toEqual([])
    expect(report.unknownFacts.map(({ id }) => id)).toEqual(['node-exists', 'own-names'])
    expect(report.duties.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['identity', 'unknown'],
      ['entitlement', 'unknown'],
    ])
  })

  test('is approved from files alone, where they contain all facts', async () => {
    const addresses = [
      ...nodeNames.dns.map((address) => ({ type: 'InternalDNS', address })),
      ...nodeNames.ip.map((address) => ({ type: 'InternalIP', address })),
    ]
    const policies = await readPolicies(
      'apiVersion: kcert/v1\nkind: ApprovalPolicy\ncluster: {apiServers: [10.1.0.2], serviceCidrs: [10.96.0.0/12]}\nrules: [{builtin: kubelet-serving}]\n',
      'p',
    )
    const facts = factsOfNodes([{ name: 'node-1', addresses, isControlPlane: false }])
    const report = await checkRequest(servingRequest(), { source: 'x', policies, facts })
    expect(report).toMatchObject({ decision: 'approve' })
    expect(report.duties.map(({ outcome }) => outcome)).toEqual(['met', 'met'])
  })

  test('from another node violates NodeRestriction and the policy', async () => {
    const report = await check(clientRequest({ username: 'system:node:node-2' }))
    expect(report).toMatchObject({ decision: 'ignore', answers: { admission: 'refused' } })
    expect(broken(report)).toEqual(['node-restriction', 'requester'])
  })

  test('that is already approved or denied is skipped', async () => {
    const conditions = [{ type: 'Approved', status: 'True' }]
    expect((await check(servingRequest({ conditions }))).reason).toBe('already approved')
  })
})

describe('input that is not a request', () => {
  test.each<[string, Uint8Array | undefined, string]>([
    ['no base64', undefined, 'request-pem'],
    ['nothing', Buffer.from(''), 'request-pem'],
    ['no PEM', Buffer.from('hello'), 'request-pem'],
    [
      'a damaged block',
      Buffer.from('-----BEGIN CERTIFICATE REQUEST-----\n!!\n-----END CERTIFICATE REQUEST-----\n'),
      'request-pem',
    ],
    [
      'a certificate',
      Buffer.from('-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n'),
      'request-pem',
    ],
    [
      'a private key',
      Buffer.from('-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n'),
      'request-pem',
    ],
    [
      'no DER',
      Buffer.from('-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n'),
      'request-form',
    ],
  ])('%s: reports only that the API server rejects it', async (_name, request, id) => {
    const report = await check(draft(ann, client, ['client auth'], { request }))
    expect(report).toMatchObject({ decision: 'deny', answers: { admission: 'refused', signing: 'failed' } })
    expect(broken(report)).toEqual([id])
    expect(report.request).toBeUndefined()
  })
})

interface SignerCase {
  readonly id: string
  readonly expect: string
  readonly signerName: string
  readonly usages: string[]
  readonly request: string
}

const truth = recorded<{ cases: SignerCase[] }>('signer-validation.json')

test.skipIf(truth === undefined)(
  'matches the recorded outcome of kube-controller-manager for approved requests',
  async () => {
    const answers: Record<string, string[]> = {
      sign: ['signed'],
      fail: ['failed'],
      refuse: ['no-signer', 'other-signer'],
    }
    for (const one of truth!.cases.filter(({ expect: expected }) => expected in answers)) {
      const { request, signerName, usages } = one
      const report = await check(draft(ann, signerName, usages, { request: Buffer.from(request) }))
      expect({ id: one.id, answer: report.answers.signing }).toEqual({
        id: one.id,
        answer: expect.toBeOneOf(answers[one.expect]!),
      })
      if (one.expect === 'fail')
        expect({ id: one.id, decision: report.decision }).toEqual({ id: one.id, decision: 'deny' })
    }
  },
)
