import { expect, test } from 'vitest'
import { bearerOf, joiningRights } from './joining-rights.ts'
import { checkToken, type TokenFindings } from './token-check.ts'
import { kubeadmJoiners } from './token-secret.ts'

const rights = joiningRights(bearerOf('abcdef', [kubeadmJoiners]))

const right: TokenFindings = {
  facts: {
    id: 'abcdef',
    expiration: new Date('2026-11-22T12:00:00Z'),
    usages: ['signing', 'authentication'],
    groups: [kubeadmJoiners],
    faults: [],
  },
  isTheSame: true,
  signature: 'valid',
  recognition: { as: 'authenticated', username: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] },
  rights: rights.map((one) => ({ right: one, allowed: true })),
}

function evaluated(changes: Partial<TokenFindings>) {
  const { verdict, checks } = checkToken({ ...right, ...changes })
  return [verdict, ...checks.filter(({ outcome }) => outcome !== 'ok').map(({ id }) => id)]
}

test('a node can join with a valid token that signs, authenticates and is authorized', () => {
  expect(evaluated({})).toEqual(['ok'])
})

test.each<[string, Partial<TokenFindings>, string[]]>([
  [
    'an expired one',
    { facts: { ...right.facts, faults: [{ id: 'expired', detail: 'it expired' }] } },
    ['expired'],
  ],
  ['another second half', { isTheSame: false }, ['secret']],
  ['one that does not sign', { facts: { ...right.facts, usages: ['authentication'] } }, ['signature']],
  ['one that does not authenticate', { facts: { ...right.facts, usages: ['signing'] } }, ['authentication']],
  ['a stale signature', { signature: 'stale' }, ['signature']],
  ['a missing signature', { signature: 'missing' }, ['signature']],
  ['no cluster-info', { signature: 'no-cluster-info' }, ['signature']],
  ['one that the API server rejects', { recognition: { as: 'rejected' } }, ['authenticated']],
])('%s does not', (_, changes, ids) => {
  expect(evaluated(changes)).toEqual(['failed', ...ids])
})

test('names the flag of an API server that rejects a valid token, and the command that replaces an expired one', () => {
  const nextOf = (changes: Partial<TokenFindings>) =>
    checkToken({ ...right, recognition: { as: 'rejected' }, ...changes }).checks.find(
      ({ id }) => id === 'authenticated',
    )?.next
  expect(nextOf({})).toContain('enable-bootstrap-token-auth')
  const faults = [{ id: 'expired', detail: 'it expired' }] as const
  expect(nextOf({ facts: { ...right.facts, faults } })).toBe('kcert token create')
})

test.each(rights.map((one) => [one.id, one] as const))('without the right %s it is no', (id, missing) => {
  const changed = rights.map((one) => ({ right: one, allowed: one !== missing }))
  expect(evaluated({ rights: changed })).toEqual(['failed', id])
})

test('reports checks without permission as unknown', () => {
  const changed = rights.map((one) => ({ right: one, allowed: undefined }))
  expect(evaluated({ rights: changed })[0]).toBe('unknown')
})

test("checks the rights of kubeadm join only for kubeadm's group", () => {
  const ids = joiningRights(bearerOf('abcdef', ['system:bootstrappers:mine'])).map(({ id }) => id)
  expect(ids).toEqual(['cluster-info', 'create-requests', 'auto-approval', 'renewal'])
})
