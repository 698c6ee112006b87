import { expect, test } from 'vitest'
import type { ApiCall, ApiObject } from './api-client.ts'
import { StatusError } from './failures.ts'
import { objectsOf } from './objects.ts'
import type { Resource } from './resource.ts'

const bundles: Resource = {
  group: 'certificates.k8s.io',
  version: 'v1',
  olderVersions: ['v1beta1', 'v1alpha1'],
  resource: 'clustertrustbundles',
}

/** Lists from an API server that serves these versions, and returns the versions that it was asked for. */
async function listing(served: readonly string[]) {
  const asked: string[] = []
  const call = async ({ path, purpose }: ApiCall): Promise<ApiObject> => {
    const version = path.split('/')[3]!
    asked.push(version)
    if (!served.includes(version))
      throw new StatusError('KCERT_API_NOT_FOUND', purpose, {}, { status: 404, reason: 'NotFound' })
    return { metadata: {}, items: [{ metadata: { name: `of-${version}` } }] }
  }
  const list = objectsOf({ call }, async () => {}).list(bundles)
  const found = await Array.fromAsync(list).catch((error: unknown) => error)
  return { asked, found }
}

test.each([
  { served: ['v1', 'v1beta1'], asked: ['v1'], name: 'of-v1' },
  { served: ['v1beta1'], asked: ['v1', 'v1beta1'], name: 'of-v1beta1' },
  { served: ['v1alpha1'], asked: ['v1', 'v1beta1', 'v1alpha1'], name: 'of-v1alpha1' },
])('a list is asked for in the newest version of $served', async ({ served, asked, name }) => {
  expect(await listing(served)).toMatchObject({ asked, found: [{ metadata: { name } }] })
})

test('a list that no version serves fails as not found', async () => {
  const { asked, found } = await listing([])
  expect(asked).toEqual(['v1', 'v1beta1', 'v1alpha1'])
  expect(found).toMatchObject({ status: 404 })
})
