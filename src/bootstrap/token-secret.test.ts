import { expect, test } from 'vitest'
import {
  kubeadmJoiners,
  readTokenSecret,
  type SecretObject,
  secretOfToken,
  tokenOfSecret,
} from './token-secret.ts'

const now = new Date('2026-11-21T12:00:00Z')
const token = { id: 'abcdef', secret: '0123456789abcdef' }

const fields: Record<string, string> = {
  'token-id': 'abcdef',
  'token-secret': '0123456789abcdef',
  expiration: '2026-11-22T12:00:00Z',
  'usage-bootstrap-signing': 'true',
  'usage-bootstrap-authentication': 'true',
  'auth-extra-groups': kubeadmJoiners,
}

function secret(
  changes: Record<string, string | undefined> = {},
  object: Partial<SecretObject> = {},
): SecretObject {
  const data = Object.entries({ ...fields, ...changes }).filter(([, value]) => value !== undefined)
  return {
    metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
    data: Object.fromEntries(data.map(([key, value]) => [key, Buffer.from(value!).toString('base64')])),
    ...object,
  }
}

function faultsOf(object: SecretObject): string[] {
  return readTokenSecret(object, now).faults.map(({ id }) => id)
}

test('reads a kubeadm token without faults, and returns nothing of its secret', () => {
  const facts = readTokenSecret(secret(), now)
  expect(facts).toEqual({
    id: 'abcdef',
    expiration: new Date('2026-11-22T12:00:00Z'),
    usages: ['signing', 'authentication'],
    groups: [kubeadmJoiners],
    faults: [],
  })
  expect(JSON.stringify(facts)).not.toContain(token.secret)
  expect(tokenOfSecret(secret())).toEqual(token)
})

test('treats an unreadable expiration as expired, and a missing one as never', () => {
  expect(faultsOf(secret({ expiration: 'tomorrow' }))).toEqual(['expiration-unreadable'])
  expect(faultsOf(secret({ expiration: '2026-11-21T12:00:00Z' }))).toEqual(['expired'])
  expect(faultsOf(secret({ expiration: undefined }))).toEqual([])
})

test('enables a usage only for the value true', () => {
  const facts = readTokenSecret(secret({ 'usage-bootstrap-signing': 'True' }), now)
  expect(facts.usages).toEqual(['authentication'])
})

test.each<[string, SecretObject, string[]]>([
  ['another type', secret({}, { type: 'Opaque' }), ['type']],
  [
    'a name that is not that of its id',
    secret({}, { metadata: { name: 'bootstrap-token-zzzzzz' } }),
    ['name'],
  ],
  ['an id in capitals', secret({ 'token-id': 'ABCDEF' }), ['token-id', 'name']],
  ['a short secret half', secret({ 'token-secret': 'short' }), ['token-secret']],
  [
    'a group without the prefix of bootstrap groups',
    secret({ 'auth-extra-groups': 'system:masters' }),
    ['auth-extra-groups'],
  ],
])('reports %s', (_, object, faults) => {
  expect(faultsOf(object)).toEqual(faults)
})

test('creates the Secret of a new token with the requested settings', () => {
  const settings = {
    token,
    description: 'for node 7',
    expiration: new Date('2026-11-22T12:00:00.123Z'),
    usages: ['signing', 'authentication'],
    groups: [kubeadmJoiners],
  } as const
  expect(readTokenSecret(secretOfToken(settings), now)).toEqual({
    id: 'abcdef',
    description: 'for node 7',
    expiration: new Date('2026-11-22T12:00:00Z'),
    usages: settings.usages,
    groups: settings.groups,
    faults: [],
  })
})
