import { beforeAll, describe, expect, test } from 'vitest'
import type { Cluster } from '../../src/cluster/cluster.ts'
import type { RequestChange, RequestObject } from '../../src/csr/requests-api.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import type { RequestDescription } from '../../src/x509/issuing.ts'
import { requestPem } from '../csr/made-requests.ts'
import { codeOf } from './errors.ts'
import { gather, newName, openAs, type Stage } from './stage.ts'

const apiServerClient = 'kubernetes.io/kube-apiserver-client'
const approved = { type: 'Approved', status: 'True', reason: 'Tested', message: 'by the contract' }
const denied = { ...approved, type: 'Denied' }

function newRequest(
  fields: Partial<RequestObject['spec']> = {},
  description?: RequestDescription,
): RequestObject {
  const pem = requestPem(description ?? { subject: { commonName: 'ann', organization: ['shop'] } })
  return {
    metadata: { name: newName('contract') },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: 'example.com/contract',
      usages: ['digital signature', 'client auth'],
      ...fields,
    },
  }
}

function withConditions(object: RequestObject, ...conditions: object[]): RequestObject {
  return { ...object, status: { ...object.status, conditions: conditions as never } }
}

/** The contract of RequestsApi, and of an API server for CSRs: for the fake and for a real API server. */
export function requestsApiContract(open: () => Promise<Stage>): void {
  describe('CSRs of a cluster', () => {
    let stage: Stage
    let cluster: Cluster
    beforeAll(async () => {
      stage = await open()
      cluster = stage.administrator
      return () => stage.close()
    })
    const create = (fields?: Partial<RequestObject['spec']>): Promise<RequestObject> =>
      cluster.requests.create(newRequest(fields))

    describe('creating', () => {
      test('sets the requester, UID, version and time on the server', async () => {
        const ann = await openAs(stage, {
          username: 'ann',
          groups: ['shop', 'staff'],
          uid: '42',
          extra: { 'example.com/floor': ['3', '4'] },
        })
        await stage.grant({
          username: 'ann',
          verbs: ['create', 'get'],
          group: 'certificates.k8s.io',
          resources: ['certificatesigningrequests'],
        })
        const sent = newRequest({ username: 'root', groups: ['system:masters'] })
        const created = await ann.requests.create(withConditions(sent, approved))
        expect(created.spec).toMatchObject({
          ...sent.spec,
          username: 'ann',
          uid: '42',
          groups: ['shop', 'staff', 'system:authenticated'],
          extra: { 'example.com/floor': ['3', '4'] },
        })
        expect(created.metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
        expect(created.metadata.resourceVersion).toMatch(/^\d+$/)
        expect(created.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
        expect(created.status?.conditions ?? []).toEqual([])
        const { managedFields: _, ...read } = ((await ann.requests.get(sent.metadata.name!))?.metadata ??
          {}) as Record<string, unknown>
        expect(read).toMatchObject({ name: sent.metadata.name, uid: created.metadata.uid })
        ann.close()
      })

      test('rejects a second object with the same name as a conflict', async () => {
        const { metadata } = await create()
        const again = { ...newRequest(), metadata: { name: metadata.name! } }
        expect(await codeOf(cluster.requests.create(again))).toBe('KCERT_API_CONFLICT')
      })

      test('stores nothing in a dry run', async () => {
        const object = newRequest()
        const answered = await cluster.requests.create(object, { dryRun: true })
        expect(answered.spec.username).toBeDefined()
        expect(await cluster.requests.get(object.metadata.name!)).toBeUndefined()
      })

      test('generates a name for generateName', async () => {
        const object = { ...newRequest(), metadata: { generateName: 'contract-made-' } }
        const { metadata } = await cluster.requests.create(object)
        expect(metadata.name).toMatch(/^contract-made-.+/)
      })

      test.each([
        ['an unknown usage', { usages: ['world domination'] }],
        ['no usages', { usages: [] }],
        ['a usage twice', { usages: ['client auth', 'client auth'] }],
        ['a signer without a path', { signerName: 'example.com' }],
        ['a lifetime below ten minutes', { expirationSeconds: 599 }],
        ['data that is not a request', { request: Buffer.from('nothing').toString('base64') }],
      ])('refuses %s', async (_, fields) => {
        expect(await codeOf(create(fields))).toBe('KCERT_API_INVALID')
      })

      test('refuses a name with a slash', async () => {
        const object = { ...newRequest(), metadata: { name: 'contract/../nodes' } }
        expect(await codeOf(cluster.requests.create(object))).toBe('KCERT_API_INVALID')
      })

      test('forbids system:masters for the API server’s client signer', async () => {
        const pem = requestPem({ subject: { commonName: 'eve', organization: ['system:masters'] } })
        const request = Buffer.from(pem).toString('base64')
        const settings = create({ request, signerName: apiServerClient, usages: ['client auth'] })
        expect(await codeOf(settings)).toBe('KCERT_API_FORBIDDEN')
      })
    })

    test('returns undefined for a missing object', async () => {
      expect(await cluster.requests.get(newName('nobody'))).toBeUndefined()
    })

    describe('writing the approval', () => {
      test('sets the condition and its times, and nothing else', async () => {
        const object = await create()
        const changed = { ...withConditions(object, approved), spec: { ...object.spec, username: 'root' } }
        const written = await cluster.requests.replaceApproval(changed)
        expect(written.status?.conditions).toMatchObject([approved])
        expect(written.status?.conditions?.[0]?.lastUpdateTime).toMatch(/Z$/)
        expect(written.status?.conditions?.[0]?.lastTransitionTime).toMatch(/Z$/)
        expect(written.spec).toEqual(object.spec)
        expect(written.metadata.resourceVersion).not.toBe(object.metadata.resourceVersion)
      })

      test('rejects an older resourceVersion as a conflict, and changes nothing', async () => {
        const object = await create()
        await cluster.requests.replaceApproval(withConditions(object, approved))
        const late = cluster.requests.replaceApproval(withConditions(object, denied))
        expect(await codeOf(late)).toBe('KCERT_API_CONFLICT')
        expect((await cluster.requests.get(object.metadata.name!))?.status?.conditions).toMatchObject([
          approved,
        ])
      })

      test('rejects another UID as a conflict', async () => {
        const object = await create()
        const metadata = { ...object.metadata, uid: '00000000-0000-4000-8000-000000000000' }
        const other = cluster.requests.replaceApproval(withConditions({ ...object, metadata }, approved))
        expect(await codeOf(other)).toBe('KCERT_API_CONFLICT')
      })

      test('sends nothing without UID or resourceVersion', async () => {
        const { metadata, spec } = await create()
        for (const missing of ['uid', 'resourceVersion'] as const) {
          const partial = { ...metadata, [missing]: undefined } as RequestObject['metadata']
          const settings = cluster.requests.replaceApproval(
            withConditions({ metadata: partial, spec }, approved),
          )
          expect(await codeOf(settings)).toBe('KCERT_API_INVALID')
        }
      })

      test('reports a deleted object as not found', async () => {
        const object = await create()
        const deleted = await cluster.objects.delete({
          group: 'certificates.k8s.io',
          version: 'v1',
          resource: 'certificatesigningrequests',
          name: object.metadata.name!,
        })
        expect(deleted).toBe(true)
        expect(await codeOf(cluster.requests.replaceApproval(withConditions(object, approved)))).toBe(
          'KCERT_API_NOT_FOUND',
        )
      })

      test.each([
        ['both Approved and Denied', [approved, denied]],
        ['Approved twice', [approved, approved]],
        ['Approved with status False', [{ ...approved, status: 'False' }]],
        ['a condition without a type', [{ ...approved, type: '' }]],
      ])('refuses %s', async (_, conditions) => {
        const object = await create()
        const settings = cluster.requests.replaceApproval(withConditions(object, ...conditions))
        expect(await codeOf(settings)).toBe('KCERT_API_INVALID')
      })

      test('does not revoke an approval', async () => {
        const object = await cluster.requests.replaceApproval(withConditions(await create(), approved))
        expect(await codeOf(cluster.requests.replaceApproval(withConditions(object)))).toBe(
          'KCERT_API_INVALID',
        )
        expect(await codeOf(cluster.requests.replaceApproval(withConditions(object, denied)))).toBe(
          'KCERT_API_INVALID',
        )
      })

      test('keeps the resourceVersion for an identical write', async () => {
        const object = await cluster.requests.replaceApproval(withConditions(await create(), approved))
        const again = await cluster.requests.replaceApproval(object)
        expect(again.metadata.resourceVersion).toBe(object.metadata.resourceVersion)
      })

      test('also requires the verb approve on the signer', async () => {
        const bob = await openAs(stage, { username: 'bob' })
        const grant = { username: 'bob', group: 'certificates.k8s.io' }
        await stage.grant({ ...grant, verbs: ['update'], resources: ['certificatesigningrequests/approval'] })
        const settings = withConditions(await create(), approved)
        expect(await codeOf(bob.requests.replaceApproval(settings))).toBe('KCERT_API_FORBIDDEN')
        const names = ['example.com/*']
        await stage.grant({ ...grant, verbs: ['approve'], resources: ['signers'], names })
        expect((await bob.requests.replaceApproval(settings)).status?.conditions).toMatchObject([approved])
        bob.close()
      })
    })

    describe('writing the status', () => {
      const certificatePem = (): string => {
        const [block = ''] = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n/.exec(
          Buffer.from(caOf(stage), 'base64').toString('utf8'),
        ) ?? ['']
        return Buffer.from(block).toString('base64')
      }

      test('stores a certificate, which cannot be replaced', async () => {
        const object = await cluster.requests.replaceApproval(withConditions(await create(), approved))
        const certificate = certificatePem()
        const signed = await cluster.requests.replaceStatus({
          ...object,
          status: { ...object.status, certificate },
        })
        expect(signed.status?.certificate).toBe(certificate)
        expect(signed.status?.conditions).toMatchObject([approved])
        const twice = Buffer.from(`${Buffer.from(certificate, 'base64')}`.repeat(2)).toString('base64')
        const again = { ...signed, status: { ...signed.status, certificate: twice } }
        expect(await codeOf(cluster.requests.replaceStatus(again))).toBe('KCERT_API_INVALID')
      })

      test('does not approve', async () => {
        const settings = cluster.requests.replaceStatus(withConditions(await create(), approved))
        expect(await codeOf(settings)).toBe('KCERT_API_INVALID')
      })

      test('stores the condition Failed', async () => {
        const failed = { type: 'Failed', status: 'True', reason: 'Tested', message: 'no' }
        const written = await cluster.requests.replaceStatus(withConditions(await create(), failed))
        expect(written.status?.conditions).toMatchObject([failed])
      })

      test.each([
        ['a certificate that is none', 'no PEM at all'],
        ['a private key', '-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n'],
      ])('refuses %s', async (_, text) => {
        const object = await create()
        const status = { ...object.status, certificate: Buffer.from(text).toString('base64') }
        expect(await codeOf(cluster.requests.replaceStatus({ ...object, status }))).toBe('KCERT_API_INVALID')
      })
    })

    describe('listing', () => {
      test('selects by signer, by label and by name', async () => {
        const signerName = `example.com/${newName('listed')}`
        const label = newName('label')
        const made = []
        for (const value of ['a', 'b', 'c']) {
          const { metadata, spec } = newRequest({ signerName })
          const labels = { [label]: value }
          made.push(await cluster.requests.create({ metadata: { ...metadata, labels }, spec }))
        }
        const names = (objects: RequestObject[]): (string | undefined)[] =>
          objects.map(({ metadata }) => metadata.name)
        const [a, b, c] = names(made)
        const list = async (selection: Parameters<typeof cluster.requests.list>[0]) =>
          names(await gather(cluster.requests.list(selection))).sort()
        expect(await list({ signerName })).toEqual([a, b, c].sort())
        expect(await list({ labelSelector: `${label}=b` })).toEqual([b])
        expect(await list({ labelSelector: `${label} in (a, c)` })).toEqual([a, c].sort())
        expect(await list({ labelSelector: `${label},${label}!=a`, signerName })).toEqual([b, c].sort())
        expect(await list({ labelSelector: `${label} notin (a)`, signerName })).toEqual([b, c].sort())
        expect(await list({ labelSelector: `!${label}`, signerName })).toEqual([])
        expect(await list({ fieldSelector: `metadata.name=${a}`, signerName })).toEqual([a])
        expect(await list({ fieldSelector: `metadata.name!=${a}`, signerName })).toEqual([b, c].sort())
      })

      test('returns items with kind and apiVersion', async () => {
        await create()
        for (const object of await gather(cluster.requests.list()))
          expect(object).toMatchObject({
            apiVersion: 'certificates.k8s.io/v1',
            kind: 'CertificateSigningRequest',
          })
      })

      test('rejects an unsupported field selector', async () => {
        const settings = gather(cluster.requests.list({ fieldSelector: 'spec.username=ann' }))
        expect(await codeOf(settings)).toBe('KCERT_API_INVALID')
      })
    })

    describe('watching', () => {
      const collect = async (name: string, until: (changes: RequestChange[]) => boolean) => {
        const end = new AbortController()
        const changes: RequestChange[] = []
        const done = (async () => {
          for await (const change of cluster.requests.watch(name, end.signal)) {
            changes.push(change)
            if (until(changes)) end.abort()
          }
        })()
        return { changes, done }
      }

      test('returns the current object, each change, and its deletion', async () => {
        const object = await create()
        const name = object.metadata.name!
        const { changes, done } = await collect(name, (observed) => observed.at(-1)?.type === 'DELETED')
        await expect.poll(() => changes.length, { timeout: 60_000 }).toBe(1)
        await cluster.requests.replaceApproval(withConditions(object, approved))
        await expect.poll(() => changes.length, { timeout: 60_000 }).toBe(2)
        await cluster.objects.delete({
          group: 'certificates.k8s.io',
          version: 'v1',
          resource: 'certificatesigningrequests',
          name,
        })
        await done
        expect(changes.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
        expect(changes[1]?.object.status?.conditions).toMatchObject([approved])
      })

      test('waits for a name that does not exist yet', async () => {
        const object = newRequest()
        const { changes, done } = await collect(object.metadata.name!, (observed) => observed.length === 1)
        await create()
        await cluster.requests.create(object)
        await done
        expect(changes[0]?.object.metadata.name).toBe(object.metadata.name)
      })

      test('ends without a change when its signal aborts', async () => {
        const end = new AbortController()
        const observed = gather(cluster.requests.watch(newName('never'), end.signal))
        setImmediate(() => end.abort())
        expect(await observed).toEqual([])
      })
    })

    describe('kube-controller-manager', () => {
      const settled = async (name: string): Promise<RequestObject> => {
        for await (const { object } of cluster.requests.watch(name, AbortSignal.timeout(180_000))) {
          const failed = object.status?.conditions?.some(({ type }) => type === 'Failed')
          if (object.status?.certificate || failed) return object
        }
        throw new Error(`nobody signed ${name}`)
      }

      test('signs an approved request with the requested subject and lifetime', async () => {
        const object = await create({
          signerName: apiServerClient,
          usages: ['digital signature', 'client auth'],
          expirationSeconds: 3600,
        })
        await cluster.requests.replaceApproval(withConditions(object, approved))
        const { status } = await settled(object.metadata.name!)
        const [certificate] = readCertificates(Buffer.from(status!.certificate!, 'base64'))
        expect(certificate!.subject.commonName).toBe('ann')
        const seconds = (certificate!.notAfter.getTime() - certificate!.notBefore.getTime()) / 1000
        expect(seconds).toBe(3600 + 300)
      })

      test('sets the condition Failed on a request that breaks the signer’s rules', async () => {
        const object = await create({ signerName: apiServerClient, usages: ['server auth'] })
        await cluster.requests.replaceApproval(withConditions(object, approved))
        const { status } = await settled(object.metadata.name!)
        expect(status?.conditions?.map(({ type }) => type).sort()).toEqual(['Approved', 'Failed'])
        expect(status?.conditions?.find(({ type }) => type === 'Failed')?.reason).toBe(
          'SignerValidationFailure',
        )
        expect(status?.certificate).toBeUndefined()
      })
    })
  })
}

function caOf({ kubeconfig }: Stage): string {
  const [{ cluster }] = kubeconfig.clusters as [{ cluster: Record<string, string> }]
  return cluster['certificate-authority-data']!
}
