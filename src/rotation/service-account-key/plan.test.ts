import { describe, expect, test } from 'vitest'
import { noPaint } from '../../output/paint.ts'
import { renderServiceAccountKeyPlan } from '../../output/rotation/service-account-key.ts'
import type { ServiceAccountToken } from '../../x509/service-account-token.ts'
import type { ApiServerKeys, ControlPlaneKeys, FoundToken, PlannedKeys } from './observed.ts'
import { serviceAccountKeyPlan } from './plan.ts'

const issuer = 'https://kubernetes.default.svc.cluster.local'
const atMs = Date.parse('2026-11-26T00:00:00Z')
const noTokens = { mounted: [], files: [], credentialProviders: [] }
const file = (path: string, ...ids: string[]) => ({ path, keyIds: { value: ids } })

function token(claims: Partial<ServiceAccountToken> = {}): ServiceAccountToken {
  const account = { namespace: 'shop', serviceAccount: 'web', audiences: [issuer] }
  return { keyId: 'one', issuer, expiresAtMs: atMs + 3_600_000, ...account, ...claims }
}

/** A control plane as kubeadm creates it, with the key "one". */
function plane(node: string, changes: Partial<ApiServerKeys> = {}): ControlPlaneKeys {
  const signingKey = file('/etc/kubernetes/pki/sa.key', 'one')
  const apiServer = {
    node,
    issuers: [issuer],
    audiences: [issuer],
    keyFiles: [file('/etc/kubernetes/pki/sa.pub', 'one')],
    signingKey,
    served: { value: ['one'] },
    shutdownDelay: '15s',
    ...changes,
  }
  return { node, apiServer, controllerManager: { node, signingKey } }
}

function cluster(planes: readonly ControlPlaneKeys[], changes: Partial<PlannedKeys> = {}): PlannedKeys {
  const nodes = [...planes.map(({ node }) => node), 'w1']
  return {
    atMs,
    controlPlanes: planes.map((keys) => ({ node: keys.node, keys: { value: keys } })),
    nodes: nodes.map((node) => ({ node, tokens: { value: { ...noTokens, mounted: [token(), token()] } } })),
    objects: [
      { kind: 'Secret', tokens: { value: [] } },
      { kind: 'ConfigMap', tokens: { value: [] } },
    ],
    otherKubeconfigs: [],
    drivers: { value: [] },
    hasUploadedCerts: { value: false },
    ...changes,
  }
}

const three = ['cp1', 'cp2', 'cp3']
const planOf = (observed: PlannedKeys, reason: 'routine' | 'compromise' = 'routine') =>
  serviceAccountKeyPlan(observed, reason)
const blockersOf = (observed: PlannedKeys) => planOf(observed).blockers.map(({ what }) => what)

test("plans three passes on kubeadm's cluster", () => {
  const plan = planOf(cluster(three.map((node) => plane(node))))
  expect(plan).toMatchObject({
    keyId: 'one',
    tokens: [],
    mountedTokens: [...three, 'w1'].map((node) => ({ node, keys: [{ keyId: 'one', tokens: 2 }] })),
    externalVerifiers: { mayExist: false, why: [] },
    blockers: [],
  })
  expect(plan.restarts).toEqual([
    ...three.map((node) => ({ node, kubeApiserver: 3, kubeControllerManager: 1, kubelet: 1 })),
    { node: 'w1', kubeApiserver: 0, kubeControllerManager: 0, kubelet: 1 },
  ])
  expect(plan.steps.map(({ waitSeconds }) => waitSeconds)).toEqual([0, 0, 3607, 0])
  expect(plan.estimatedSeconds).toBe(3 * 50 + 3 * 47 + 3 * 28 + 9 + 70 + 3607 + 3 * 47)
})

test('after a leak, restarts every process once, and says which clients are rejected', () => {
  const held: FoundToken = { kind: 'Secret', location: 'a/b', claims: token() }
  const objects = [{ kind: 'Secret', tokens: { value: [held] } }] as const
  const plan = planOf(
    cluster(
      three.map((node) => plane(node)),
      { objects },
    ),
    'compromise',
  )
  expect(plan.restarts[0]).toEqual({ node: 'cp1', kubeApiserver: 1, kubeControllerManager: 1, kubelet: 1 })
  expect(plan.notes.join('\n')).toMatch(/rejected \(401\) for a time: pods with mounted tokens \(8\)/)
  expect(plan.notes.join('\n')).toMatch(/rejected \(401\) until they get a new token: .* \(1\)/)
  expect(plan.steps).toHaveLength(1)
})

describe('blocks', () => {
  const bad = (changes: Partial<ApiServerKeys>) => cluster([plane('cp1'), plane('cp2', changes)])

  test.each<[string, PlannedKeys, string]>([
    [
      'keys that differ between control planes',
      bad({
        signingKey: file('/sa.key', 'two'),
        keyFiles: [file('/sa.pub', 'two')],
        served: { value: ['two'] },
      }),
      'API servers sign with different keys: cp1 with one, cp2 with two',
    ],
    [
      'an API server that rejects its own tokens',
      bad({ served: { value: ['two'] } }),
      'cp2 signs with one, but verifies only two',
    ],
    ['a second key', bad({ served: { value: ['one', 'two'] } }), 'cp2 verifies tokens of 2 keys: one, two'],
    [
      'a file that changed after the start',
      bad({ keyFiles: [file('/sa.pub', 'one'), file('/next.pub', 'two')] }),
      'cp2 serves other keys than /sa.pub, /next.pub contains',
    ],
    [
      'an API server whose JWKS was not read',
      bad({ served: { unread: '403' } }),
      '/openid/v1/jwks of cp2: not read',
    ],
    [
      'a key file that was not read',
      bad({ keyFiles: [{ path: '/sa.pub', keyIds: { unread: 'it is absent' } }] }),
      'cp2:/sa.pub: not read',
    ],
    [
      'a signing key without its flag',
      withoutSigningKey(),
      'cp2: --service-account-signing-key-file or --service-account-key-file is not set',
    ],
    [
      'a node whose tokens were not read',
      cluster([plane('cp1')], { nodes: [{ node: 'w9', tokens: { unread: 'no route' } }] }),
      'the tokens on w9: not read',
    ],
    [
      'Secrets that were not read',
      cluster([plane('cp1')], { objects: [{ kind: 'Secret', tokens: { unread: '403' } }] }),
      'Secrets: not read',
    ],
    [
      'CSI drivers that were not read',
      cluster([plane('cp1')], { drivers: { unread: '403' } }),
      'CSIDrivers: not read',
    ],
    [
      'a control plane that was not read',
      cluster([plane('cp1')], { controlPlanes: [{ node: 'cp9', keys: { unread: 'no route' } }] }),
      'the keys on cp9: not read',
    ],
    [
      'a control plane without an API server, whose files were not read',
      cluster([plane('cp1'), { node: 'cp2' }]),
      'the keys on cp2: not read',
    ],
    ['a cluster without API servers', cluster([]), 'no API server was found on the nodes of the inventory'],
  ])('%s', (_what, observed, blocker) => {
    expect(blockersOf(observed)).toContain(blocker)
  })

  function withoutSigningKey(): PlannedKeys {
    const { signingKey: _, ...apiServer } = plane('cp2').apiServer!
    return cluster([plane('cp1'), { node: 'cp2', apiServer }])
  }

  test('a controller manager with another key', () => {
    const manager = { node: 'cp1', signingKey: file('/old.key', 'old') }
    expect(blockersOf(cluster([{ ...plane('cp1'), controllerManager: manager }]))).toEqual([
      'kube-controller-manager on cp1 signs with old',
    ])
  })

  test('an external signer, and says what to do instead', () => {
    const { signingKey: _, ...apiServer } = plane('cp1', {
      keyFiles: [],
      signingEndpoint: '/run/signer.sock',
    }).apiServer!
    const { blockers } = planOf(cluster([{ node: 'cp1', apiServer }]))
    expect(blockers.map(({ what }) => what)).toEqual([
      'an external signer has the key: --service-account-signing-endpoint on cp1',
    ])
    expect(blockers[0]?.why).toContain('Add the new key to the keys that the signer serves')
  })
})

describe('expects verifiers outside of the cluster', () => {
  test('for an issuer with another name, and waits until they read the keys again', () => {
    const { externalVerifiers, steps } = planOf(
      cluster([plane('cp1', { issuers: ['https://oidc.example.com/1'] })]),
    )
    expect(externalVerifiers).toEqual({
      mayExist: true,
      why: ['the issuer https://oidc.example.com/1 has a name outside of the cluster'],
      maxAgeSeconds: 3600,
    })
    expect(steps[0]?.waitSeconds).toBe(3600)
  })

  test('for mounted tokens with another audience', () => {
    const mounted = [token({ audiences: ['sts.example.com'] }), token()]
    const nodes = [{ node: 'w1', tokens: { value: { ...noTokens, mounted } } }]
    const { audiences, externalVerifiers } = planOf(cluster([plane('cp1')], { nodes }))
    expect(audiences).toEqual([{ audience: 'sts.example.com', tokens: 1 }])
    expect(externalVerifiers.mayExist).toBe(true)
  })
})

test('names image credential providers that get tokens for another audience, once each', () => {
  const credentialProviders = [
    { name: 'own', audience: issuer },
    { name: 'ecr', audience: 'sts.example.com' },
  ]
  const nodes = ['w1', 'w2'].map((node) => ({
    node,
    tokens: { value: { ...noTokens, credentialProviders } },
  }))
  const { externalVerifiers, steps } = planOf(cluster([plane('cp1')], { nodes }))
  expect(externalVerifiers.why).toEqual([
    'image credential provider ecr on w1, w2 gets tokens for the audience sts.example.com',
  ])
  expect(steps[0]?.waitSeconds).toBe(3600)
})

test('names CSI drivers that get tokens, and waits until these are expired', () => {
  const drivers = {
    value: [
      { name: 'own.example', audiences: [''], lifetimeSeconds: 600 },
      { name: 'vault.example', audiences: ['vault', issuer], lifetimeSeconds: 7200 },
    ],
  }
  const { externalVerifiers, notes, steps } = planOf(cluster([plane('cp1')], { drivers }))
  expect(externalVerifiers.why).toEqual(['CSIDriver vault.example requests tokens for the audience vault'])
  expect(notes.filter((note) => note.startsWith('CSIDriver'))).toEqual([
    expect.stringMatching(/^CSIDriver own.example: .* up to 600 s\. Phase 6 waits/),
    expect.stringMatching(/^CSIDriver vault.example: .* up to 7200 s\. Phase 6 waits/),
  ])
  expect(steps[2]?.waitSeconds).toBe(7200)
})

test('lists tokens that nothing renews, with their owners, without expired ones', () => {
  const held = (location: string, claims: Partial<ServiceAccountToken> = {}): FoundToken => ({
    ...{ kind: 'Secret', location, owner: 'argocd' },
    claims: token(claims),
  })
  const { expiresAtMs: _, ...legacy } = token()
  const objects = [
    {
      kind: 'Secret',
      tokens: {
        value: [
          held('a/x'),
          held('a/expired', { expiresAtMs: atMs }),
          { ...held('a/legacy'), claims: legacy },
        ],
      },
    },
  ] as const
  expect(planOf(cluster([plane('cp1')], { objects })).tokens).toEqual([
    {
      kind: 'Secret',
      location: 'a/x',
      keyId: 'one',
      subject: 'system:serviceaccount:shop:web',
      expirationTimestamp: '2026-11-26T01:00:00.000Z',
      owner: 'argocd',
    },
    {
      kind: 'Secret',
      location: 'a/legacy',
      keyId: 'one',
      subject: 'system:serviceaccount:shop:web',
      owner: 'argocd',
    },
  ])
})

test('shows the same file of many nodes, and nodes with the same restarts, in one row of the text', () => {
  const nodes = Array.from({ length: 5000 }, (_, index) => {
    const node = `w${index}`
    const held: FoundToken = { kind: 'file', location: `${node}:/etc/cni/net.d/calico`, claims: token() }
    return { node, tokens: { value: { ...noTokens, mounted: [token()], files: [held] } } }
  })
  const plan = planOf(cluster([plane('cp1')], { nodes }))
  const text = renderServiceAccountKeyPlan(plan, { width: 120, paint: noPaint })
  expect(plan.tokens).toHaveLength(5000)
  expect(text).toMatch(/^file +shop\/web .* \/etc\/cni\/net.d\/calico on w0, .* more$/m)
  expect(text).toMatch(/^w0, .* more +0 +0 +1$/m)
  expect(text.split('\n').length).toBeLessThan(60)
})

test('the first pass sets a shutdown delay where there is none', () => {
  const { steps, notes } = planOf(cluster([plane('cp1', { shutdownDelay: '0s' }), plane('cp2')]))
  expect(steps[0]?.actions).toContain('set --shutdown-delay-duration=15s on cp1; the last pass removes it')
  expect(notes[0]).toMatch(/^cp1: without --shutdown-delay-duration/)
})

test('shows the plan as text', () => {
  const text = renderServiceAccountKeyPlan(planOf(cluster(three.map((node) => plane(node)))), {
    width: 120,
    paint: noPaint,
  })
  expect(text).toContain('service account key rotation plan; nothing was written\nkey ID: one\n')
  expect(text).toMatch(/cp1\/kube-apiserver +this key +this key +\/etc\/kubernetes\/pki\/sa.pub +15s/)
  expect(text).toMatch(/^8 +this key +cp1, cp2, cp3, w1$/m)
  expect(text).toContain('next: kcert rotate-sa-key --phase 1 --dry-run')
  expect(text).toContain('nothing blocks the rotation')
})
