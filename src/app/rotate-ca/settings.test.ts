import { expect, test } from 'vitest'
import { settingsOf } from './settings.ts'

test.for([
  ['ECDSA-P256', 'ECDSA-P256'],
  ['p384', 'ECDSA-P384'],
  ['rsa3072', 'RSA-3072'],
  ['RSA-2048', 'RSA-2048'],
] as const)('--algorithm %s is the key type %s of kubeadm', ([algorithm, keyType]) => {
  expect(settingsOf({ algorithm }, {}).keyType).toBe(keyType)
  expect(settingsOf({ algorithm, ca: 'etcd' }, {}).keyType).toBe(keyType)
  expect(settingsOf({}, {})).not.toHaveProperty('keyType')
})

test.for(['RSA-2056', 'RSA-1024', 'ECDSA-P521', 'Ed25519', 'ML-DSA-65', ''])(
  '--algorithm %j is wrong usage',
  (algorithm) => {
    expect(() => settingsOf({ algorithm }, {})).toThrow(expect.objectContaining({ code: 'KCERT_USAGE' }))
  },
)

test('--etcd-clients is a choice of --ca etcd, and absent unless given', () => {
  for (const one of ['known', 'unknown'] as const)
    expect(settingsOf({ ca: 'etcd', 'etcd-clients': one }, {}).etcdClients).toBe(one)
  expect(settingsOf({ ca: 'etcd' }, {})).not.toHaveProperty('etcdClients')
  for (const ca of [undefined, 'cluster'])
    expect(() => settingsOf({ ca, 'etcd-clients': 'unknown' }, {})).toThrow(
      expect.objectContaining({ code: 'KCERT_USAGE', message: '--etcd-clients requires --ca etcd' }),
    )
})
