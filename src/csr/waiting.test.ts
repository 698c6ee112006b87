import { expect, test } from 'vitest'
import { clientRequest } from '../../test/csr/made-requests.ts'
import { type RequestsInMemory, requestsInMemory } from '../../test/fakes/requests-in-memory.ts'
import { stateOf } from './life.ts'
import { newRequestObject } from './request-object.ts'
import type { RequestObject } from './requests-api.ts'
import { waitForCertificate } from './waiting.ts'

function stored(): { api: RequestsInMemory; object: RequestObject } {
  const api = requestsInMemory()
  return { api, object: api.put(newRequestObject(clientRequest({ name: 'node-1' }))) }
}

function approved(object: RequestObject): RequestObject {
  return { ...object, status: { conditions: [{ type: 'Approved', status: 'True' }] } }
}

function issued(object: RequestObject): RequestObject {
  return {
    ...object,
    status: { conditions: [{ type: 'Approved', status: 'True' }], certificate: 'aGVsbG8=' },
  }
}

const forEver = new AbortController().signal
const soon = () => new Promise((resolve) => setImmediate(resolve))

test('waits for the certificate, and reports every step', async () => {
  const { api, object } = stored()
  const seen: string[] = []
  const waiting = waitForCertificate(api, {
    name: 'node-1',
    signal: forEver,
    onChange: (one) => seen.push(stateOf(one)),
  })
  await soon()
  api.put(approved(object))
  await soon()
  api.put(issued(object))
  expect(stateOf((await waiting)!)).toBe('issued')
  expect(seen).toEqual(['pending', 'approved', 'issued'])
})

test('does not wait for an issued object, and waits for a name that does not exist yet', async () => {
  const api = requestsInMemory()
  const waiting = waitForCertificate(api, { name: 'node-1', signal: forEver })
  await soon()
  api.put(issued(newRequestObject(clientRequest({ name: 'node-1' }))))
  expect(stateOf((await waiting)!)).toBe('issued')
  expect(stateOf((await waitForCertificate(api, { name: 'node-1', signal: forEver }))!)).toBe('issued')
})

test.each(['Denied', 'Failed'])('stops waiting when the object is %s', async (type) => {
  const { api, object } = stored()
  api.put({ ...object, status: { conditions: [{ type, status: 'True' }] } })
  const found = await waitForCertificate(api, { name: 'node-1', signal: forEver })
  expect(found?.conditions[0]?.type).toBe(type)
})

test('returns the object in its current state after the timeout', async () => {
  const { api } = stored()
  const over = new AbortController()
  const waiting = waitForCertificate(api, { name: 'node-1', signal: over.signal })
  await soon()
  over.abort()
  expect(stateOf((await waiting)!)).toBe('pending')
})

test('throws when the object is deleted during the wait', async () => {
  const { api } = stored()
  const waiting = waitForCertificate(api, { name: 'node-1', signal: forEver })
  const outcome = expect(waiting).rejects.toMatchObject({ code: 'KCERT_API_NOT_FOUND' })
  await soon()
  api.remove('node-1')
  await outcome
})

test('throws when another object has the name, because its certificate belongs to another requester', async () => {
  const { api } = stored()
  const waiting = waitForCertificate(api, { name: 'node-1', uid: 'another', signal: forEver })
  await expect(waiting).rejects.toMatchObject({ code: 'KCERT_API_CONFLICT' })
})
