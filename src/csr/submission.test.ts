import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { clientDescription, clientRequest, requestPem } from '../../test/csr/made-requests.ts'
import { type Fault, requestsInMemory } from '../../test/fakes/requests-in-memory.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { type SubmissionChoice, submitRequest } from './submission.ts'

const request = clientRequest({ name: 'node-1' })
const bytes: SubmissionChoice = { dryRun: false, sameBy: 'bytes' }
const key: SubmissionChoice = { dryRun: false, sameBy: 'key' }
const unreachable = new KcertError('KCERT_UNREACHABLE', 'the connection was closed')

test('creates a missing request, without the fields that the API server sets', async () => {
  const api = requestsInMemory()
  const { outcome, object } = await submitRequest(api, request, bytes)
  expect(outcome).toBe('created')
  expect(object.spec.username).toBeUndefined()
  expect(api.peek('node-1')).toBeDefined()
})

test('creates nothing in a dry run', async () => {
  const api = requestsInMemory()
  expect((await submitRequest(api, request, { ...bytes, dryRun: true })).outcome).toBe('dry-run')
  expect(api.peek('node-1')).toBeUndefined()
})

test('reports the same CSR as existing, in any order of its usages', async () => {
  const api = requestsInMemory()
  await submitRequest(api, request, bytes)
  const again = { ...request, usages: request.usages.toReversed() }
  expect((await submitRequest(api, again, bytes)).outcome).toBe('present')
})

test('compares a newly signed request with the same key and names by key, not by bytes', async () => {
  const api = requestsInMemory()
  await submitRequest(api, request, bytes)
  const signedAgain = { ...request, request: Buffer.from(requestPem(clientDescription())) }
  expect((await submitRequest(api, signedAgain, key)).outcome).toBe('present')
  await expect(submitRequest(api, signedAgain, bytes)).rejects.toMatchObject({
    code: 'KCERT_API_CONFLICT',
    why: 'it is another request for the same key and names, signed again; use another name (--name NAME), or delete the existing object',
  })
})

test('reports a conflict with all differences when another request has the name', async () => {
  const api = requestsInMemory()
  await submitRequest(api, request, bytes)
  const otherKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const description = { ...clientDescription(), subjectAltNames: { dns: ['b', 'a'] } }
  const other = {
    ...request,
    request: Buffer.from(requestPem(description, otherKey)),
    signerName: 'example.com/serving',
    usages: ['server auth'],
    expirationSeconds: 3600,
  }
  const error = await submitRequest(api, other, key).catch((thrown: KcertError) => thrown)
  expect(error).toMatchObject({
    code: 'KCERT_API_CONFLICT',
    message: 'the CertificateSigningRequest "node-1" exists already, with other content',
    why: [
      'its dns names: found none, expected "a", "b"',
      'it is for another key',
      'its signer: found "kubernetes.io/kube-apiserver-client-kubelet", expected "example.com/serving"',
      'its usages: found client auth, digital signature, expected server auth',
      'its expirationSeconds: found none, expected 3600',
      'use another name (--name NAME), or delete the existing object',
    ].join('; '),
  })
})

function faultsOn(...faults: (Fault | undefined)[]): (call: string) => Fault | undefined {
  return (call) => (call === 'create' ? faults.shift() : undefined)
}

test.each([
  ['before it arrived', [{ error: unreachable, when: 'before' }], 2],
  ['after it was done', [{ error: unreachable, when: 'after' }], 1],
  ['three times before', Array<Fault>(3).fill({ error: unreachable, when: 'before' }), 4],
] as const)(
  'reads the object after a connection that is cut %s, and creates it once',
  async (_when, faults, creates) => {
    const api = requestsInMemory()
    api.fault = faultsOn(...faults)
    expect((await submitRequest(api, request, bytes)).outcome).toBe('created')
    expect(api.calls.filter((call) => call === 'create')).toHaveLength(creates)
    expect(api.peek('node-1')).toBeDefined()
  },
)

test('reports an unreachable server', async () => {
  const api = requestsInMemory()
  api.fault = () => ({ error: unreachable, when: 'before' })
  await expect(submitRequest(api, request, bytes)).rejects.toBe(unreachable)
})

test('never sends a request with generateName twice', async () => {
  const api = requestsInMemory()
  const { name: _, ...nameless } = request
  api.fault = faultsOn({ error: unreachable, when: 'after' })
  await expect(submitRequest(api, { ...nameless, generateName: 'csr-' }, bytes)).rejects.toBe(unreachable)
  expect(api.calls).toEqual(['create'])
})

test('retries at most four times when a generated name is taken', async () => {
  const { name: _, ...nameless } = request
  const drawn = { ...nameless, generateName: 'csr-' }
  const taken = { error: new KcertError('KCERT_API_CONFLICT', 'the name exists'), when: 'before' } as const
  const api = requestsInMemory()
  api.fault = faultsOn(taken, taken)
  expect((await submitRequest(api, drawn, bytes)).outcome).toBe('created')
  expect(api.calls).toEqual(['create', 'create', 'create'])
  const crowded = requestsInMemory()
  crowded.fault = () => taken
  await expect(submitRequest(crowded, drawn, bytes)).rejects.toBe(taken.error)
  expect(crowded.calls).toHaveLength(4)
})

test('returns a forbidden error of the API server unchanged', async () => {
  const api = requestsInMemory()
  const forbidden = new KcertError('KCERT_API_FORBIDDEN', 'no')
  api.fault = faultsOn({ error: forbidden, when: 'before' })
  await expect(submitRequest(api, request, bytes)).rejects.toBe(forbidden)
})
