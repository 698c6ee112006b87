import { expect, test } from 'vitest'
import type { ApiCall } from './api-client.ts'
import { StatusError } from './failures.ts'
import type { ApiObject } from './malformed.ts'
import { objectsOf } from './objects.ts'
import type { Resource } from './resource.ts'

const bundles: Resource = {
  group: 'certificates.k8s.io',
  version: 'v1',
  olderVersions: ['v1beta1', 'v1alpha1'],
  resource: 'clustertrustbundles',
}

/**
 * The responses of an API server that serves bundles in these versions and requests in v1, to a user with or without the right.
 */
function answersOf(served: readonly string[], isAllowed: boolean, asked: string[]) {
  const refusal = (purpose: string, status: number): StatusError =>
    new StatusError(
      status === 403 ? 'KCERT_API_FORBIDDEN' : 'KCERT_API_NOT_FOUND',
      purpose,
      {},
      {
        status,
        reason: status === 403 ? 'Forbidden' : 'NotFound',
      },
    )
  return async ({ path, purpose }: ApiCall): Promise<ApiObject> => {
    asked.push(path.replace('/apis/certificates.k8s.io', ''))
    const [, , , version, resource] = path.split('/')
    if (version === undefined)
      return { versions: [...new Set(['v1', ...served])].map((one) => ({ version: one })) }
    const kinds = served.includes(version) ? ['clustertrustbundles'] : []
    if (resource === undefined) {
      if (version !== 'v1' && kinds.length === 0) throw refusal(purpose, 404)
      return { resources: ['certificatesigningrequests', ...kinds].map((name) => ({ name })) }
    }
    if (!isAllowed) throw refusal(purpose, 403)
    if (kinds.length === 0) throw refusal(purpose, 404)
    return { metadata: {}, items: [{ metadata: { name: `of-${version}` } }] }
  }
}

async function listing(served: readonly string[], isAllowed = true) {
  const asked: string[] = []
  const list = objectsOf({ call: answersOf(served, isAllowed, asked) }, async () => {}).list(bundles)
  const found: unknown = await Array.fromAsync(list).catch((error: unknown) => error)
  return { asked, found }
}

const list = (version: string): string => `/${version}/clustertrustbundles`

test.each([
  { served: ['v1', 'v1beta1'], asked: [list('v1')], name: 'of-v1' },
  { served: ['v1beta1'], asked: [list('v1'), '', '/v1', '/v1beta1', list('v1beta1')], name: 'of-v1beta1' },
  {
    served: ['v1alpha1'],
    asked: [list('v1'), '', '/v1', '/v1alpha1', list('v1alpha1')],
    name: 'of-v1alpha1',
  },
])('lists in the newest version of $served', async ({ served, asked, name }) => {
  expect(await listing(served)).toMatchObject({ asked, found: [{ metadata: { name } }] })
})

test.each([true, false])(
  'fails with NotFound for a list that no version serves, allowed: %s',
  async (isAllowed) => {
    const { asked, found } = await listing([], isAllowed)
    expect(asked).toEqual([list('v1'), '', '/v1'])
    expect(found).toMatchObject({ status: 404 })
  },
)

test('reports a forbidden list in the version that the server serves', async () => {
  expect((await listing(['v1'], false)).found).toMatchObject({ status: 403 })
  expect(await listing(['v1beta1'], false)).toMatchObject({
    found: { status: 403 },
    asked: [list('v1'), '', '/v1', '/v1beta1', list('v1beta1')],
  })
})

test.each([{}, { versions: 'v1' }, { versions: [{}] }, { versions: [null] }])(
  'fails as unreachable when the discovery document is malformed: %j',
  async (answer) => {
    const call = async ({ path, purpose }: ApiCall): Promise<ApiObject> => {
      if (path.endsWith('.io')) return answer
      throw new StatusError('KCERT_API_FORBIDDEN', purpose, {}, { status: 403, reason: 'Forbidden' })
    }
    await expect(Array.fromAsync(objectsOf({ call }, async () => {}).list(bundles))).rejects.toMatchObject({
      code: 'KCERT_UNREACHABLE',
    })
  },
)
