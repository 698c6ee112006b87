import { expect, test } from 'vitest'
import { renderPhasePlan } from '../../src/output/rotation/plan.ts'
import { renderProgress, renderStatus } from '../../src/output/rotation/status.ts'
import { renderVerification } from '../../src/output/rotation/verification.ts'
import { actionsOf } from '../../src/rotation/action.ts'
import { phaseOf } from '../../src/rotation/phase.ts'
import { keyIdFor } from '../../src/rotation/service-account-key/key-id.ts'
import { brokenTokens } from '../../src/rotation/service-account-key/model.ts'
import type { FoundToken } from '../../src/rotation/service-account-key/observed.ts'
import { keyPlaybook } from '../../src/rotation/service-account-key/playbook.ts'
import { keyChecks } from '../../src/rotation/service-account-key/verification.ts'
import type { Snapshot } from '../../src/rotation/snapshot.ts'
import type { Target } from '../../src/rotation/target.ts'
import type { Settings } from '../../src/rotation/target-reading.ts'
import type { ServiceAccountToken } from '../../src/x509/service-account-token.ts'
import type { ClusterShape } from '../fakes/simulated-cluster.ts'
import { SimulatedOperator, wide } from './operator.ts'
import { Scene } from './scene.ts'

// The rotation of the service account key on a simulated cluster. Every pod shows its token to every API server after every event.

const shape: ClusterShape = { controlPlanes: 3, workers: 2, namespaces: 3, hasTokens: true }
const nodes = ['cp1', 'cp2', 'cp3']
const apis = nodes.map((node) => `${node}/kube-apiserver`)
const phases = [1, 2, 3, 4, 5, 6, 7, 8]
/** The hour of `counters` has tests of its own. */
const accepted = {
  acceptedVersions: new Set(['1.36']),
  proof: 'audit',
  waivers: new Set(['audit-log', 'rollback:audit-log']),
} as const

function sceneOf(settings: Partial<Settings> = {}, given: Partial<ClusterShape> = {}): Scene {
  return new Scene({ ...shape, ...given }, { ...accepted, ...settings }, keyPlaybook)
}

async function run(scene: Scene, from: number, to: number): Promise<void> {
  for (let phase = from; phase <= to; phase++) await scene.asProcess((rotation) => rotation.run(phase))
}

function observeIn(scene: Scene): Promise<{ observed: Snapshot; target: Target }> {
  return scene.asProcess((rotation) => rotation.observe(keyPlaybook.sections))
}

/** Returns what is pending in a phase. */
async function pending(scene: Scene, number: number): Promise<string[]> {
  const { observed, target } = await observeIn(scene)
  const gaps = phaseOf(keyPlaybook, number).gaps(observed, target)
  return gaps.map(({ at, what }) => `${at}: ${what}`)
}

/** The pods that a Deployment has on a node with a worker. */
function podIn({ cluster }: Scene) {
  return [...cluster.pods.values()].find(({ id }) => id.startsWith('default/ping'))!
}

/** Returns what each process verifies and signs with: `old`, `new`. */
function keysOf({ cluster }: Scene): Record<string, string> {
  const name = (key: string | undefined) =>
    key === cluster.oldKey ? 'old' : key === undefined ? 'none' : 'new'
  return Object.fromEntries(
    [...cluster.processes.values()].flatMap((process) => {
      if (process.name === 'kube-apiserver')
        return [
          [process.id, `${cluster.verifiedBy(process).map(name).join()} ${name(cluster.signedBy(process))}`],
        ]
      return process.name === 'kube-controller-manager' ? [[process.id, name(cluster.signedBy(process))]] : []
    }),
  )
}

function allWith(verifies: string, signs: string): Record<string, string> {
  return Object.fromEntries([
    ...apis.map((id) => [id, `${verifies} ${signs}`]),
    ...nodes.map((node) => [`${node}/kube-controller-manager`, signs]),
  ])
}

function mountedKeys({ cluster }: Scene): readonly string[] {
  return [
    ...new Set(
      [...cluster.pods.values()].map(({ token }) => (token?.key === cluster.oldKey ? 'old' : 'new')),
    ),
  ]
}

/** Returns keys and manifests. Copies stay. */
function bytes(scene: Scene): Record<string, string> {
  return Object.fromEntries(Object.entries(scene.files()).filter(([key]) => /\/sa\.|manifests/.test(key)))
}

test('changes the key in three passes, and no token is rejected', async () => {
  const scene = sceneOf()
  const { cluster } = scene
  const manifests = Object.entries(bytes(scene)).filter(([key]) => key.includes('/manifests/'))
  cluster.restarts.length = 0
  await run(scene, 1, 1)
  expect(cluster.restarts).toEqual([])
  expect(cluster.objects.has('Secret kube-system/kubeadm-certs')).toBe(false)
  await run(scene, 2, 3)
  expect(cluster.restarts.splice(0)).toEqual(apis)
  expect(keysOf(scene)).toEqual(allWith('old,new', 'old'))
  expect(cluster.processes.get(apis[0]!)?.flags['shutdown-delay-duration']).toBe('15s')
  await run(scene, 4, 4)
  // Standbys first, the leader last.
  const managers = ['cp2', 'cp3', 'cp1'].map((node) => `${node}/kube-controller-manager`)
  expect(cluster.restarts.splice(0)).toEqual([...apis, ...managers])
  expect(keysOf(scene)).toEqual(allWith('new,old', 'new'))
  await run(scene, 5, 5)
  expect(mountedKeys(scene)).toEqual(['new'])
  expect(cluster.restarts.splice(0).sort()).toEqual([...nodes, 'w1', 'w2'].map((node) => `${node}/kubelet`))
  // Phase 7 waits until clients have read their tokens again.
  await run(scene, 6, 8)
  expect(cluster.restarts).toEqual(apis)
  expect(keysOf(scene)).toEqual(allWith('new', 'new'))
  expect(scene.clients.failures).toEqual([])
  // Manifests are as before, and nothing of kcert is left beside the keys.
  const after = scene.files()
  expect(Object.entries(after).filter(([key]) => key.includes('/manifests/'))).toEqual(manifests)
  expect(Object.keys(after).filter((key) => key.includes('/kcert/'))).toEqual([])
})

test.each(['before', 'after'] as const)(
  'ends in the same place when kcert is killed %s each action',
  async (when) => {
    const scene = sceneOf()
    const operator = new SimulatedOperator(scene)
    const kills = await scene.killedAtEachAct(when, phases, async (phase) => {
      // The command checks the earlier phases first.
      await operator.command((session) => session.dryRun([phase]), { settings: accepted })
      await scene.asProcess((rotation) => rotation.run(phase))
    })
    expect(kills).toBeGreaterThan(40)
    expect(keysOf(scene)).toEqual(allWith('new', 'new'))
    expect(mountedKeys(scene)).toEqual(['new'])
    expect(scene.clients.failures).toEqual([])
  },
)

test.each([1, 2, 3, 4, 5, 6, 7])(
  'rolls back from phase %i to the same bytes and the same keys',
  async (last) => {
    const scene = sceneOf()
    const [before, keys] = [bytes(scene), keysOf(scene)]
    await run(scene, 1, last)
    // The rollback of phase 2 waits until clients have read their tokens again.
    for (let phase = last; phase >= 1; phase--) await scene.asProcess((rotation) => rotation.undo(phase))
    expect(bytes(scene)).toEqual(before)
    expect(keysOf(scene)).toEqual(keys)
    expect(mountedKeys(scene)).toEqual(['old'])
    expect(scene.clients.failures).toEqual([])
    // The next rotation starts from the beginning.
    await run(scene, 1, 8)
    expect(keysOf(scene)).toEqual(allWith('new', 'new'))
    expect(scene.clients.failures).toEqual([])
  },
)

test('any process may restart at any moment: each finds keys with which no token is rejected', async () => {
  const scene = sceneOf()
  const { cluster } = scene
  const targets = [...apis, ...nodes.map((node) => `${node}/kube-controller-manager`)]
  let crashes = 0
  scene.kill = ({ number }) => {
    const id = targets[number % targets.length]!
    // A process that is already about to stop is replaced once.
    if (cluster.processes.get(id)?.isHealthy) {
      crashes++
      cluster.signal(id)
    }
    return undefined
  }
  await run(scene, 1, 8)
  await cluster.time.pass(60_000)
  expect(crashes).toBeGreaterThan(20)
  expect(keysOf(scene)).toEqual(allWith('new', 'new'))
  expect(scene.clients.failures).toEqual([])
})

test('phase 4 rejects no token in any order, because each API server verifies both keys', async () => {
  const scene = sceneOf()
  await run(scene, 1, 3)
  const { observed, target } = await observeIn(scene)
  const steps = phaseOf(keyPlaybook, 4).plan(observed, target).flatMap(actionsOf)
  const changes = steps.filter(({ kind }) => kind === 'write-file' || kind === 'restart').toReversed()
  expect(brokenTokens(observed, target, changes)).toBeUndefined()
  await scene.asProcess((rotation) => rotation.performAll(changes))
  await scene.cluster.time.pass(60_000)
  expect(scene.clients.failures).toEqual([])
})

test('rolls back from phase 5, killed at each action', async () => {
  const scene = sceneOf()
  const [before, keys] = [bytes(scene), keysOf(scene)]
  await run(scene, 1, 5)
  const kills = await scene.killedAtEachAct('after', [5, 4, 3, 2, 1], (phase) =>
    scene.asProcess(async (rotation) => void (await rotation.undo(phase))),
  )
  expect(kills).toBeGreaterThan(25)
  expect(bytes(scene)).toEqual(before)
  expect(keysOf(scene)).toEqual(keys)
  expect(mountedKeys(scene)).toEqual(['old'])
  expect(scene.clients.failures).toEqual([])
})

test.each([
  [4, 1, 'cp1/kube-apiserver reject tokens that are in use: of cp1/kube-apiserver'],
  [7, 3, 'cp1/kube-apiserver reject tokens that are in use: of cp1/kube-apiserver, cp2/kube-apiserver'],
  [7, 4, 'cp1/kube-apiserver reject tokens that are in use: of the tokens mounted on cp1'],
])('the model refuses the steps of phase %i after phase %i', async (phase, last, why) => {
  const scene = sceneOf()
  await run(scene, 1, last)
  const { observed, target } = await observeIn(scene)
  const steps = phaseOf(keyPlaybook, phase).plan(observed, target)
  expect(brokenTokens(observed, target, steps)?.what).toContain(why)
})

test.each([
  ['cp2 does not show its keys', (scene: Scene) => scene.cluster.stop('cp2/kube-apiserver')],
  [
    'cp2 restarted with only the old key',
    async ({ cluster }: Scene) => {
      cluster.write('cp2', '/etc/kubernetes/pki/sa.pub', { publicKeys: [cluster.oldKey!] })
      cluster.signal('cp2/kube-apiserver')
      await cluster.time.pass(20_000)
    },
  ],
])('does not sign with the new key while %s', async (_what, change) => {
  const scene = sceneOf()
  await run(scene, 1, 3)
  await change(scene)
  const { observed, target } = await observeIn(scene)
  const [refusal] = phaseOf(keyPlaybook, 4).refusals(observed, target)
  expect(refusal?.what).toBe('not proven to verify tokens of the new key: cp2/kube-apiserver')
})

test('drops a leaked key at once, and says which clients are rejected', async () => {
  const scene = sceneOf({ reason: 'compromise', waivers: new Set() })
  const { cluster } = scene
  cluster.restarts.length = 0
  await run(scene, 1, 3)
  expect(cluster.restarts).toEqual([])
  const { observed, target } = await observeIn(scene)
  expect(phaseOf(keyPlaybook, 4).remarks(observed, target)).toEqual([
    expect.stringMatching(/^rejected \(401\) for a time: pods with mounted tokens \(8\)/),
    'rejected (401) until they get a new token: the holders of tokens in Secrets, ConfigMaps and files (0)',
  ])
  await run(scene, 4, 4)
  expect(keysOf(scene)).toEqual(allWith('new', 'new'))
  const { observed: now } = await observeIn(scene)
  const [step, ...others] = phaseOf(keyPlaybook, 5).plan(now, target)
  expect([step?.kind, others]).toEqual(['together', []])
  await run(scene, 5, 8)
  expect(mountedKeys(scene)).toEqual(['new'])
  // Each client got 401 once, and no more a minute after its kubelet restarted.
  expect(new Set(scene.clients.failures.map(({ why }) => why))).toEqual(new Set(['token gets 401']))
  await cluster.time.pass(70_000)
  scene.clients.failures.length = 0
  await cluster.time.pass(70_000)
  expect(scene.clients.failures).toEqual([])
})

test('drops a key that leaked after phase 4', async () => {
  const scene = sceneOf()
  await run(scene, 1, 4)
  expect(keysOf(scene)).toEqual(allWith('new,old', 'new'))
  scene.settings = { ...scene.settings, reason: 'compromise' }
  await run(scene, 4, 4)
  expect(keysOf(scene)).toEqual(allWith('new', 'new'))
})

test('phase 2 is pending again when another program restores the old file', async () => {
  const scene = sceneOf()
  await run(scene, 1, 3)
  scene.cluster.write('cp2', '/etc/kubernetes/pki/sa.pub', { publicKeys: [scene.cluster.oldKey!] })
  expect(await pending(scene, 2)).toEqual([
    'cp2/kube-apiserver: its public key files do not contain the new key',
  ])
  await run(scene, 2, 4)
  expect(scene.clients.failures).toEqual([])
})

test('phase 2 does not return the old key to an API server that is down after phase 7', async () => {
  const scene = sceneOf()
  await run(scene, 1, 7)
  scene.cluster.stop('cp2/kube-apiserver')
  const { observed, target } = await observeIn(scene)
  const steps = phaseOf(keyPlaybook, 2).plan(observed, target)
  expect(steps.map(({ kind }) => kind)).toEqual(['wait'])
  expect(phaseOf(keyPlaybook, 4).gaps(observed, target)).toEqual([])
})

test('does not return to a leaked key', async () => {
  const scene = sceneOf({ reason: 'compromise' })
  await run(scene, 1, 4)
  await expect(scene.asProcess((rotation) => rotation.undo(4))).rejects.toMatchObject({
    message: 'phase 4 cannot be rolled back after a leak of the key',
  })
})

test('deletes the Secret kubeadm-certs again if it was uploaded in the middle', async () => {
  const scene = sceneOf()
  const { cluster } = scene
  await run(scene, 1, 2)
  cluster.put('Secret kube-system/kubeadm-certs', { encrypted: true })
  expect(await pending(scene, 1)).toEqual([
    'Secret kube-system/kubeadm-certs: would give a joining control-plane node the old key',
  ])
  await run(scene, 1, 1)
  expect(cluster.objects.has('Secret kube-system/kubeadm-certs')).toBe(false)
})

// --- the proofs of phase 6

test('counters: waits until tokens in memory count as stale, and stops while a client uses one', async () => {
  const scene = sceneOf({ proof: 'counters', waivers: new Set() })
  const pod = podIn(scene)
  pod.readsTokenOnce = true
  await run(scene, 1, 5)
  const begun = scene.cluster.time.nowMs
  expect(await pending(scene, 6)).toEqual(
    apis.map((id) => expect.stringMatching(new RegExp(`^${id}: tokens of the old key count as stale from`))),
  )
  await expect(run(scene, 6, 6)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    why: expect.stringMatching(/stale and legacy tokens at cp\d/),
  })
  expect(scene.cluster.time.nowMs - begun).toBeGreaterThan(3_580_000)
  await expect(scene.asProcess((rotation) => rotation.plan(6))).resolves.toMatchObject({ number: 6 })
  // Its owner restarts it.
  scene.cluster.pods.delete(pod.uid)
  scene.cluster.startPod(pod.workload)
  await run(scene, 6, 8)
  expect(scene.clients.failures).toEqual([])
})

test('counters: a use of a legacy token stops it too', async () => {
  const scene = sceneOf({ proof: 'counters', waivers: new Set(['Secret default/old data[token]']) })
  const { cluster } = scene
  cluster.put('Secret default/old', { tokenKey: cluster.oldKey, serviceAccount: 'web' })
  cluster.usedSecrets.add('Secret default/old')
  await run(scene, 1, 5)
  await expect(run(scene, 6, 6)).rejects.toMatchObject({ code: 'KCERT_ROTATION_CHECK_FAILED' })
})

test('audit: needs the confirmation, in this rotation', async () => {
  const scene = sceneOf({ waivers: new Set() })
  await run(scene, 1, 5)
  await expect(run(scene, 6, 6)).rejects.toMatchObject({
    message: expect.stringContaining('audit log: not yet confirmed to show no use of the old key'),
  })
})

test('pods: names each pod that is older than the new key, and one whose start is not known', async () => {
  const scene = sceneOf({ proof: 'pods', waivers: new Set() })
  await run(scene, 1, 5)
  const all = [...scene.cluster.pods.values()].map(({ id }) => id).sort()
  expect((await pending(scene, 6)).sort()).toEqual(
    all.map((id) => `Pod ${id}: started before every node was proven to have only tokens of the new key`),
  )
  const { observed, target } = await observeIn(scene)
  const hidden = { ...observed, pods: observed.pods.filter(({ id }) => id !== all[0]) }
  const gaps = phaseOf(keyPlaybook, 6).gaps(hidden, target)
  expect(gaps.find(({ at }) => at === `Pod ${all[0]}`)?.what).toBe('its start time is not known')
  scene.settings = { ...scene.settings, waivers: new Set(all.slice(1)) }
  expect(await pending(scene, 6)).toHaveLength(1)
  const pod = [...scene.cluster.pods.values()].find(({ id }) => id === all[0])!
  scene.cluster.pods.delete(pod.uid)
  scene.cluster.startPod(pod.workload)
  await run(scene, 6, 6)
})

test('pods: a container that restarts before its kubelet reads the old token again', async () => {
  const scene = sceneOf({ proof: 'pods', waivers: new Set() })
  await run(scene, 1, 4)
  await scene.cluster.time.pass(1_000)
  const restartedAtMs = scene.cluster.time.nowMs
  await run(scene, 5, 5)
  const { observed, target } = await observeIn(scene)
  const pods = observed.pods.map((pod) => ({ ...pod, startedAtMs: restartedAtMs }))
  expect(phaseOf(keyPlaybook, 6).gaps({ ...observed, pods }, target)).toHaveLength(pods.length)
})

test('a rollback takes the confirmation back', async () => {
  const scene = sceneOf({ waivers: new Set() })
  await run(scene, 1, 5)
  const operator = new SimulatedOperator(scene)
  const settings = { ...accepted, waivers: new Set<string>() }
  await operator.command((session) => session.run([6]), { settings, answers: () => true })
  expect(await pending(scene, 6)).toEqual([])
  await operator.command((session) => session.rollback(3), { settings, yes: true })
  await run(scene, 4, 5)
  expect(await pending(scene, 6)).toEqual(['audit log: not yet confirmed to show no use of the old key'])
})

test('verify names who uses the old key, in each phase and after the rotation', async () => {
  const scene = sceneOf()
  const verify = async () => {
    const report = await new SimulatedOperator(scene).command((session) => session.verify(), {
      settings: scene.settings,
    })
    return { ok: report.ok, open: report.checks.filter(({ ok }) => !ok).map(({ id }) => id), report }
  }
  expect((await verify()).open).toEqual(['signers', 'verifiers', 'tokens'])
  await run(scene, 1, 4)
  const signing = await verify()
  expect(signing.open).toEqual(['verifiers', 'tokens'])
  expect(signing.report.checks.find(({ id }) => id === 'verifiers')?.findings.map(({ at }) => at)).toEqual(
    apis,
  )
  await run(scene, 5, 6)
  expect((await verify()).open).toEqual(['verifiers'])
  await run(scene, 7, 8)
  const { ok, report } = await verify()
  expect({ ok, key: report.serviceAccountKey?.oldKeyId }).toEqual({
    ok: true,
    key: keyIdFor(scene.cluster.oldKey!),
  })
  expect(renderVerification(report, wide)).toContain('verified: no process uses the old key')
  // A restored backup.
  scene.cluster.put('Secret shop/web', { tokenKey: scene.cluster.oldKey, serviceAccount: 'web' })
  const restored = await verify()
  expect(restored.open).toEqual(['tokens'])
  expect(restored.report.checks.at(-1)?.findings).toMatchObject([{ at: 'Secret shop/web data[token]' }])
  scene.settings = { ...scene.settings, waivers: new Set(['Secret shop/web data[token]']) }
  expect((await verify()).ok).toBe(true)
})

test('verify: what cannot be read fails the check', async () => {
  const scene = sceneOf()
  await run(scene, 1, 8)
  const { observed, target } = await observeIn(scene)
  const failing = (changes: Partial<Snapshot>) =>
    keyChecks({ ...observed, ...changes }, target)
      .filter(({ ok }) => !ok)
      .map(({ id }) => id)
  expect(failing({})).toEqual([])
  expect(failing({ files: new Map() })).toEqual(['signers', 'verifiers'])
  expect(failing({ servedKeys: [] })).toEqual(['verifiers'])
  expect(failing({ components: [] })).toEqual(['signers', 'verifiers'])
  expect(failing({ tokens: { ...observed.tokens, drivers: { unread: '403' } } })).toEqual(['tokens'])
  expect(failing({ kubeconfigs: [{ id: 'laptop' }] })).toEqual(['tokens'])
  expect(failing({ nodes: observed.nodes.map((node) => ({ ...node, unreachable: 'no route' })) })).toEqual([
    'nodes',
  ])
  const { key: _, ...without } = target
  expect(keyChecks(observed, without).map(({ id, ok }) => [id, ok])).toEqual([
    ['nodes', true],
    ['key', false],
  ])
})

test('proofs are not repeated once the old key is dropped', async () => {
  const scene = sceneOf({ proof: 'counters', waivers: new Set() })
  await run(scene, 1, 7)
  scene.settings = { ...scene.settings, proof: 'audit' }
  expect(await pending(scene, 6)).toEqual([])
  expect(await pending(scene, 5)).toEqual([])
})

// --- tokens that kcert cannot renew

test('creates a second Secret beside a legacy token, names the owner, and deletes nothing', async () => {
  const scene = sceneOf()
  const { cluster } = scene
  cluster.put('Secret shop/web', { tokenKey: cluster.oldKey, serviceAccount: 'web', owner: 'Deployment ci' })
  await run(scene, 1, 4)
  const operator = new SimulatedOperator(scene)
  await expect(
    operator.command((session) => session.run([5]), { settings: accepted, yes: true }),
  ).rejects.toMatchObject({
    message: expect.stringContaining(
      'Secret shop/web data[token]: token of the old key (shop/web, owner Deployment ci)',
    ),
  })
  const second = [...cluster.objects].filter(([name]) => name.startsWith('Secret shop/web-'))
  expect(second).toHaveLength(1)
  await cluster.time.pass(1_000)
  expect(cluster.objects.get(second[0]![0])?.data).toEqual({
    serviceAccount: 'web',
    tokenKey: expect.not.stringMatching(cluster.oldKey!),
  })
  expect(cluster.objects.get('Secret shop/web')?.data.tokenKey).toBe(cluster.oldKey)
  expect(operator.stderr).toContain(`--waive 'Secret shop/web data[token]'`)
  // The second run creates no third one. The operator hands it over and deletes the first.
  cluster.deleteObject('Secret shop/web')
  await run(scene, 5, 8)
  expect([...cluster.objects].filter(([name]) => name.startsWith('Secret shop/web'))).toHaveLength(1)
})

/** Returns what phase 5 has to do if these tokens and kubeconfigs are found besides. */
async function renewing(
  scene: Scene,
  found: { secrets?: readonly FoundToken[]; mounted?: ServiceAccountToken; kubeconfigs?: readonly string[] },
) {
  const { observed, target } = await observeIn(scene)
  const { secrets = [], mounted, kubeconfigs = [] } = found
  const nodes = observed.tokens.nodes.map((one) =>
    mounted === undefined || 'unread' in one.tokens
      ? one
      : {
          ...one,
          tokens: { value: { ...one.tokens.value, mounted: [...one.tokens.value.mounted, mounted] } },
        },
  )
  const now = {
    ...observed,
    tokens: { ...observed.tokens, nodes, objects: [{ kind: 'Secret', tokens: { value: secrets } }] as const },
    kubeconfigs: [...observed.kubeconfigs, ...kubeconfigs.map((id) => ({ id }))],
  }
  const steps = phaseOf(keyPlaybook, 5).plan(now, target).flatMap(actionsOf)
  return {
    ...{ now, target, steps },
    gaps: phaseOf(keyPlaybook, 5)
      .gaps(now, target)
      .map(({ at, what }) => `${at}: ${what}`),
    questions: steps.flatMap((step) => (step.kind === 'confirm' ? [step.question] : [])),
  }
}

function legacy(name: string, keyId?: string): FoundToken {
  return {
    kind: 'Secret',
    location: `shop/${name} data[token]`,
    claims: {
      ...{ issuer: 'kubernetes/serviceaccount', audiences: [], namespace: 'shop', serviceAccount: 'web' },
      ...{ boundTo: `secret ${name}`, ...(keyId !== undefined && { keyId }) },
    },
  }
}

test('counts a token without a key ID as one of the old key', async () => {
  const scene = sceneOf()
  await run(scene, 1, 5)
  const { gaps, now, target } = await renewing(scene, { secrets: [legacy('web')] })
  expect(gaps).toEqual(['Secret shop/web data[token]: token without a key ID (shop/web, owner unknown)'])
  expect(phaseOf(keyPlaybook, 7).refusals(now, target)).toEqual([
    expect.objectContaining({
      what: 'tokens of the old key may be in use: Secret shop/web data[token]',
      next: 'kcert rotate-sa-key --phase 5',
    }),
  ])
})

test('a mounted Secret counts where it is stored: no kubelet renews it', async () => {
  const scene = sceneOf()
  await run(scene, 1, 5)
  const token = legacy('web', keyIdFor(scene.cluster.oldKey!))
  const { gaps, steps, now, target } = await renewing(scene, { secrets: [token], mounted: token.claims })
  expect(gaps).toEqual(['Secret shop/web data[token]: token of the old key (shop/web, owner unknown)'])
  expect(steps.map(({ kind }) => kind)).toEqual(['patch-object', 'confirm'])
  const accepts = { ...target, waivers: new Set([...target.waivers, 'Secret shop/web data[token]']) }
  expect(phaseOf(keyPlaybook, 5).gaps(now, accepts)).toEqual([])
  expect(brokenTokens(now, accepts, phaseOf(keyPlaybook, 7).plan(now, accepts))).toBeUndefined()
})

test('names the Secret that already has a token of the new key', async () => {
  const scene = sceneOf()
  await run(scene, 1, 5)
  const { key } = (await observeIn(scene)).target
  const [old, second] = [legacy('web', keyIdFor(key!.oldKey)), legacy('web-2', keyIdFor(key!.newKey))]
  const { steps, questions } = await renewing(scene, { secrets: [old, second] })
  expect(steps.map(({ kind }) => kind)).toEqual(['confirm'])
  expect(questions[0]).toMatch(/^Give the token of Secret shop\/web-2 to .*, then delete Secret shop\/web\.$/)
  // Anyone who can write this Secret can write these claims.
  const forged = { ...second, location: 'other/web-2 data[token]' }
  expect((await renewing(scene, { secrets: [old, forged] })).steps[0]?.kind).toBe('patch-object')
})

test('asks about each kubeconfig that is on no node', async () => {
  const scene = sceneOf()
  await run(scene, 1, 5)
  const { gaps, questions, now, target } = await renewing(scene, { kubeconfigs: ['ci'] })
  expect(gaps).toEqual(['kubeconfig ci: not read, because it is on no node'])
  expect(questions).toEqual([expect.stringMatching(/^Search kubeconfig ci for a token with key ID /)])
  const confirmed = { ...target, waivers: new Set(['ci']) }
  expect(phaseOf(keyPlaybook, 5).gaps(now, confirmed)).toEqual([])
})

test.each<[string, (scene: Scene) => void, string]>([
  [
    'tokens of a node that cannot be read',
    ({ cluster }) => cluster.hiddenTokens.add('w2'),
    'w2: its tokens cannot be read: permission denied',
  ],
  [
    'CSI drivers that cannot be listed',
    ({ cluster }) => (cluster.tokenDrivers = { unread: 'forbidden' }),
    'CSIDrivers: cannot be read: forbidden',
  ],
  [
    'Secrets that cannot be listed',
    ({ cluster }) => cluster.unlisted.add('Secret'),
    'Secrets: cannot be read: forbidden',
  ],
])('does not count %s as renewed', async (_what, hide, gap) => {
  const scene = sceneOf()
  await run(scene, 1, 4)
  hide(scene)
  await expect(run(scene, 5, 5)).rejects.toMatchObject({ code: 'KCERT_ROTATION_CHECK_FAILED' })
  expect(await pending(scene, 5)).toContain(gap)
})

test('creates no Secret in the namespace that a forged token names', async () => {
  const scene = sceneOf()
  const { cluster } = scene
  await run(scene, 1, 4)
  const { observed, target } = await observeIn(scene)
  const claims = { keyId: keyIdFor(cluster.oldKey!), issuer: 'kubernetes/serviceaccount', audiences: [] }
  const forged = {
    kind: 'Secret',
    location: 'shop/web data[token]',
    claims: { ...claims, namespace: 'kube-system', serviceAccount: 'admin', boundTo: 'secret web' },
  } as const
  const tokens = { ...observed.tokens, objects: [{ kind: 'Secret', tokens: { value: [forged] } }] } as const
  const steps = phaseOf(keyPlaybook, 5)
    .plan({ ...observed, tokens }, target)
    .flatMap(actionsOf)
  expect(steps.map(({ kind }) => kind)).not.toContain('patch-object')
  expect(steps.filter(({ kind }) => kind === 'confirm')).toHaveLength(1)
})

test('does not roll back phase 2 while a token of the new key is stored', async () => {
  const scene = sceneOf()
  await run(scene, 1, 4)
  await scene.asProcess((rotation) => rotation.undo(4))
  const { target } = await observeIn(scene)
  scene.cluster.put('Secret shop/web', { tokenKey: target.key!.newKey, serviceAccount: 'web' })
  await expect(scene.asProcess((rotation) => rotation.undo(2))).rejects.toMatchObject({
    message: expect.stringContaining('tokens of the new key may be in use: shop/web data[token]'),
  })
})

test('does not roll back phase 2 while a client has a token of the new key in memory', async () => {
  const scene = sceneOf({ proof: 'counters', waivers: new Set() })
  const { cluster } = scene
  await run(scene, 1, 4)
  const restarted = (): ReturnType<typeof podIn> => {
    const { uid, workload } = podIn(scene)
    cluster.pods.delete(uid)
    cluster.startPod(workload)
    return [...cluster.pods.values()].at(-1)!
  }
  const pod = restarted()
  pod.readsTokenOnce = true
  await scene.asProcess((rotation) => rotation.undo(4))
  expect(mountedKeys(scene)).toEqual(['old'])
  await expect(scene.asProcess((rotation) => rotation.undo(2))).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    why: expect.stringMatching(/stale and legacy tokens at cp\d/),
  })
  expect(keysOf(scene)).toEqual(allWith('old,new', 'old'))
  cluster.pods.delete(pod.uid)
  cluster.startPod(pod.workload)
  await scene.asProcess((rotation) => rotation.undo(2))
  expect(keysOf(scene)).toEqual(allWith('old', 'old'))
  expect(scene.clients.failures).toEqual([])
})

test.each([
  [
    'audit',
    'rollback:audit-log',
    /^Run kcert audit with --sa-key and the key in kcert\/new\/sa.key \(key ID /,
  ],
  ['pods', 'rollback:', /^Restart Pod .*, or accept that it may still use a token of the new key\.$/],
] as const)('--proof %s: phase 2 is rolled back only with this confirmation', async (proof, id, question) => {
  const scene = sceneOf({ proof, waivers: new Set(['audit-log']) })
  await run(scene, 1, 4)
  await scene.asProcess((rotation) => rotation.undo(4))
  const undo = () => scene.asProcess((rotation) => rotation.undo(2))
  await expect(undo()).rejects.toMatchObject({
    message: expect.stringContaining('not proven that no client uses a token of the new key'),
    why: expect.stringMatching(question),
    next: expect.stringContaining(`kcert rotate-sa-key rollback --proof ${proof} --waive ${id}`),
  })
  expect(keysOf(scene)).toEqual(allWith('old,new', 'old'))
  const pods = [...scene.cluster.pods.values()].map((pod) => `rollback:${pod.id}`)
  scene.settings = { ...scene.settings, waivers: new Set(['rollback:audit-log', ...pods]) }
  await undo()
  expect(keysOf(scene)).toEqual(allWith('old', 'old'))
})

test('pods: the waiver of a workload is enough for its pods', async () => {
  const scene = sceneOf({ proof: 'pods', waivers: new Set() })
  await run(scene, 1, 5)
  const pods = [...scene.cluster.pods.values()]
  const workload = podIn(scene).workload!
  const others = pods.filter((pod) => pod.workload !== workload)
  expect(others.length).toBeLessThan(pods.length)
  scene.settings = { ...scene.settings, waivers: new Set([`rollback:${workload}`]) }
  expect(await pending(scene, 6)).toHaveLength(pods.length)
  scene.settings = { ...scene.settings, waivers: new Set([workload]) }
  expect(await pending(scene, 6)).toHaveLength(others.length)
})

test('phase 2 is rolled back after the proof of a node that the rollback of phase 4 did not see', async () => {
  const scene = sceneOf({ proof: 'counters', waivers: new Set() })
  await run(scene, 1, 4)
  await scene.asProcess((rotation) => rotation.undo(4))
  const { observed, target } = await observeIn(scene)
  const copies = observed.copies.filter(({ phase }) => phase === 2)
  const firstSteps = (now: Snapshot): string[] => {
    const undo = phaseOf(keyPlaybook, 2).undo(copies, now, target)
    const steps = undo.kind === 'steps' ? undo.steps.flatMap(actionsOf) : []
    return steps.slice(0, 3).map((step) => (step.kind === 'probe' ? JSON.stringify(step.subject) : step.kind))
  }
  expect(firstSteps(observed).slice(0, 2)).toEqual(['wait', 'wait'])
  const unseen = `no mounted token with key ID ${keyIdFor(target.key!.newKey)} on w2`
  expect(observed.evidence.has(unseen)).toBe(true)
  const evidence = new Map([...observed.evidence].filter(([key]) => key !== unseen))
  // Its clients may have read their tokens just before this observation.
  const later = { ...observed, evidence, atMs: observed.atMs + 600_000 }
  expect(firstSteps(later)).toEqual([expect.stringContaining('"node":"w2"'), 'wait', 'wait'])
})

test('rolls back phase 2 at once if no process ever signed with the new key', async () => {
  const scene = sceneOf({ waivers: new Set() })
  await run(scene, 1, 3)
  await scene.asProcess((rotation) => rotation.undo(2))
  expect(keysOf(scene)).toEqual(allWith('old', 'old'))
})

test.each(['audit', 'pods', 'counters'] as const)(
  '--proof %s waits until the tokens that CSI drivers have are expired, unless waived',
  async (proof) => {
    const scene = sceneOf({ proof })
    const { cluster } = scene
    const name = 'secrets.example'
    cluster.tokenDrivers = { value: [{ name, audiences: ['vault'], lifetimeSeconds: 7200 }] }
    const pods = [...cluster.pods.values()].flatMap(({ id }) => [id, `rollback:${id}`])
    const waived = new Set([...accepted.waivers, 'jwks-upload', 'jwks-max-age', 'jwks-last-upload', ...pods])
    scene.settings = { ...scene.settings, waivers: waived }
    await run(scene, 1, 5)
    const begun = cluster.time.nowMs
    expect(await pending(scene, 6)).toContainEqual(
      expect.stringMatching(/^CSIDriver secrets.example: its tokens of the old key expire at /),
    )
    const settings = { ...scene.settings, waivers: new Set([...waived, `CSIDriver ${name}`]) }
    const { settings: before } = scene
    scene.settings = settings
    expect(await pending(scene, 6)).not.toContainEqual(expect.stringContaining('CSIDriver'))
    scene.settings = before
    await run(scene, 6, 6)
    expect(cluster.time.nowMs - begun).toBeGreaterThan(7_100_000)
    // A rollback does the same for the new key. The waiver of the old one does not count.
    scene.settings = settings
    await scene.asProcess((rotation) => rotation.undo(4))
    const undone = cluster.time.nowMs
    await scene.asProcess((rotation) => rotation.undo(2))
    expect(cluster.time.nowMs - undone).toBeGreaterThan(7_100_000)
    expect(keysOf(scene)).toEqual(allWith('old', 'old'))
  },
)

// --- programs outside of the cluster

function setFlag({ cluster }: Scene, flag: string, value: string): void {
  for (const node of nodes) {
    const path = '/etc/kubernetes/manifests/kube-apiserver.yaml'
    const { definition } = JSON.parse(cluster.read(node, path)!.text)
    cluster.write(node, path, {
      definition: { ...definition, flags: { ...definition.flags, [flag]: value } },
    })
  }
}

test('waits for external verifiers for the max-age after the last restart, and for the upload', async () => {
  const scene = sceneOf()
  setFlag(scene, 'service-account-issuer', 'https://issuer.example')
  await scene.cluster.time.pass(120_000)
  await run(scene, 1, 2)
  const begun = scene.cluster.time.nowMs
  await expect(run(scene, 3, 3)).rejects.toMatchObject({
    message: expect.stringContaining('not yet uploaded'),
  })
  scene.settings = { ...scene.settings, waivers: new Set(['audit-log', 'jwks-upload']) }
  await run(scene, 3, 3)
  expect(scene.cluster.time.nowMs - begun).toBeGreaterThan(3_500_000)
  await run(scene, 4, 5)
  // Restarts of phase 4 and 7 do not begin the wait again.
  expect(await pending(scene, 3)).toEqual([])
})

test('the max-age begins with the upload', async () => {
  const scene = sceneOf()
  setFlag(scene, 'service-account-jwks-uri', 'https://keys.example/jwks')
  await scene.cluster.time.pass(120_000)
  await run(scene, 1, 2)
  await scene.cluster.time.pass(3_700_000)
  const begun = scene.cluster.time.nowMs
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([3]), { settings: accepted, answers: () => true })
  expect(scene.cluster.time.nowMs - begun).toBeGreaterThan(3_600_000)
})

test('asks for an upload without the old key, after a leak once pods have new tokens', async () => {
  const scene = sceneOf({ reason: 'compromise' })
  setFlag(scene, 'service-account-jwks-uri', 'https://keys.example/jwks')
  await scene.cluster.time.pass(120_000)
  await run(scene, 1, 4)
  const ran: unknown[] = []
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([5]), {
    settings: { ...accepted, reason: 'compromise' },
    yes: true,
    options: {
      hooks: [
        { when: 'upload-jwks', argv: ['to-a'] },
        { when: 'upload-jwks', argv: ['to-b'] },
      ],
      runHook: async (hook, around) => void ran.push([hook.argv, around]),
    },
  })
  expect(ran).toEqual([
    [['to-a'], { phase: 5 }],
    [['to-b'], { phase: 5 }],
  ])
  expect(await pending(scene, 7)).toEqual([])
  const other = sceneOf({ waivers: new Set(['audit-log', 'jwks-upload', 'jwks-max-age']) })
  setFlag(other, 'service-account-jwks-uri', 'https://keys.example/jwks')
  await other.cluster.time.pass(120_000)
  await run(other, 1, 6)
  await expect(run(other, 7, 7)).rejects.toMatchObject({
    message: expect.stringContaining('/openid/v1/jwks: not yet uploaded without the old key'),
  })
  expect(keysOf(other)).toEqual(allWith('new', 'new'))
  // A rollback of phase 7 puts the old key into the copies again.
  const { settings } = other
  await new SimulatedOperator(other).command((session) => session.run([7]), { settings, answers: () => true })
  const undoing = new SimulatedOperator(other)
  await undoing.command((session) => session.rollback(6), { settings, answers: () => true })
  expect(undoing.questions.at(-1)).toMatch(/the old key must be in it again\. Done\?$/)
})

test('runs the upload hook of the inventory in place of the question', async () => {
  const scene = sceneOf()
  setFlag(scene, 'service-account-jwks-uri', 'https://keys.example/jwks')
  await scene.cluster.time.pass(120_000)
  await run(scene, 1, 2)
  const ran: unknown[] = []
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([3]), {
    settings: { ...accepted, waivers: new Set(['jwks-max-age']) },
    yes: true,
    options: {
      hooks: [{ when: 'upload-jwks', argv: ['upload'] }],
      runHook: async (hook, around) => void ran.push([hook.argv, around]),
    },
  })
  expect(ran).toEqual([[['upload'], { phase: 3 }]])
  expect(scene.journal.text).toContain('"kind":"waiver","id":"jwks-upload"')
})

// --- refusals

test.each<[string, (scene: Scene) => void, Partial<Settings>, RegExp]>([
  [
    'an external signer',
    (scene) => setFlag(scene, 'service-account-signing-endpoint', '/run/signer.sock'),
    {},
    /^an external signer has the key/,
  ],
  [
    'different keys',
    ({ cluster }) => {
      cluster.write('cp2', '/etc/kubernetes/pki/sa.key', { key: cluster.oldCa.spki })
    },
    {},
    /keys other than the old and the new one: cp2:/,
  ],
  [
    'a private key among the public ones',
    ({ cluster }) => cluster.write('cp3', '/etc/kubernetes/pki/sa.pub', { key: cluster.oldKey! }),
    {},
    /not only public keys in PEM: cp3:/,
  ],
  [
    'a file that cannot be read',
    ({ cluster }) => cluster.remove('cp3', '/etc/kubernetes/pki/sa.pub'),
    {},
    /not only public keys in PEM: cp3:/,
  ],
  [
    'a worker that cannot be reached',
    ({ cluster }) => (cluster.nodes.get('w1')!.isUnreachable = true),
    {},
    /^1 node/,
  ],
  [
    'a control-plane node whose API server is not defined',
    ({ cluster }) => {
      cluster.remove('cp3', '/etc/kubernetes/manifests/kube-apiserver.yaml')
      cluster.stop('cp3/kube-apiserver')
    },
    {},
    /^no kube-apiserver is defined on control-plane nodes: cp3/,
  ],
  ['an untested version', () => {}, { acceptedVersions: new Set() }, /^Kubernetes 1\.36 is untested/],
])('refuses to start with %s', async (_what, change, settings, message) => {
  const scene = sceneOf(settings)
  change(scene)
  await scene.cluster.time.pass(120_000)
  const before = scene.files()
  await expect(run(scene, 1, 1)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: expect.stringMatching(message),
  })
  expect(scene.files()).toEqual(before)
})

test('needs an accepted outage for one API server', async () => {
  const scene = sceneOf({}, { controlPlanes: 1 })
  await run(scene, 1, 1)
  await expect(run(scene, 2, 2)).rejects.toMatchObject({
    message: 'the only API server must be restarted',
    next: 'kcert rotate-sa-key --phase 2 --accept-outage',
  })
  scene.settings = { ...scene.settings, acceptsOutage: true }
  await run(scene, 2, 8)
  expect(scene.clients.failures.filter(({ why }) => why.includes('token'))).toEqual([])
})

test('phase 8 cannot be rolled back', async () => {
  const scene = sceneOf()
  await run(scene, 1, 8)
  await expect(scene.asProcess((rotation) => rotation.undo(8))).rejects.toMatchObject({
    message: 'phase 8 cannot be rolled back',
  })
})

// --- commands

test('shows its own eight phases, plans all of them, runs them, and prints no key', async () => {
  const scene = sceneOf()
  const { cluster } = scene
  const operator = new SimulatedOperator(scene)
  const settings = accepted
  const status = await operator.command((session) => session.status(), { settings })
  expect(status.phases.map(({ number, id }) => `${number} ${id}`)).toEqual([
    '1 create-key',
    '2 verify-both',
    '3 await-verifiers',
    '4 sign-new',
    '5 renew-tokens',
    '6 prove-unused',
    '7 drop-old',
    '8 finish',
  ])
  expect([status.state, status.next?.command]).toEqual(['not-started', 'kcert rotate-sa-key --phase 1'])
  expect(status.serviceAccountKey).toEqual({ oldKeyId: keyIdFor(cluster.oldKey!) })
  expect(renderProgress(status, wide)).toMatch(
    /^service account key rotation not started\nkey ID +.* → \(created in phase 1\)/,
  )
  const plan = await operator.command((session) => session.plan(), { settings })
  expect(plan.blockers).toEqual([])
  const stays = plan.phases.flatMap(({ remarks }) => remarks.filter((one) => one.startsWith('would')))
  expect(stays).toEqual([])
  expect(plan.restarts.map(({ process, phases: its }) => `${process} ${its}`).sort()).toEqual(
    [
      ...apis.map((id) => `${id} 2,4,7`),
      ...nodes.map((node) => `${node}/kube-controller-manager 4`),
      ...[...nodes, 'w1', 'w2'].map((node) => `${node}/kubelet 5`),
    ].sort(),
  )
  const foreseen = plan.phases.map(({ steps }) => steps.map(({ what }) => what))
  expect(foreseen[1]).toContain('restart cp2/kube-apiserver')
  expect(plan.phases.map((phase) => renderPhasePlan(phase, wide)).join('')).toContain(
    `+ public key with key ID ${keyIdFor(cluster.oldKey!)}`,
  )
  const { report } = await operator.command((session) => session.run(phases), { settings, yes: true })
  expect([report.outcome, report.next]).toEqual(['done', undefined])
  expect(report.oldKeys?.files.map(({ node, keyId }) => [node, keyId])).toEqual(
    nodes.map((node) => [node, keyIdFor(cluster.oldKey!)]),
  )
  const end = await operator.command((session) => session.status(), { settings })
  expect([end.state, end.serviceAccountKey?.newKeyId]).toEqual([
    'finished',
    expect.stringMatching(/^[\w-]{43}$/),
  ])
  const shown = renderStatus(end, wide)
  expect(shown).toContain('finished: tokens of the old key are no longer accepted')
  expect(shown).toMatch(/no mounted token with key ID \S+ on \w+/)
  expect(shown).not.toMatch(/ on on /)
  // The advice of phase 1 ended with phase 8, and each note stands once in what the operator saw while a phase ran.
  const joining = 'do not join a control-plane node'
  expect(end.phases[0]?.remarks.join()).toContain(joining)
  expect(shown).not.toContain(joining)
  expect(operator.stderr.split(joining)).toHaveLength(2)
  // Of a key, only its ID is in reports, and its digest in the journal.
  const { newKey } = (await observeIn(scene)).target.key!
  for (const text of [operator.stderr, JSON.stringify([plan, report, end])])
    for (const digest of [newKey, cluster.oldKey!]) expect(text).not.toContain(digest)
  expect(scene.journal.text).toContain(`"key":{"oldKey":"${cluster.oldKey}","newKey":"${newKey}"}`)
})
