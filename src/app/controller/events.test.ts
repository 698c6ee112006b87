import { expect, test } from 'vitest'
import { StatusError } from '../../cluster/failures.ts'
import type { ApiObject } from '../../cluster/malformed.ts'
import { createEvent } from './events.ts'

const object = {
  metadata: { name: 'csr-1', uid: 'uid-1', resourceVersion: '7' },
  spec: { request: '', signerName: 'example.com/x' },
}
const by = { now: new Date('2026-11-26T10:00:00Z'), instance: 'pod-1_x' }

async function created(message: string, uid = 'uid-1'): Promise<ApiObject & { metadata: { name: string } }> {
  let seen: ApiObject = {}
  const objects = {
    create: async (_: unknown, event: ApiObject) => {
      seen = event
      return event
    },
  }
  const one = { ...object, metadata: { ...object.metadata, uid } }
  await createEvent(objects, one, { type: 'Warning', reason: 'NotApproved', message }, by)
  return seen as never
}

test('refers to the object by UID, in the namespace that the API server requires', async () => {
  expect(await created('own-names: x')).toMatchObject({
    metadata: { namespace: 'default' },
    involvedObject: { kind: 'CertificateSigningRequest', name: 'csr-1', uid: 'uid-1' },
    reason: 'NotApproved',
    source: { component: 'kcert-controller' },
    firstTimestamp: '2026-11-26T10:00:00Z',
  })
})

test('has one name for the same text on the same object, so that another replica does not repeat it', async () => {
  const names = [await created('a'), await created('a'), await created('b'), await created('a', 'uid-2')]
  const [first, again, ...others] = names.map(({ metadata }) => metadata.name)
  expect(first).toMatch(/^kcert-controller\.[0-9a-f]{16}$/)
  expect(again).toBe(first)
  expect(new Set([first, ...others]).size).toBe(3)
})

test('escapes hidden characters, and keeps within the limit of the API server', async () => {
  expect((await created('a\nb\u202ec')).message).toBe('a\\u000ab\\u202ec')
  for (const character of ['x', 'ü', '日', '🦊']) {
    const message = String((await created(character.repeat(2_000))).message)
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024)
    expect(message).toMatch(new RegExp(`^(${character})+…$`, 'u'))
  }
})

test('an Event that exists is not an error, and any other refusal is', async () => {
  const refusing = (status: number) => ({
    create: async () => {
      throw new StatusError('KCERT_API_CONFLICT', 'refused', {}, { status, reason: '' })
    },
  })
  const told = { type: 'Normal', reason: 'Approved', message: 'x' } as const
  await createEvent(refusing(409), object, told, by)
  await expect(createEvent(refusing(403), object, told, by)).rejects.toThrow('refused')
})
