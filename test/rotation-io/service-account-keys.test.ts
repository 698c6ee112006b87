import { describe, expect, test } from 'vitest'
import { observeServiceAccountKeys } from '../../src/app/rotate-sa-key/plan.ts'
import { StatusError } from '../../src/cluster/failures.ts'
import type { ApiObject } from '../../src/cluster/malformed.ts'
import type { ObjectsApi } from '../../src/cluster/objects.ts'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type { NodeAccess } from '../../src/pki/node-access.ts'
import { serviceAccountKeyPlan } from '../../src/rotation/service-account-key/plan.ts'
import { readPem } from '../../src/x509/pem.ts'
import { keyIdOf, publicKeyIn } from '../../src/x509/service-account-token.ts'
import { serviceAccountKeys } from '../fixtures/service-account-keys.ts'
import { type NodeTree, testKey } from '../pki/kubeadm-tree.ts'
import { MemoryNode } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

// The service account keys and tokens of a cluster, read from nodes and objects in the format of an API server.

const [rsa, ecdsa] = serviceAccountKeys
const signingKey = testKey('service account').export({ format: 'pem', type: 'pkcs8' })
const base64 = (text: string) => Buffer.from(text).toString('base64')

const flags = [
  '--service-account-key-file=/next.pub',
  '--service-account-key-file=/sa.pub',
  '--service-account-signing-key-file=/sa.key',
  '--service-account-issuer=https://a',
  '--service-account-issuer=https://b',
  '--api-audiences=x,y',
  '--shutdown-delay-duration=15s',
]

/** A node in memory; a control plane has kube-apiserver, and keys. */
function memoryNode(name: string, signing = signingKey): MemoryNode {
  const node = new MemoryNode(name, { files: new Map() } as unknown as NodeTree)
  if (!name.startsWith('cp')) return node
  const put = (path: string, text: string) =>
    node.files.set(path, { content: Buffer.from(text), mode: 0o600 })
  const command = ['kube-apiserver', ...flags].map((word) => `    - ${word}\n`).join('')
  put(
    '/etc/kubernetes/manifests/kube-apiserver.yaml',
    `apiVersion: v1\nkind: Pod\nmetadata:\n  name: kube-apiserver\nspec:\n  containers:\n  - name: kube-apiserver\n    image: kube-apiserver:1\n    command:\n${command}`,
  )
  put('/sa.key', String(signing))
  put('/sa.pub', rsa.publicKey)
  put('/next.pub', ecdsa.publicKey + rsa.publicKey)
  return node
}

interface Lists {
  readonly nodes?: readonly ApiObject[]
  readonly secrets?: readonly ApiObject[] | 403 | 500
  readonly configmaps?: readonly ApiObject[]
  readonly uploaded?: object | 403
  readonly kubeadmConfig?: 403
  /** The content of --service-account-signing-key-file. */
  readonly signing?: string
  readonly csidrivers?: readonly ApiObject[] | 403
}

async function observed(lists: Lists = {}, broken?: string) {
  const refusal = (status: number) =>
    new StatusError(
      status === 403 ? 'KCERT_API_FORBIDDEN' : 'KCERT_UNREACHABLE',
      'no',
      { why: 'RBAC' },
      { status, reason: '' },
    )
  const own = ['cp1', 'w1']
  const all = { ...lists, nodes: [...own.map((name) => ({ metadata: { name } })), ...(lists.nodes ?? [])] }
  const objects = {
    async *list({ resource }, selection) {
      // None of these nodes has the label of a control plane.
      const items = selection?.labelSelector ? [] : (all[resource as keyof typeof all] ?? [])
      if (typeof items === 'number') throw refusal(items)
      yield* items as ApiObject[]
    },
    async get({ name }) {
      if (name === 'kubeadm-config' && lists.kubeadmConfig) throw refusal(lists.kubeadmConfig)
      if (name === 'kubeadm-config') return { metadata: { name }, data: { ClusterConfiguration: '' } }
      if (typeof lists.uploaded === 'number') throw refusal(lists.uploaded)
      return name === 'kubeadm-certs' ? lists.uploaded : undefined
    },
  } as Pick<ObjectsApi, 'get' | 'list'> as ObjectsApi
  const nodes = new Map(own.map((name) => [name, memoryNode(name, lists.signing)]))
  const site = (await sitesOf(nodes))()
  const unreachable = async () =>
    Promise.reject(new KcertError('KCERT_NODE_UNREACHABLE', `${broken}: no route`))
  // One token in a pod, without its signature as the script prints it.
  const [header, claims] = rsa.boundToken.split('.')
  const run = async () => ({
    status: 0,
    stdout: Buffer.from(`m ${header}.${claims} /token\n`),
    stderr: '',
  })
  return observeServiceAccountKeys({
    ...site,
    inventory: { ...site.inventory, kubeconfigs: [{ name: "alice's laptop" }] },
    objects,
    node: (name) => {
      const { access } = nodes.get(name) ?? memoryNode(name)
      const failing = name === broken ? { processes: unreachable, clock: unreachable } : {}
      return { ...access, run, ...failing } as unknown as NodeAccess
    },
    readAt: async () => ({ keys: [{ kid: rsa.keyId }] }),
  })
}

const secret = (name: string, token: string, metadata = {}): ApiObject => ({
  metadata: { namespace: 'a', name, ...metadata },
  type: 'kubernetes.io/service-account-token',
  data: { token: base64(token) },
})

test('reads every node of the cluster, and every API server', async () => {
  const { controlPlanes, nodes, otherKubeconfigs, hasUploadedCerts } = await observed({
    nodes: [{ metadata: { name: 'w2' } }],
    uploaded: { metadata: { name: 'kubeadm-certs' } },
  })
  expect(nodes.map(({ node }) => node)).toEqual(['cp1', 'w1', 'w2'])
  expect(nodes[0]?.tokens).toMatchObject({ value: { mounted: [{ keyId: rsa.keyId }], files: [] } })
  const keyId = keyIdOf(publicKeyIn(readPem(Buffer.from(signingKey)).blocks[0]!)!)
  expect(controlPlanes).toEqual([
    {
      node: 'cp1',
      keys: {
        value: {
          node: 'cp1',
          apiServer: {
            node: 'cp1',
            issuers: ['https://a', 'https://b'],
            audiences: ['x', 'y'],
            keyFiles: [
              { path: '/next.pub', keyIds: { value: [ecdsa.keyId, rsa.keyId] } },
              { path: '/sa.pub', keyIds: { value: [rsa.keyId] } },
            ],
            signingKey: { path: '/sa.key', keyIds: { value: [keyId] } },
            served: { value: [rsa.keyId] },
            shutdownDelay: '15s',
          },
        },
      },
    },
  ])
  expect({ otherKubeconfigs, hasUploadedCerts }).toEqual({
    otherKubeconfigs: ["alice's laptop"],
    hasUploadedCerts: { value: true },
  })
})

test('reads the CSI drivers for which kubelets request tokens', async () => {
  const driver = (name: string, tokenRequests?: readonly object[]): ApiObject => ({
    metadata: { name },
    spec: tokenRequests === undefined ? {} : { tokenRequests },
  })
  const { drivers } = await observed({
    csidrivers: [
      driver('none.example'),
      driver('empty.example', []),
      driver('vault.example', [{ audience: 'vault', expirationSeconds: 7200 }, { audience: '' }]),
      driver('odd.example', [{ expirationSeconds: 1e300 }]),
    ],
  })
  expect(drivers).toEqual({
    value: [
      { name: 'vault.example', audiences: ['vault', ''], lifetimeSeconds: 7200 },
      { name: 'odd.example', audiences: [''], lifetimeSeconds: 2 ** 32 },
    ],
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

  test('of CSI drivers', async () => {
    expect(await blockersOf({ csidrivers: 403 })).toEqual(['CSIDrivers: not read'])
  })

  test.each([rsa.publicKey, rsa.publicKey + ecdsa.publicKey])(
    'of a signing key file with only public keys',
    async (signing) => {
      const plan = serviceAccountKeyPlan(await observed({ signing }), 'routine')
      expect(plan.blockers).toMatchObject([
        { what: 'cp1:/sa.key: not read', why: expect.stringContaining('does not contain one private key') },
      ])
      expect(plan.keyId).toBeUndefined()
    },
  )

  test.each([{ uploaded: 403 }, { kubeadmConfig: 403 }] as const)(
    "of kubeadm's objects: %o",
    async (lists) => {
      const { blockers, notes } = serviceAccountKeyPlan(await observed(lists), 'routine')
      expect(blockers.map(({ what, why }) => [what, why])).toEqual([
        [
          'ConfigMap kubeadm-config or Secret kubeadm-certs: not read',
          'no: RBAC. A token or key there may be the old one',
        ],
      ])
      expect(notes.join()).not.toContain('kubeadm-certs')
    },
  )

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
