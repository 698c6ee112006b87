import { expect, test } from 'vitest'
import { readCfsslRequest } from './cfssl-request.ts'

const read = (request: object) => readCfsslRequest(JSON.stringify(request))

test('reads the request of the Kubernetes documentation unchanged', async () => {
  const text = `{
  "hosts": [
    "my-svc.my-namespace.svc.cluster.local",
    "192.0.2.24",
    "fd00::1"
  ],
  "CN": "my-pod.my-namespace.pod.cluster.local",
  "key": {
    "algo": "ecdsa",
    "size": 256
  }
}
`
  expect(await readCfsslRequest(text)).toEqual({
    subject: [[{ type: 'CN', value: 'my-pod.my-namespace.pod.cluster.local' }]],
    altNames: {
      dns: ['my-svc.my-namespace.svc.cluster.local'],
      ip: ['192.0.2.24', 'fd00::1'],
      email: [],
      uri: [],
    },
    keyType: { algorithm: 'ECDSA', curve: 'P-256' },
    leftOut: [],
  })
})

test("writes names as a subject in Go's order, with values of one type together", async () => {
  const { subject } = await read({
    CN: 'x',
    serialnumber: '7',
    names: [
      {
        O: 'one',
        C: 'DE',
        ST: 'Land',
        L: 'Berlin',
        OU: 'unit',
        E: 'a@example.com',
        OID: { '1.2.3.4': 'v' },
      },
      { O: 'two' },
    ],
  })
  expect(subject).toEqual([
    [{ type: 'C', value: 'DE' }],
    [{ type: 'ST', value: 'Land' }],
    [{ type: 'L', value: 'Berlin' }],
    [
      { type: 'O', value: 'one' },
      { type: 'O', value: 'two' },
    ],
    [{ type: 'OU', value: 'unit' }],
    [{ type: 'CN', value: 'x' }],
    [{ type: 'serialNumber', value: '7' }],
    [{ type: '1.2.3.4', value: 'v' }],
    [{ type: 'emailAddress', value: 'a@example.com' }],
  ])
})

test('distinguishes hosts by kind as cfssl does, and ignores an empty one', async () => {
  const { altNames } = await read({
    hosts: ['', '10.0.0.1', 'a@example.com', 'spiffe://a/b', '*.example.com'],
  })
  expect(altNames).toEqual({
    ip: ['10.0.0.1'],
    email: ['a@example.com'],
    uri: ['spiffe://a/b'],
    dns: ['*.example.com'],
  })
})

test('reads lifetime and path length of the ca section; pathlen 0 means no limit without pathlenzero', async () => {
  expect((await read({ ca: { expiry: '87600h', pathlen: 1 } })).ca).toEqual({
    expiryMs: 315_360_000_000,
    pathLength: 1,
  })
  expect((await read({ ca: { pathlen: 0 } })).ca).toEqual({})
  expect((await read({ ca: { pathlenzero: true, backdate: '1h' } })).ca).toEqual({
    pathLength: 0,
    backdateMs: 3_600_000,
  })
})

test('finds members in any case, as Go does', async () => {
  expect((await read({ cn: 'x', KEY: { Algo: 'rsa', SIZE: 2048 } })).keyType).toEqual({
    algorithm: 'RSA',
    bits: 2048,
  })
})

test('lists members that kcert ignores', async () => {
  const { leftOut } = await read({
    CN: 'x',
    delegation_enabled: true,
    extensions: [],
    crl_url: 'http://x/crl',
  })
  expect(leftOut).toEqual(['delegation_enabled', 'crl_url'])
})

test.each([
  [{ key: { algo: 'rsa', size: 1024 } }, 'key: algo "rsa", size 1024'],
  [{ key: { algo: 'dsa', size: 2048 } }, 'key: algo "dsa", size 2048'],
  [{ key: { algo: 'ecdsa', size: '256' } }, 'key.size'],
  [{ hosts: 'localhost' }, 'hosts'],
  [{ names: ['x'] }, 'names'],
  [{ names: [{ O: 7 }] }, 'names.O'],
  [{ names: [{ OID: { nonsense: 'x' } }] }, 'names: OID "nonsense"'],
  [{ ca: { pathlen: -1 } }, 'ca: pathlen -1'],
])('rejects %j: %s', async (request, what) => {
  await expect(read(request)).rejects.toThrow(`the cfssl request is invalid: ${what}`)
})

test.each(['', '[]', '"x"', '{', '{}{}', `${'['.repeat(100_000)}`, '\0\0\0'])(
  '%j is not a request',
  async (text) => {
    await expect(readCfsslRequest(text)).rejects.toThrow('the cfssl request is not a JSON object')
  },
)
