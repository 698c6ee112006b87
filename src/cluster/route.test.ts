import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fakeCluster } from '../../test/cluster/fake-cluster.ts'
import { codeOf } from '../../test/contract/errors.ts'
import { gather } from '../../test/contract/stage.ts'
import type { Resource } from './resource.ts'

// An API server reached by another route than the kubeconfig's, as the same user.

const maps: Resource = { group: '', version: 'v1', resource: 'configmaps', namespace: 'default' }

/** A kubeconfig whose server is a load balancer in front of this API server. */
async function behindBalancer(servingNames: { dns?: string[]; ip?: string[] }) {
  const { server, folder, open } = await fakeCluster({ servingNames })
  server.put(maps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' } })
  const user = { username: 'admin', groups: ['system:masters'] }
  const file = server.writeKubeconfig(join(folder, 'balanced'), user, {
    server: 'https://balancer.example:6443/clusters/one',
  })
  const cluster = await open(file)
  const names = (given: string[]) =>
    cluster.through({ dial: () => connect(server.port, '127.0.0.1'), names: given })
  return { server, listed: (...given: string[]) => gather(names(given).list(maps)), names }
}

test('lists at an API server behind the load balancer as the user of the kubeconfig', async () => {
  const { server, listed } = await behindBalancer({ dns: ['kubernetes'], ip: ['192.0.2.1'] })
  for (const names of [['kubernetes'], ['192.0.2.9', '192.0.2.1']]) {
    expect(await listed(...names)).toMatchObject([{ metadata: { name: 'one' } }])
  }
  expect(server.calls.map(({ username }) => username)).toEqual(['admin', 'admin'])
})

test('reads a path with its own media type', async () => {
  const { names } = await behindBalancer({ dns: ['kubernetes'] })
  expect(await names(['kubernetes']).read('/openid/v1/jwks')).toMatchObject({ keys: [{ kid: 'one' }] })
  expect(await codeOf(names(['kubernetes']).read('/openid/v2'))).toBe('KCERT_API_NOT_FOUND')
})

test('accepts a certificate that has the name of the load balancer', async () => {
  const { listed } = await behindBalancer({ dns: ['balancer.example'] })
  expect(await listed('192.0.2.1')).toHaveLength(1)
})

test('sends nothing to a server whose certificate has none of the names', async () => {
  const { server, listed } = await behindBalancer({ dns: ['web.example'] })
  expect(await codeOf(listed('192.0.2.1', 'kubernetes'))).toBe('KCERT_API_UNTRUSTED')
  expect(server.calls).toEqual([])
})
