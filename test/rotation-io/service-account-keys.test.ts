import { describe, expect, test } from 'vitest'
import { observeServiceAccountKeys } from '../../src/app/rotate-sa-key/plan.ts'
import { StatusError } from '../../src/cluster/failures.ts'
import type { ApiObject } from '../../src/cluster/malformed.ts'
import type { ObjectsApi } from '../../src/cluster/objects.ts'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type { NodeAccess } from '../../src/pki/node-access.ts'
import { readInventory } from '../../src/rotation/inventory.ts'
import { serviceAccountKeyPlan } from '../../src/rotation/service-account-key/plan.ts'
import type { Site } from '../../src/site/site.ts'
import { serviceAccountKeys } from '../fixtures/service-account-keys.ts'
import { testKey } from '../pki/kubeadm-tree.ts'
import { now } from './memory-node.ts'

// The service account keys and tokens of a cluster, read from nodes and objects in the format of an API server.

const [rsa, ecdsa] = serviceAccountKeys
const signingKey = testKey('service account').export({ format: 'pem', type: 'pkcs8' })
const base64 = (text: string) => Buffer.from(text).toString('base64')

const argv = [
  'kube-apiserver',
  '--service-account-key-file=/sa.pub',
  '--service-account-signing-key-file=/sa.key',
]

/** A node with kube-apiserver, and one token in a pod, without its signature as the script prints it. */
function controlPlane(name: string): NodeAccess {
  const [header, claims] = rsa.boundToken.split('.')
  return {
    name,
    processes: async (programs: readonly string[]) =>
      programs.includes('kube-apiserver') ? [{ program: 'kube-apiserver', argv }] : [],
    readFiles: async (paths: readonly string[]) =>
      paths.map((path) => ({
        ...{ found: 'file', path },
        content: Buffer.from(path === '/sa.key' ? signingKey : rsa.publicKey),
      })),
    run: async () => ({ status: 0, stdout: Buffer.from(`m ${header}.${claims} /token\n`), stderr: '' }),
  } as unknown as NodeAccess
}

interface Lists {
  readonly nodes?: readonly ApiObject[]
  readonly secrets?: readonly ApiObject[] | 403 | 500
  readonly configmaps?: readonly ApiObject[]
  readonly uploaded?: object | 403
}

async function observed(lists: Lists = {}, broken?: string) {
  const inventory = await readInventory(`apiVersion: kcert/v1
kind: Inventory
access: {by: command, argv: ['false']}
nodes:
- {name: cp1, role: control-plane, addresses: [192.0.2.1], layout: kubeadm}
- {name: w1, role: worker, addresses: [192.0.2.2], layout: kubeadm}
kubeconfigs:
- {name: "alice's laptop"}
`)
  const refusal = (status: number) =>
    new StatusError(
      status === 403 ? 'KCERT_API_FORBIDDEN' : 'KCERT_UNREACHABLE',
      'no',
      { why: 'RBAC' },
      { status, reason: '' },
    )
  const objects = {
    async *list({ resource }, selection) {
      // None of these nodes has the label of a control plane.
      const items = selection?.labelSelector ? [] : (lists[resource as keyof Lists] ?? [])
      if (typeof items === 'number') throw refusal(items)
      yield* items as ApiObject[]
    },
    async get() {
      if (typeof lists.uploaded === 'number') throw refusal(lists.uploaded)
      return lists.uploaded
    },
  } as Pick<ObjectsApi, 'get' | 'list'> as ObjectsApi
  const site = {
    inventory,
    objects,
    clock: () => now,
    node: (name: string) =>
      name === broken
        ? {
            name,
            processes: async () =>
              Promise.reject(new KcertError('KCERT_NODE_UNREACHABLE', `${name}: no route`)),
          }
        : controlPlane(name),
    readAt: async () => ({ keys: [{ kid: rsa.keyId }] }),
  } as unknown as Site
  return observeServiceAccountKeys(site)
}

const secret = (name: string, token: string, metadata = {}): ApiObject => ({
  metadata: { namespace: 'a', name, ...metadata },
  type: 'kubernetes.io/service-account-token',
  data: { token: base64(token) },
})

test('reads every node of inventory and cluster, and every API server', async () => {
  const { controlPlanes, nodes, otherKubeconfigs, hasUploadedCerts } = await observed({
    nodes: [{ metadata: { name: 'w2' } }],
  })
  expect(nodes.map(({ node }) => node)).toEqual(['cp1', 'w1', 'w2'])
  expect(nodes[0]?.tokens).toMatchObject({ value: { mounted: [{ keyId: rsa.keyId }], files: [] } })
  expect(controlPlanes).toMatchObject([
    { node: 'cp1', keys: { value: { apiServer: { served: { value: [rsa.keyId] } } } } },
  ])
  expect({ otherKubeconfigs, hasUploadedCerts }).toEqual({
    otherKubeconfigs: ["alice's laptop"],
    hasUploadedCerts: { value: false },
  })
})

test('lists tokens of Secrets and ConfigMaps with their owners, once each', async () => {
  const owned = secret('web', rsa.legacyToken, {
    ownerReferences: [{ kind: 'ServiceAccount', name: 'web', controller: true }],
  })
  const { objects } = await observed({
    secrets: [owned, owned],
    configmaps: [
      { metadata: { namespace: 'b', name: 'c' }, data: { 'a.yaml': `token: ${ecdsa.legacyToken}` } },
    ],
  })
  expect(objects).toEqual([
    {
      kind: 'Secret',
      tokens: {
        value: [
          expect.objectContaining({
            kind: 'Secret',
            location: 'a/web data[token]',
            owner: 'ServiceAccount web',
          }),
        ],
      },
    },
    {
      kind: 'ConfigMap',
      tokens: { value: [expect.objectContaining({ kind: 'ConfigMap', location: 'b/c data[a.yaml]' })] },
    },
  ])
})

test.each([
  [
    'a password for a registry',
    'kubernetes.io/dockerconfigjson',
    JSON.stringify({ auths: { 'registry.shop.example': { password: rsa.legacyToken } } }),
  ],
  ['a password', 'kubernetes.io/basic-auth', rsa.legacyToken],
  ['beside certificates', 'Opaque', `# Bearer ${rsa.legacyToken}\n${rsa.publicKey}`],
  [
    'in a malformed kubeconfig',
    'Opaque',
    `apiVersion: v1\nkind: Config\nclusters: [\nusers:\n- user:\n    token: ${rsa.legacyToken}\n`,
  ],
])('finds a token that is %s', async (_what, type, text) => {
  const { objects } = await observed({
    secrets: [{ metadata: { namespace: 'a', name: 'x' }, type, data: { value: base64(text) } }],
  })
  expect(objects[0]?.tokens).toMatchObject({ value: [{ claims: { keyId: rsa.keyId } }] })
})

describe('what cannot be read blocks the plan', () => {
  const blockersOf = async (...asked: Parameters<typeof observed>) =>
    serviceAccountKeyPlan(await observed(...asked), 'routine').blockers.map(({ what }) => what)

  test('of a node that does not answer: its keys and its tokens', async () => {
    expect(await blockersOf({}, 'cp1')).toEqual([
      'the keys on cp1: not read',
      'the tokens on cp1: not read',
      'no API server was found on the nodes of the inventory',
    ])
  })

  test.each([403, 500] as const)('of Secrets: %s', async (secrets) => {
    expect(await blockersOf({ secrets })).toEqual(['Secrets: not read'])
  })

  test('of the Secret kubeadm-certs', async () => {
    const blockers = await blockersOf({ uploaded: 403 })
    expect(blockers).toContain('the Secret kube-system/kubeadm-certs: not read')
  })

  test('of a control plane that is not in the inventory, even if its label cannot be listed', async () => {
    const labels = { 'node-role.kubernetes.io/control-plane': '' }
    const nodes = [{ metadata: { name: 'cp2', labels } }]
    expect(await blockersOf({ nodes }, 'cp2')).toContain('the keys on cp2: not read')
  })
})

test('contains no part of a token', async () => {
  const plan = serviceAccountKeyPlan(await observed({ secrets: [secret('web', rsa.legacyToken)] }), 'routine')
  const text = JSON.stringify(plan)
  expect(plan.tokens).toHaveLength(1)
  const traces = [rsa.legacyToken, rsa.boundToken].flatMap((token) => token.match(/.{12}/g)!)
  expect(traces.filter((trace) => text.includes(trace))).toEqual([])
})
