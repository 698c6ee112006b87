import { expect, test } from 'vitest'
import { retireOldKeys } from '../../src/app/rotate-ca/retire-old-keys.ts'
import type { Operator } from '../../src/app/rotate-ca/session.ts'
import { renderPlan } from '../../src/output/rotation/plan.ts'
import { renderRun } from '../../src/output/rotation/run.ts'
import { renderProgress } from '../../src/output/rotation/status.ts'
import { actionsOf, type Step } from '../../src/rotation/action.ts'
import { changesOf, describeAction, nodeOf } from '../../src/rotation/effects.ts'
import { brokenEtcdConnection } from '../../src/rotation/etcd/model.ts'
import { clientsId } from '../../src/rotation/etcd/phases/2-present-bridge.ts'
import { etcdPlaybook } from '../../src/rotation/etcd/playbook.ts'
import { phaseOf } from '../../src/rotation/phase.ts'
import { playbook } from '../../src/rotation/playbook.ts'
import type { Snapshot } from '../../src/rotation/snapshot.ts'
import { defaultSettings, type Settings } from '../../src/rotation/target-reading.ts'
import type { ClusterShape } from '../fakes/simulated-cluster.ts'
import { SimulatedOldKeys } from '../fakes/simulated-cluster-ports.ts'
import { SimulatedOperator, wide } from './operator.ts'
import { Scene } from './scene.ts'

// The rotation of etcd's CA on a simulated cluster. Every member, API server and gateway connects after every event.

const shape: ClusterShape = { controlPlanes: 3, workers: 1, namespaces: 3, hasEtcd: true }
const nodes = ['cp1', 'cp2', 'cp3']
const phases = [1, 2, 3, 4, 5, 6]
const accepted = { cas: ['etcd'], acceptedVersions: new Set(['1.36']) } as const
/** The operator confirms in advance that unknown clients have new certificates. */
const unknown = { etcdClients: 'unknown', waivers: new Set([clientsId]) } as const
const variants = [
  ['known', {}],
  ['unknown', unknown],
] as const

function sceneOf(settings: Partial<Settings> = {}, given: Partial<ClusterShape> = {}): Scene {
  const scene = new Scene({ ...shape, ...given }, { ...accepted, ...settings }, etcdPlaybook)
  scene.cluster.etcdLeader = 'cp2'
  return scene
}

function observeIn(scene: Scene) {
  return scene.asProcess((rotation) => rotation.observe(etcdPlaybook.sections))
}

async function run(scene: Scene, from: number, to: number): Promise<void> {
  for (let phase = from; phase <= to; phase++) await scene.asProcess((rotation) => rotation.run(phase))
}

async function undo(scene: Scene, from: number): Promise<void> {
  for (let phase = from; phase >= 1; phase--) await scene.asProcess((rotation) => rotation.undo(phase))
}

/** Returns the CAs that each process has in memory, by name. */
function trusts({ cluster }: Scene): Record<string, string> {
  const flags = ['trusted-ca-file', 'peer-trusted-ca-file', 'etcd-cafile']
  return Object.fromEntries(
    [...cluster.processes.values()].flatMap((process) =>
      flags.flatMap((flag) =>
        process.flags[flag] === undefined
          ? []
          : [
              [
                `${process.id} ${flag}`,
                cluster
                  .loadedBy(process, flag)
                  .map((digest) => cluster.certificates.get(digest)?.subject)
                  .join(),
              ],
            ],
      ),
    ),
  )
}

function leavesOf({ cluster }: Scene): string[][] {
  const files = ['etcd/server', 'etcd/peer', 'etcd/healthcheck-client', 'apiserver-etcd-client']
  return nodes.flatMap((node) =>
    files.map((file) => {
      const { text } = cluster.read(node, cluster.certificatePath(file))!
      return cluster.certificatesIn(text).map((digest) => cluster.certificates.get(digest)!.issuer)
    }),
  )
}

/** Returns etcd's files and manifests. Copies stay. */
function bytes(scene: Scene): Record<string, string> {
  return Object.fromEntries(
    Object.entries(scene.files()).filter(([key]) => /etcd|manifests/.test(key) && !key.includes('/kcert/')),
  )
}

test('changes the CA with one restart of each process, and no connection fails', async () => {
  const scene = sceneOf()
  const { cluster } = scene
  cluster.restarts.length = 0
  const manifests = Object.entries(scene.files()).filter(([key]) => key.includes('/manifests/'))
  await run(scene, 1, 2)
  expect(cluster.restarts).toEqual([])
  expect(new Set(leavesOf(scene).map(String))).toEqual(new Set(['CN=etcd-ca-2,CN=etcd-ca']))
  await run(scene, 3, 3)
  // Followers first, the leader last.
  expect(cluster.restarts).toEqual(['cp1/etcd', 'cp3/etcd', 'cp2/etcd'])
  await run(scene, 4, 6)
  expect(cluster.restarts.slice(3)).toEqual(nodes.map((node) => `${node}/kube-apiserver`))
  expect(cluster.mostMembersDown).toBe(1)
  expect(scene.clients.failures).toEqual([])
  expect(new Set(Object.values(trusts(scene)))).toEqual(new Set(['CN=etcd-ca-2']))
  expect(new Set(leavesOf(scene).map(String))).toEqual(new Set(['CN=etcd-ca-2']))
  // Manifests stay as kubeadm wrote them, and nothing of kcert is left beside the CA.
  const after = scene.files()
  expect(Object.entries(after).filter(([key]) => key.includes('/manifests/'))).toEqual(manifests)
  expect(Object.keys(after).filter((key) => key.includes('/kcert/'))).toEqual([])
  expect(cluster.objects.has('Secret kube-system/kubeadm-certs')).toBe(false)
  expect(cluster.read('cp3', '/etc/kubernetes/pki/etcd/ca.key')?.text).toContain(
    [...cluster.certificates.values()].find(({ subject, isCa }) => isCa && subject === 'CN=etcd-ca-2')!.spki,
  )
})

test.each(
  variants.flatMap(([clients, settings]) =>
    (['before', 'after'] as const).map((when) => [when, clients, settings] as const),
  ),
)(
  'ends in the same place when kcert is killed %s each action, with %s clients',
  async (when, _clients, settings) => {
    const scene = sceneOf(settings)
    const kills = await scene.killedAtEachAct(when, phases, (phase) =>
      scene.asProcess((rotation) => rotation.run(phase)).then(() => {}),
    )
    expect(kills).toBeGreaterThan(40)
    expect(scene.cluster.mostMembersDown).toBe(1)
    expect(scene.clients.failures).toEqual([])
    expect(new Set(Object.values(trusts(scene)))).toEqual(new Set(['CN=etcd-ca-2']))
    expect(new Set(leavesOf(scene).map(String))).toEqual(new Set(['CN=etcd-ca-2']))
  },
)

test.each(
  variants.flatMap(([clients, settings]) =>
    [1, 2, 3, 4, 5].map((last) => [last, clients, settings] as const),
  ),
)(
  'rolls back from phase %i to the same bytes and the same trust, with %s clients',
  async (last, _, settings) => {
    const scene = sceneOf(settings)
    const [before, trusted] = [bytes(scene), trusts(scene)]
    await run(scene, 1, last)
    await undo(scene, last)
    expect(bytes(scene)).toEqual(before)
    expect(trusts(scene)).toEqual(trusted)
    expect(scene.cluster.mostMembersDown).toBeLessThanOrEqual(1)
    expect(scene.clients.failures).toEqual([])
    // The next rotation starts from the beginning.
    await run(scene, 1, 6)
    expect(scene.clients.failures).toEqual([])
  },
)

test.each(variants)(
  'rolls back from the middle of phase 3, killed at each action: %s clients',
  async (_, settings) => {
    const scene = sceneOf(settings)
    const [before, trusted] = [bytes(scene), trusts(scene)]
    await run(scene, 1, 2)
    let acts = 0
    scene.kill = () => (++acts === 8 ? 'after' : undefined)
    await expect(run(scene, 3, 3)).rejects.toThrow()
    scene.kill = () => undefined
    await scene.cluster.time.pass(20_000)
    await scene.killedAtEachAct('after', [3, 2, 1], (phase) =>
      scene.asProcess((rotation) => rotation.undo(phase)).then(() => {}),
    )
    expect(bytes(scene)).toEqual(before)
    expect(trusts(scene)).toEqual(trusted)
    expect(scene.clients.failures).toEqual([])
  },
)

test('with unknown clients, members accept certificates of both CAs from the middle of phase 2 to phase 3', async () => {
  const scene = sceneOf({ ...unknown, waivers: new Set() })
  const { cluster, clients } = scene
  const [old, given] = ['old', 'new'].map((name) => `backup with a certificate of the ${name} CA`)
  clients.strangers.push([cluster.issue(old!, cluster.oldEtcdCa!).digest])
  cluster.etcdClients.push('10.0.0.99')
  cluster.restarts.length = 0
  // Phase 1 does not need to find them.
  await run(scene, 1, 1)
  await expect(run(scene, 2, 2)).rejects.toMatchObject({ why: expect.stringContaining('10.0.0.99') })
  expect(cluster.restarts).toEqual(['cp1/etcd', 'cp3/etcd', 'cp2/etcd'])
  expect(new Set(leavesOf(scene).map(String))).toEqual(new Set(['CN=etcd-ca-2,CN=etcd-ca']))
  const members = Object.entries(trusts(scene)).filter(([name]) => name.includes('/etcd '))
  expect(new Set(members.map(([, trust]) => trust))).toEqual(new Set(['CN=etcd-ca,CN=etcd-ca-2']))
  // Without the bridge certificate.
  const newCa = [...cluster.certificates.values()].find(({ subject, isCa, issuer }) => {
    return isCa && subject === 'CN=etcd-ca-2' && issuer === subject
  })
  clients.strangers.push([cluster.issue(given!, newCa!).digest])
  scene.settings = { ...scene.settings, waivers: new Set(['10.0.0.99']) }
  await expect(run(scene, 2, 2)).rejects.toMatchObject({
    message: expect.stringMatching(/^phase 2 is incomplete: clients of etcd: not yet confirmed/),
  })
  scene.settings = { ...scene.settings, ...unknown }
  await run(scene, 2, 2)
  expect(clients.failures).toEqual([])
  clients.strangers.shift()
  await run(scene, 3, 6)
  expect(cluster.restarts.filter((id) => id.endsWith('/etcd'))).toHaveLength(6)
  expect(cluster.restarts.filter((id) => id.endsWith('/kube-apiserver'))).toHaveLength(3)
  expect(cluster.mostMembersDown).toBe(1)
  expect(clients.failures).toEqual([])
  expect(new Set(Object.values(trusts(scene)))).toEqual(new Set(['CN=etcd-ca-2']))
})

test('rolls back phase 2 with unknown clients, killed at each action, and refuses no certificate of the old CA', async () => {
  const scene = sceneOf(unknown)
  const { cluster, clients } = scene
  const [before, trusted] = [bytes(scene), trusts(scene)]
  clients.strangers.push([cluster.issue('backup', cluster.oldEtcdCa!).digest])
  await run(scene, 1, 2)
  cluster.restarts.length = 0
  await scene.killedAtEachAct('before', [2, 1], (phase) =>
    scene.asProcess((rotation) => rotation.undo(phase)).then(() => {}),
  )
  // API servers that never read both CAs do not restart.
  expect(new Set(cluster.restarts)).toEqual(new Set(nodes.map((node) => `${node}/etcd`)))
  expect(bytes(scene)).toEqual(before)
  expect(trusts(scene)).toEqual(trusted)
  expect(clients.failures).toEqual([])
})

test('with unknown clients, a watch from before phase 2 or from before its rollback does not count', async () => {
  const scene = sceneOf()
  const { etcdClients } = scene.cluster
  await run(scene, 1, 1)
  scene.settings = { ...scene.settings, ...unknown }
  const named = (address: string) => ({ why: expect.stringContaining(address) })
  etcdClients.push('10.0.0.98')
  await expect(run(scene, 2, 2)).rejects.toMatchObject(named('10.0.0.98'))
  etcdClients.pop()
  await run(scene, 2, 2)
  etcdClients.push('10.0.0.99')
  // Complete: the same command does not watch again.
  await run(scene, 2, 2)
  await scene.asProcess((rotation) => rotation.undo(2))
  await expect(run(scene, 2, 2)).rejects.toMatchObject(named('10.0.0.99'))
})

test('refuses to make a member trust only the new CA before phase 3', async () => {
  const scene = sceneOf(unknown)
  await run(scene, 1, 2)
  const on = await observeIn(scene)
  const early = planned(on, 3).map((step) => ('phase' in step ? { ...step, phase: 2 } : step))
  expect(brokenBy(on, early)).toMatch(/would refuse a client with a certificate of the old CA/)
  expect(brokenBy(on, planned(on, 3))).toBeUndefined()
})

test('plans for unknown clients, asks about them once, and keeps choice and answer in the journal', async () => {
  const scene = sceneOf()
  const operator = new SimulatedOperator(scene)
  const settings = { ...accepted, etcdClients: 'unknown' } as const
  const plan = await operator.command((session) => session.plan(), { settings })
  expect(plan.blockers).toEqual([])
  expect(plan.restarts.map(({ process, phases: its }) => [process, its]).sort()).toEqual(
    nodes.flatMap((node) => [
      [`${node}/etcd`, [2, 3]],
      [`${node}/kube-apiserver`, [4]],
    ]),
  )
  // The question before phase 2 must not say that nothing restarts.
  expect(plan.phases.map(({ risk }) => risk).slice(0, 3)).toEqual(['writes', 'restarts', 'restarts'])
  const remarks = plan.phases.flatMap((phase) => phase.remarks)
  expect(remarks.filter((one) => one.startsWith('would'))).toEqual([])
  expect(remarks.join()).toContain('--waive etcd-clients')
  await operator.command((session) => session.run([1]), { settings, yes: true })
  // Later commands do not need the flag.
  const later = { settings: accepted }
  const states = async () => {
    const { phases: found } = await operator.command((session) => session.status(), later)
    return found.map(({ state }) => state).slice(0, 3)
  }
  const answers = (question: string): boolean => question.startsWith('Run')
  await expect(operator.command((session) => session.run([2]), { ...later, answers })).rejects.toMatchObject({
    message: expect.stringMatching(/^phase 2 is incomplete: clients of etcd: not yet confirmed/),
  })
  expect(operator.questions).toEqual(['Run phase 2?', expect.stringMatching(/^Give every client .* Done\?$/)])
  await operator.command((session) => session.run([2]), { ...later, answers: () => true })
  expect(await states()).toEqual(['complete', 'complete', 'incomplete'])
  expect(scene.journal.text).toContain('"etcdClients":"unknown"')
})

test.each([1, 2, 3])(
  'without its journal, the rotation goes on with unknown clients after phase %i',
  async (last) => {
    const scene = sceneOf(unknown)
    const operator = new SimulatedOperator(scene)
    scene.cluster.restarts.length = 0
    await run(scene, 1, last)
    scene.journal.text = ''
    const { etcdClients: _, ...rest } = scene.settings
    scene.settings = rest
    expect((await observeIn(scene)).target.etcdClients).toBe('unknown')
    const { blockers } = await operator.command((session) => session.plan(), {
      settings: { ...accepted, etcdClients: 'known' },
    })
    expect(blockers).toEqual([
      expect.objectContaining({
        what: 'this rotation began with --etcd-clients unknown, not with known',
        next: 'kcert rotate-ca rollback --to 0',
      }),
    ])
    const yes = { settings: { ...accepted, waivers: unknown.waivers }, yes: true }
    await operator.command((session) => session.run([1, 2]), yes)
    expect(scene.journal.text).toContain('"etcdClients":"unknown"')
    await operator.command((session) => session.run([3, 4, 5, 6]), yes)
    expect(scene.cluster.restarts.filter((id) => id.endsWith('/etcd')).length).toBe(6)
    expect(scene.clients.failures).toEqual([])
    expect(Object.keys(scene.files()).filter((key) => key.includes('/kcert/'))).toEqual([])
    expect((await observeIn(scene)).target.etcdClients).toBe('known')
  },
)

test('the rotation of the cluster CA has no unknown clients of etcd, also if both CAs are in one folder', async () => {
  const scene = new Scene(shape)
  await scene.runAll(1, 1)
  const { observed } = await scene.asProcess((rotation) => rotation.observe(playbook.sections))
  const shared = {
    ...observed,
    components: observed.components.map((one) => ({
      ...one,
      flags: { ...one.flags, 'etcd-cafile': '/etc/kubernetes/pki/etcd-ca.crt' },
    })),
  }
  // The file that phase 1 distributes for unknown clients of etcd would have this path.
  expect(shared.files.has('cp1:/etc/kubernetes/pki/kcert/ca-bundle.crt')).toBe(true)
  const targetWith = (cas: Settings['cas']) =>
    playbook.targetOf(shared, { ...defaultSettings, cas }, { changes: [] })
  expect(targetWith(['cluster', 'front-proxy']).etcdClients).toBe('known')
  expect(targetWith(['etcd']).etcdClients).toBe('unknown')
})

test.each(['known', 'unknown'] as const)(
  'a rotation that began with %s clients keeps them until it is rolled back',
  async (began) => {
    const other = began === 'known' ? 'unknown' : 'known'
    const scene = sceneOf()
    const operator = new SimulatedOperator(scene)
    const command = (etcdClients: 'known' | 'unknown') => ({
      settings: { ...accepted, waivers: unknown.waivers, etcdClients },
      yes: true,
    })
    const risks = async (etcdClients: 'known' | 'unknown') => {
      const { phases: its } = await operator.command((session) => session.plan(), command(etcdClients))
      return its[1]?.risk
    }
    // Nothing has changed yet.
    expect([await risks(other), await risks(began)].sort()).toEqual(['restarts', 'writes'])
    await operator.command((session) => session.run([1, 2]), command(began))
    const files = scene.files()
    await expect(operator.command((session) => session.run([3]), command(other))).rejects.toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      message: `this rotation began with --etcd-clients ${began}, not with ${other}`,
      next: 'kcert rotate-ca rollback --to 0',
    })
    expect(scene.files()).toEqual(files)
    await operator.command((session) => session.rollback(0), { settings: accepted, yes: true })
    await operator.command((session) => session.run([1, 2, 3]), command(other))
    expect(scene.clients.failures).toEqual([])
  },
)

test('phase 6 cannot be rolled back', async () => {
  const scene = sceneOf()
  await run(scene, 1, 6)
  await expect(scene.asProcess((rotation) => rotation.undo(6))).rejects.toMatchObject({
    message: 'phase 6 cannot be rolled back',
  })
})

function planned({ observed, target }: Awaited<ReturnType<typeof observeIn>>, phase: number) {
  return phaseOf(etcdPlaybook, phase).plan(observed, target)
}

function brokenBy(
  { observed, target }: Awaited<ReturnType<typeof observeIn>>,
  steps: readonly Step[],
): string | undefined {
  return brokenEtcdConnection(observed, target, steps)?.what
}

test.each([
  ['etcd/server', 'cp1/etcd, --cert-file'],
  ['etcd/peer', 'cp1/etcd, --peer-cert-file'],
  ['etcd/healthcheck-client', 'etcdctl on cp1, healthcheck-client.crt'],
  ['apiserver-etcd-client', 'cp1/kube-apiserver, --etcd-certfile'],
])('refuses %s of the new CA without the bridge certificate', async (file, credentialHolder) => {
  const scene = sceneOf()
  await run(scene, 1, 1)
  const on = await observeIn(scene)
  const steps = planned(on, 2)
  expect(brokenBy(on, steps)).toBeUndefined()
  const bare = steps.flatMap(actionsOf).map((action): Step => {
    const isIt = action.kind === 'write-file' && action.path.endsWith(`${file}.crt`)
    if (!isIt || action.content.kind !== 'reissued') return action
    return { ...action, content: { ...action.content, chain: [] } }
  })
  expect(brokenBy(on, bare)).toMatch(new RegExp(` would refuse ${credentialHolder}$`))
})

test('refuses to remove the bridge certificate after the CA files changed but before their processes restarted', async () => {
  const scene = sceneOf()
  await run(scene, 1, 2)
  const on = await observeIn(scene)
  const written = planned(on, 3)
    .flatMap(actionsOf)
    .filter((action) => action.kind === 'write-file')
  const [apis, dropped] = [planned(on, 4), planned(on, 5)]
  expect(brokenBy(on, [...written, ...apis])).toBeUndefined()
  expect(brokenBy(on, [...written, ...apis, ...dropped])).toMatch(
    /^the plan of phase 5 breaks a connection: cp1\/etcd, --/,
  )
  expect(brokenBy(on, [...planned(on, 3), ...dropped])).toMatch(
    /: cp1\/kube-apiserver, --etcd-cafile would refuse /,
  )
  expect(brokenBy(on, [...planned(on, 3), ...apis, ...dropped])).toBeUndefined()
})

test('refuses a member that trusts only the new CA before all present the bridge certificate', async () => {
  const scene = sceneOf()
  await run(scene, 1, 1)
  const on = await observeIn(scene)
  expect(brokenBy(on, planned(on, 3))).toMatch(
    /^the plan of phase 3 breaks a connection: cp1\/etcd, --.*trusted-ca-file/,
  )
})

test.each(['cp3/etcd', 'cp2/kube-apiserver'])(
  'refuses to remove the bridge certificate while %s has the old CA in memory',
  async (id) => {
    const scene = sceneOf()
    await run(scene, 1, 4)
    const on = await observeIn(scene)
    expect(brokenBy(on, planned(on, 5))).toBeUndefined()
    const older = <One extends { id: string; process?: { startedAtMs: number } }>(one: One): One =>
      one.id === id ? { ...one, process: { ...one.process!, startedAtMs: 0 } } : one
    const observed: Snapshot = {
      ...on.observed,
      etcdMembers: on.observed.etcdMembers.map(older),
      components: on.observed.components.map(older),
    }
    expect(brokenBy({ ...on, observed }, planned(on, 5))).toContain(`${id}, --`)
    const [refusal] = phaseOf(etcdPlaybook, 5).refusals(observed, on.target)
    expect(refusal?.what).toBe(`still trusting the old etcd CA: ${id}`)
  },
)

test('does not count a process that runs with another CA file than its definition names', async () => {
  const scene = sceneOf()
  await run(scene, 1, 4)
  const on = await observeIn(scene)
  const components = on.observed.components.map((one) =>
    one.id === 'cp2/kube-apiserver'
      ? { ...one, process: { ...one.process!, flags: { ...one.process!.flags, 'etcd-cafile': '/old.crt' } } }
      : one,
  )
  const observed: Snapshot = { ...on.observed, components }
  expect(brokenBy({ ...on, observed }, planned(on, 5))).toContain('cp2/kube-apiserver, --etcd-cafile')
  const [refusal] = phaseOf(etcdPlaybook, 5).refusals(observed, on.target)
  expect(refusal?.what).toBe('still trusting the old etcd CA: cp2/kube-apiserver')
})

test('refuses to remove the bridge certificate while etcd has a member that no node shows', async () => {
  const scene = sceneOf({}, { controlPlanes: 4 })
  await run(scene, 1, 4)
  const { observed, target } = await observeIn(scene)
  const isSeen = ({ node }: { readonly node: string }): boolean => node !== 'cp4'
  const partly: Snapshot = {
    ...observed,
    nodes: observed.nodes.filter(({ name }) => name !== 'cp4'),
    components: observed.components.filter(isSeen),
    etcdMembers: observed.etcdMembers.filter(isSeen),
    files: new Map([...observed.files].filter(([, file]) => isSeen(file))),
  }
  const why = (seen: Snapshot): readonly string[] =>
    etcdPlaybook.preflight(seen, target, phaseOf(etcdPlaybook, 5)).map(({ what }) => what)
  expect(why(observed)).toEqual([])
  expect(why(partly)).toEqual([
    expect.stringMatching(/^etcd is not healthy: etcd member [0-9a-f]+ was not found/),
  ])
})

test('proves again that a member refuses the old CA after its CA file was restored and changed again', async () => {
  const scene = sceneOf()
  await run(scene, 1, 3)
  await scene.asProcess((rotation) => rotation.undo(3))
  scene.kill = ({ action }) => (action.kind === 'restart' ? 'after' : undefined)
  await expect(run(scene, 3, 3)).rejects.toThrow()
  scene.kill = () => undefined
  await scene.cluster.time.pass(30_000)
  const probed = planned(await observeIn(scene), 3)
    .flatMap(actionsOf)
    .flatMap((action) => (action.kind === 'probe' && 'at' in action.subject ? [action.subject.at] : []))
  expect(probed.sort()).toEqual(['cp1/etcd', 'cp2/etcd', 'cp3/etcd'])
})

test('refuses to restore old certificates before members trust the old CA again', async () => {
  const scene = sceneOf()
  await run(scene, 1, 3)
  await expect(scene.asProcess((rotation) => rotation.undo(2))).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: expect.stringContaining('breaks a connection'),
  })
})

test('no plan with steps in another order breaks a connection unless the model refuses it', async () => {
  const refused: number[] = []
  for (const phase of [2, 3, 5]) {
    const scene = sceneOf()
    await run(scene, 1, phase - 1)
    const on = await observeIn(scene)
    // Without waits and checks, which would stop it.
    const changes = planned(on, phase)
      .flatMap(actionsOf)
      .filter((action) => changesOf(action) === 'node')
    const reversed = changes.toReversed()
    if (brokenBy(on, reversed) !== undefined) {
      refused.push(phase)
      continue
    }
    await scene.asProcess((rotation) => rotation.performAll(reversed))
    await scene.cluster.time.pass(60_000)
    expect(scene.clients.failures).toEqual([])
  }
  // Chains satisfy old and new members alike, so the order within a phase is free for trust. The quorum is what orders phase 3.
  expect(refused).toEqual([])
})

test('checks the quorum directly before each restart, and after the last one', async () => {
  const scene = sceneOf()
  await run(scene, 1, 2)
  const on = await observeIn(scene)
  const acts = planned(on, 3).flatMap(actionsOf)
  const kinds = acts.flatMap((action) =>
    action.kind === 'restart' ? [action.process] : action.kind === 'wait' ? [action.until.kind] : [],
  )
  const each = (node: string) => ['etcd-quorum', `${node}/etcd`, 'healthy']
  expect(kinds).toEqual([...each('cp1'), ...each('cp3'), ...each('cp2'), 'etcd-quorum'])
  // A pause or a hook before a node comes before its first action, so never between the check and the restart.
  for (const [index, action] of acts.entries())
    if (action.kind === 'restart') expect(nodeOf(acts[index - 1]!)).toBe(nodeOf(action))
  expect(acts.filter(({ kind }) => kind === 'restart')).toEqual(
    ['cp1', 'cp3', 'cp2'].map((node) => expect.objectContaining({ process: `${node}/etcd`, how: 'signal' })),
  )
})

test.each<[string, (scene: Scene) => void, Partial<Settings>, RegExp]>([
  [
    'a learner',
    ({ cluster }) => cluster.learners.add('cp3'),
    {},
    /etcd is not healthy: cp3\/etcd is a learner/,
  ],
  ['a member that is down', ({ cluster }) => cluster.stop('cp3/etcd'), {}, /cp3\/etcd no process runs/],
  ['new keys', () => {}, { newKeys: true }, /new keys for the certificates of etcd are not supported/],
  [
    'a CA without key identifier',
    ({ cluster }) => {
      const { subjectKeyId: _, authorityKeyId: __, ...bare } = cluster.oldEtcdCa!
      cluster.know(bare)
    },
    {},
    /has no subject key identifier/,
  ],
  [
    'a CA that the cluster uses too',
    ({ cluster }) => {
      for (const node of nodes)
        cluster.write(node, cluster.certificatePath('ca'), { certificates: [cluster.oldEtcdCa!.digest] })
    },
    {},
    /shares its CA with the cluster/,
  ],
  [
    'another CA beside etcd’s',
    ({ cluster }) => {
      const trust = [cluster.oldEtcdCa!.digest, cluster.oldCa.digest]
      cluster.write('cp2', cluster.certificatePath('etcd/ca'), { certificates: trust })
    },
    {},
    /do not contain exactly the etcd CA: cp2:/,
  ],
  [
    'no key of the CA',
    ({ cluster }) => {
      for (const node of nodes) cluster.remove(node, '/etc/kubernetes/pki/etcd/ca.key')
    },
    {},
    /^no control-plane node or etcd machine has the key of the etcd CA$/,
  ],
])('refuses to start with %s', async (_what, change, settings, message) => {
  const scene = sceneOf(settings)
  change(scene)
  const before = scene.files()
  await expect(run(scene, 1, 1)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: expect.stringMatching(message),
  })
  expect(scene.files()).toEqual(before)
})

test('refuses fewer than three members unless the outage is accepted', async () => {
  await expect(run(sceneOf({}, { controlPlanes: 1 }), 1, 1)).rejects.toMatchObject({
    message: expect.stringMatching(/^etcd has only 1 member/),
  })
})

test.each(variants)(
  'rotates and rolls back a single member, killed at each action, with %s clients',
  async (_, settings) => {
    const scene = sceneOf({ ...settings, acceptsOutage: true }, { controlPlanes: 1 })
    scene.cluster.etcdLeader = 'cp1'
    const [before, trusted] = [bytes(scene), trusts(scene)]
    const undone = (phase: number) => scene.asProcess((rotation) => rotation.undo(phase)).then(() => {})
    const done = (phase: number) => scene.asProcess((rotation) => rotation.run(phase)).then(() => {})
    await run(scene, 1, 5)
    await scene.killedAtEachAct('after', [5, 4, 3, 2, 1], undone)
    scene.kill = () => undefined
    expect(bytes(scene)).toEqual(before)
    expect(trusts(scene)).toEqual(trusted)
    scene.cluster.restarts.length = 0
    expect(await scene.killedAtEachAct('after', phases, done)).toBeGreaterThan(10)
    expect(new Set(scene.cluster.restarts)).toEqual(new Set(['cp1/etcd', 'cp1/kube-apiserver']))
    expect(new Set(Object.values(trusts(scene)))).toEqual(new Set(['CN=etcd-ca-2']))
    expect(scene.clients.failures).toEqual([])
  },
)

test('names clients that Kubernetes does not know before it changes anything, until they are accepted', async () => {
  const scene = sceneOf()
  scene.cluster.etcdClients.push('10.0.0.99')
  const before = scene.files()
  await expect(run(scene, 1, 1)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    why: expect.stringContaining('10.0.0.99'),
  })
  expect(scene.files()).toEqual(before)
  scene.settings = { ...scene.settings, waivers: new Set(['10.0.0.99']) }
  await run(scene, 1, 6)
})

test('refuses a cluster without members that kcert finds', async () => {
  await expect(run(sceneOf({}, { hasEtcd: false }), 1, 1)).rejects.toMatchObject({
    message: expect.stringMatching(/^no etcd member was found/),
    why: expect.stringContaining('docs/guides/rotate-ca.md'),
  })
})

test.for([
  ['https://127.0.0.1:2379', undefined],
  ['https://localhost:2379', undefined],
  ['https://10.1.0.1:2379,https://10.1.0.2:2379', undefined],
  ['https://10.1.0.1:2379,https://10.9.0.1:2379', '10.9.0.1:2379'],
  ['https://127.0.0.1:2479', '127.0.0.1:2479'],
  ['https://[::1]:2379', undefined],
  ['https://user:secret@10.9.0.1:2379', '10.9.0.1:2379'],
  ['unix:///run/etcd.sock', '(not a URL)'],
  ['10.1.0.1', '(not a URL)'],
  ['', '(not a URL)'],
  [undefined, '(not a URL)'],
  ['https://10.9.0.1:2379', undefined, ['cp2 10.9.0.1:2379']],
  ['https://etcd.example:443', undefined, ['cp2 etcd.example']],
  // Another address in the network of the other node.
  ['https://etcd.example:2379', 'etcd.example:2379', ['cp1 etcd.example:2379']],
  ['https://etcd.example:2379,https://10.9.0.2:2379', '10.9.0.2:2379', ['cp2 etcd.example:2379']],
] as const)(
  'an API server with --etcd-servers=%s uses another etcd: %s',
  async ([servers, named, reachedAt]) => {
    const scene = sceneOf()
    const { observed, target } = await observeIn(scene)
    const etcdMembers = observed.etcdMembers.map((one, index) => {
      const flags = { ...one.flags, 'advertise-client-urls': `https://10.1.0.${index}:2379` }
      return { ...one, flags, ...(index === 0 && reachedAt && { reachedAt }) }
    })
    const components = observed.components.map(({ flags: { 'etcd-servers': _, ...flags }, ...one }) =>
      one.id === 'cp2/kube-apiserver'
        ? { ...one, flags: servers === undefined ? flags : { ...flags, 'etcd-servers': servers } }
        : { ...one, flags: { ...flags, 'etcd-servers': 'https://127.0.0.1:2379' } },
    )
    const found = etcdPlaybook.preflight(
      { ...observed, components, etcdMembers },
      target,
      phaseOf(etcdPlaybook, 1),
    )
    const start = 'endpoints of API servers at which no etcd member of this cluster was found: '
    expect(found.map(({ what }) => what)).toEqual(
      named === undefined ? [] : [`${start}cp2/kube-apiserver --etcd-servers=${named}`],
    )
  },
)

test.for([
  ['', undefined],
  ['/events#https://127.0.0.1:2379', undefined],
  ['/events#https://10.9.0.1:2379', '10.9.0.1:2379'],
  ['/events#https://127.0.0.1:2379;https://10.9.0.1:2379', '10.9.0.1:2379'],
  ['/events#https://127.0.0.1:2379,apps/deployments#https://10.9.0.2:2379', '10.9.0.2:2379'],
  ['/events', '(not a URL)'],
] as const)(
  'an API server with --etcd-servers-overrides=%s uses another etcd: %s',
  async ([overrides, named]) => {
    const { observed, target } = await observeIn(sceneOf())
    const components = observed.components.map((one) =>
      one.id === 'cp2/kube-apiserver'
        ? { ...one, flags: { ...one.flags, 'etcd-servers-overrides': overrides } }
        : one,
    )
    const found = etcdPlaybook.preflight({ ...observed, components }, target, phaseOf(etcdPlaybook, 1))
    expect(found.map(({ what }) => what)).toEqual(
      named === undefined
        ? []
        : [expect.stringContaining(`: cp2/kube-apiserver --etcd-servers-overrides=${named}`)],
    )
  },
)

test('shows its own six phases, plans all of them, and reports the end', async () => {
  const scene = sceneOf()
  const operator = new SimulatedOperator(scene)
  const settings = accepted
  const status = await operator.command((session) => session.status(), { settings })
  expect(status.phases.map(({ number, id }) => `${number} ${id}`)).toEqual([
    '1 create-ca',
    '2 present-bridge',
    '3 restart-etcd',
    '4 restart-api-servers',
    '5 drop-bridge',
    '6 finish',
  ])
  expect([status.state, status.next?.command]).toEqual(['not-started', 'kcert rotate-ca --phase 1'])
  const plan = await operator.command((session) => session.plan(), { settings })
  expect(plan.blockers).toEqual([])
  expect(
    plan.phases.map(({ number, remarks }) => [number, remarks.filter((one) => one.startsWith('would'))]),
  ).toEqual(phases.map((number) => [number, []]))
  expect(plan.restarts.map(({ process }) => process).sort()).toEqual(
    nodes.flatMap((node) => [`${node}/etcd`, `${node}/kube-apiserver`]),
  )
  const foreseen = plan.phases.map(({ steps }) => steps.map(({ what }) => what))
  const { report } = await operator.command((session) => session.run(phases), { settings, yes: true })
  expect([report.outcome, report.next]).toEqual(['done', undefined])
  expect(foreseen[2]).toContain('restart cp2/etcd')
  const end = await operator.command((session) => session.status(), { settings })
  expect(end.state).toBe('finished')
  expect(scene.clients.failures).toEqual([])
})

test('prints state, plan and result in words, and no private key', async () => {
  const scene = sceneOf()
  const operator = new SimulatedOperator(scene)
  const settings = accepted
  const status = await operator.command((session) => session.status(), { settings })
  expect(renderProgress(status, wide)).toContain('etcd CA')
  const plan = await operator.command((session) => session.plan(), { settings })
  const text = renderPlan(plan, wide)
  for (const words of ['restart etcd on', 'nothing blocks the rotation', 'leader: cp2/etcd', '--soak 2h'])
    expect(text).toContain(words)
  // Only the cluster CA affects these.
  expect(text).not.toMatch(/kubeconfigs|webhook|phase 12/)
  const { report } = await operator.command((session) => session.run(phases), { settings, yes: true })
  expect(renderRun(report, wide)).toContain('--destroy-old-key')
  expect(report.oldKeys?.files.map(({ node, ca }) => [node, ca])).toEqual(nodes.map((node) => [node, 'etcd']))
  expect(operator.stderr).not.toContain(scene.cluster.oldEtcdCa!.spki)
})

test('destroys the key of the old etcd CA after the rotation, and never one in use', async () => {
  const scene = sceneOf()
  const { cluster, observer, journal } = scene
  const operator: Operator = {
    ...{ choose: undefined, type: undefined, showPlan: () => {}, tell: () => {}, note: () => {} },
    interrupted: new AbortController().signal,
  }
  const retire = () => {
    const pace = { now: cluster.time.now, sleep: cluster.time.sleep }
    const ports = { observer, oldKeys: new SimulatedOldKeys(cluster), journal, pace }
    const asked = { table: etcdPlaybook, dryRun: false, yes: true, render: () => '' }
    return cluster.time.until(retireOldKeys(ports, asked, operator))
  }
  await run(scene, 1, 5)
  await expect(retire()).rejects.toMatchObject({ message: 'the rotation is not finished' })
  await run(scene, 6, 6)
  const { report } = await retire()
  expect([report.outcome, report.files.map(({ state }) => state)]).toEqual([
    'done',
    ['removed', 'removed', 'removed'],
  ])
  const { spki } = cluster.oldEtcdCa!
  expect([...cluster.files].filter(([, { text }]) => text === JSON.stringify({ key: spki }))).toEqual([])
  // The key of the cluster's CA is another one, and stays.
  expect(cluster.read('cp1', '/etc/kubernetes/pki/ca.key')?.text).toContain(cluster.oldCa.spki)
})

test('does not need the workers, and refuses when a control-plane node cannot be reached', async () => {
  const scene = sceneOf()
  scene.cluster.nodes.get('w1')!.isUnreachable = true
  await run(scene, 1, 2)
  scene.cluster.nodes.get('cp3')!.isUnreachable = true
  await expect(run(scene, 3, 3)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: expect.stringMatching(/^1 node cannot be reached: cp3 \(connection timed out\)/),
    why: expect.stringContaining('its member of etcd'),
  })
  scene.cluster.nodes.get('cp3')!.isUnreachable = false
  await run(scene, 3, 6)
  expect(new Set(Object.values(trusts(scene)))).toEqual(new Set(['CN=etcd-ca-2']))
})

test('refuses a Kubernetes version on which this rotation has not run on real nodes', async () => {
  await expect(run(sceneOf({ acceptedVersions: new Set() }), 1, 1)).rejects.toMatchObject({
    message: expect.stringMatching(/^Kubernetes 1\.36 is untested: /),
    next: 'kcert rotate-ca plan --accept-untested-version 1.36',
  })
})

test('restarts an API server that is a systemd unit through systemd', async () => {
  const scene = sceneOf()
  await run(scene, 1, 3)
  const { observed, target } = await observeIn(scene)
  const components = observed.components.map((one) => ({ ...one, runsAs: 'unit' as const }))
  const restarts = planned({ observed: { ...observed, components }, target }, 4)
    .flatMap(actionsOf)
    .flatMap((action) => (action.kind === 'restart' ? [[action.how, action.killAfterMs]] : []))
  expect(restarts).toEqual(nodes.map(() => ['service', undefined]))
})

test('describes a restart by signal like any other', () => {
  expect(describeAction({ kind: 'restart', phase: 3, process: 'cp1/etcd', how: 'signal' })).toBe(
    'restart cp1/etcd',
  )
})

test.each(variants)(
  'members and API servers that are units restart through systemd: %s clients',
  async (_, settings) => {
    const scene = sceneOf(settings, { isPlain: true })
    const { cluster } = scene
    const { observed, target } = await observeIn(scene)
    expect(observed.etcdMembers.map(({ runsAs }) => runsAs)).toEqual(['unit', 'unit', 'unit'])
    expect(etcdPlaybook.preflight(observed, target, phaseOf(etcdPlaybook, 1))).toEqual([])
    const [before, trusted] = [bytes(scene), trusts(scene)]
    const restarts = phases.flatMap((phase) =>
      planned({ observed, target }, phase)
        .flatMap(actionsOf)
        .flatMap((action) => (action.kind === 'restart' ? [`${action.process} ${action.how}`] : [])),
    )
    expect(new Set(restarts)).toEqual(
      new Set(nodes.flatMap((node) => [`${node}/etcd service`, `${node}/kube-apiserver service`])),
    )
    await run(scene, 1, 4)
    await undo(scene, 4)
    expect(bytes(scene)).toEqual(before)
    expect(trusts(scene)).toEqual(trusted)
    const kills = await scene.killedAtEachAct('after', phases, (phase) =>
      scene.asProcess((rotation) => rotation.run(phase)).then(() => {}),
    )
    expect(kills).toBeGreaterThan(40)
    expect(cluster.mostMembersDown).toBe(1)
    expect(scene.clients.failures).toEqual([])
    expect(new Set(Object.values(trusts(scene)))).toEqual(new Set(['CN=etcd-ca-2']))
  },
)

test.each([
  [
    'a configuration file',
    'config-file',
    '/etc/etcd/etcd.yaml',
    /^unusable configuration files of etcd: cp1\/etcd --config-file=/,
  ],
  [
    'a separate client certificate',
    'peer-client-cert-file',
    '/etc/etcd/peer-client.crt',
    /^etcd members with separate client certificates: cp1\/etcd --peer-client-cert-file=/,
  ],
  [
    'unset files',
    'cert-file',
    undefined,
    /^files of etcd that are not set or cannot be read: cp1\/etcd --cert-file=/,
  ],
] as const)('refuses members with %s', async (_, flag, value, what) => {
  const { observed, target } = await observeIn(sceneOf({}, { isPlain: true }))
  const etcdMembers = observed.etcdMembers.map((one) => {
    const { [flag]: __, ...flags } = one.flags
    return { ...one, flags: value === undefined ? flags : { ...flags, [flag]: value } }
  })
  const found = etcdPlaybook.preflight({ ...observed, etcdMembers }, target, phaseOf(etcdPlaybook, 1))
  expect(found.map((one) => one.what)).toEqual([expect.stringMatching(what)])
})

test('refuses a member whose process has a configuration file that its unit does not show', async () => {
  const { observed, target } = await observeIn(sceneOf({}, { isPlain: true }))
  const etcdMembers = observed.etcdMembers.map((one) => {
    const { process: running } = one
    if (running === undefined) throw new TypeError(`${one.id} does not run`)
    return { ...one, process: { ...running, flags: { ...running.flags, 'config-file': '/etc/etcd.yaml' } } }
  })
  const found = etcdPlaybook.preflight({ ...observed, etcdMembers }, target, phaseOf(etcdPlaybook, 1))
  expect(found.map((one) => one.what)).toEqual([
    expect.stringMatching(/^unusable configuration files of etcd: cp1\/etcd --config-file=\/etc\/etcd.yaml/),
  ])
})

test('refuses a CA of etcd in the folder of the cluster CA, whose rotation has files there too', async () => {
  const { observed, target } = await observeIn(sceneOf({}, { isPlain: true }))
  const components = observed.components.map((one) =>
    one.id === 'cp2/kube-apiserver'
      ? { ...one, flags: { ...one.flags, 'client-ca-file': '/etc/kubernetes/pki/etcd/other.pem' } }
      : one,
  )
  const found = etcdPlaybook.preflight({ ...observed, components }, target, phaseOf(etcdPlaybook, 1))
  expect(found.map((one) => one.what)).toContain(
    '--etcd-cafile and --client-ca-file of API servers are in one folder: cp2/kube-apiserver',
  )
})

// Five members on machines of their own, and API servers with their own copies of the CA.

function externalScene(settings: Partial<Settings> = {}): Scene {
  const scene = new Scene(
    { ...shape, hasEtcd: false, etcdMachines: 5 },
    { ...accepted, ...settings },
    etcdPlaybook,
  )
  scene.cluster.etcdLeader = 'e4'
  return scene
}

test('external etcd: changes the CA of five members with one restart of each process, and no connection fails', async () => {
  const scene = externalScene()
  const { cluster } = scene
  cluster.restarts.length = 0
  await run(scene, 1, 6)
  expect(cluster.restarts).toEqual([
    ...['e1', 'e2', 'e3', 'e5', 'e4'].map((node) => `${node}/etcd`),
    ...nodes.map((node) => `${node}/kube-apiserver`),
  ])
  expect(cluster.mostMembersDown).toBe(1)
  expect(scene.clients.failures).toEqual([])
  expect(scene.clients.tried.get('API server to etcd')).toBeGreaterThan(100)
  expect(new Set(Object.values(trusts(scene)))).toEqual(new Set(['CN=etcd-ca-2']))
  const files = scene.files()
  const { oldEtcdCa } = cluster
  const isOfOld = (text: string): boolean =>
    [oldEtcdCa!.digest, oldEtcdCa!.spki].some((needle) => text.includes(needle))
  expect(Object.entries(files).filter(([key, text]) => key.includes('/kcert/') || isOfOld(text))).toEqual([])
})

test('external etcd: plans each phase for machines and API servers', async () => {
  const scene = externalScene()
  const operator = new SimulatedOperator(scene)
  const plan = await operator.command((session) => session.plan(), { settings: accepted })
  expect(plan.blockers).toEqual([])
  const what = plan.phases.map(({ steps }) => {
    const all = steps.flatMap((step) => ('steps' in step ? (step.steps as typeof steps) : [step]))
    return all.map((step) => `${step.at}: ${step.what}`)
  })
  expect(what.slice(2, 4)).toMatchInlineSnapshot(`
    [
      [
        "e1: write e1:/etc/etcd/ssl/etcd-ca.pem (certificates)",
        "etcd: wait until every member of etcd is healthy, and all agree on one leader",
        "e1/etcd: restart e1/etcd",
        "e1/etcd: check: client old etcd refused at e1/etcd",
        "e2: write e2:/etc/etcd/ssl/etcd-ca.pem (certificates)",
        "etcd: wait until every member of etcd is healthy, and all agree on one leader",
        "e2/etcd: restart e2/etcd",
        "e2/etcd: check: client old etcd refused at e2/etcd",
        "e3: write e3:/etc/etcd/ssl/etcd-ca.pem (certificates)",
        "etcd: wait until every member of etcd is healthy, and all agree on one leader",
        "e3/etcd: restart e3/etcd",
        "e3/etcd: check: client old etcd refused at e3/etcd",
        "e5: write e5:/etc/etcd/ssl/etcd-ca.pem (certificates)",
        "etcd: wait until every member of etcd is healthy, and all agree on one leader",
        "e5/etcd: restart e5/etcd",
        "e5/etcd: check: client old etcd refused at e5/etcd",
        "e4: write e4:/etc/etcd/ssl/etcd-ca.pem (certificates)",
        "etcd: wait until every member of etcd is healthy, and all agree on one leader",
        "e4/etcd: restart e4/etcd",
        "e4/etcd: check: client old etcd refused at e4/etcd",
        "etcd: wait until every member of etcd is healthy, and all agree on one leader",
      ],
      [
        "cp1: write cp1:/etc/kubernetes/pki/etcd/ca.crt (certificates)",
        "cp1/kube-apiserver: restart cp1/kube-apiserver",
        "cp1/kube-apiserver: wait until cp1/kube-apiserver is ready again",
        "cp2: write cp2:/etc/kubernetes/pki/etcd/ca.crt (certificates)",
        "cp2/kube-apiserver: restart cp2/kube-apiserver",
        "cp2/kube-apiserver: wait until cp2/kube-apiserver is ready again",
        "cp3: write cp3:/etc/kubernetes/pki/etcd/ca.crt (certificates)",
        "cp3/kube-apiserver: restart cp3/kube-apiserver",
        "cp3/kube-apiserver: wait until cp3/kube-apiserver is ready again",
        "cp1: write cp1:/etc/kubernetes/pki/etcd/ca.key (ca-key)",
      ],
    ]
  `)
})

test.each(
  variants.flatMap(([clients, settings]) => [
    ['before', clients, settings] as const,
    ['after', clients, settings] as const,
  ]),
)(
  'external etcd: ends in the same place when kcert is killed %s each action, with %s clients',
  async (when, _clients, settings) => {
    const scene = externalScene(settings)
    const kills = await scene.killedAtEachAct(when, phases, (phase) =>
      scene.asProcess((rotation) => rotation.run(phase)).then(() => {}),
    )
    expect(kills).toBeGreaterThan(50)
    expect(scene.cluster.mostMembersDown).toBe(1)
    expect(scene.clients.failures).toEqual([])
    expect(new Set(Object.values(trusts(scene)))).toEqual(new Set(['CN=etcd-ca-2']))
  },
)

test.each(
  variants.flatMap(([clients, settings]) => [2, 3, 4, 5].map((last) => [last, clients, settings] as const)),
)(
  'external etcd: rolls back from phase %i to the same bytes and the same trust, killed at each action, with %s clients',
  async (last, _clients, settings) => {
    const scene = externalScene(settings)
    const [before, trusted] = [bytes(scene), trusts(scene)]
    await run(scene, 1, last)
    const back = Array.from({ length: last }, (_, index) => last - index)
    await scene.killedAtEachAct('after', back, (phase) =>
      scene.asProcess((rotation) => rotation.undo(phase)).then(() => {}),
    )
    scene.kill = () => undefined
    expect(bytes(scene)).toEqual(before)
    expect(trusts(scene)).toEqual(trusted)
    expect(scene.clients.failures).toEqual([])
    await run(scene, 1, 6)
    expect(scene.clients.failures).toEqual([])
  },
)

test.each<[string, (observed: Snapshot) => Partial<Snapshot>, RegExp]>([
  [
    'a member whose machine is not listed',
    ({ nodes: all, etcdMembers }) => ({
      nodes: all.filter(({ name }) => name !== 'e5'),
      etcdMembers: etcdMembers.filter(({ node }) => node !== 'e5'),
    }),
    /^endpoints of API servers at which no etcd member .*: cp1\/kube-apiserver --etcd-servers=10.1.0.5:2379, .*\netcd is not healthy: etcd member [0-9a-f]{16} was not found on any control-plane node or etcd machine/,
  ],
  [
    'a machine without a member',
    ({ nodes: all }) => ({ nodes: [...all, { ...all.find(({ name }) => name === 'e1')!, name: 'e6' }] }),
    /^no etcd member was found on etcd machines in kcert.yaml: e6$/,
  ],
  [
    'two machines with one member',
    ({ nodes: all, etcdMembers }) => ({
      nodes: [...all, { ...all.find(({ name }) => name === 'e1')!, name: 'e6' }],
      etcdMembers: [...etcdMembers, { ...etcdMembers[0]!, id: 'e6/etcd', node: 'e6' }],
    }),
    /^etcd is not healthy: e1\/etcd is the same member as e6\/etcd$/m,
  ],
  [
    'a member of another etcd',
    ({ nodes: all, etcdMembers }) => {
      const [one] = etcdMembers
      const state = { ...one!.state!, memberId: 'abc', known: ['abc'], active: [], isLeader: true }
      return {
        nodes: [...all, { ...all.find(({ name }) => name === 'e1')!, name: 'e6' }],
        etcdMembers: [...etcdMembers, { ...one!, id: 'e6/etcd', node: 'e6', state }],
      }
    },
    /^etcd is not healthy: e1\/etcd does not list member abc$/m,
  ],
  [
    'a machine that cannot be reached',
    ({ nodes: all, etcdMembers }) => ({
      nodes: all.map((one) => (one.name === 'e3' ? { ...one, unreachable: 'no route to host' } : one)),
      etcdMembers: etcdMembers.filter(({ node }) => node !== 'e3'),
    }),
    /^1 node cannot be reached: e3 \(no route to host\)\n/,
  ],
  [
    'an API server whose CA file cannot be read',
    ({ components }) => ({
      components: components.map((one) =>
        one.id === 'cp2/kube-apiserver'
          ? { ...one, flags: { ...one.flags, 'etcd-cafile': '/other/ca.crt' } }
          : one,
      ),
    }),
    /^files of API servers that are not set or cannot be read: cp2\/kube-apiserver --etcd-cafile=\/other\/ca.crt$/m,
  ],
])('external etcd: refuses %s', async (_what, change, message) => {
  const { observed, target } = await observeIn(externalScene())
  const why = (seen: Snapshot): string =>
    etcdPlaybook
      .preflight(seen, target, phaseOf(etcdPlaybook, 1))
      .map(({ what }) => what)
      .join('\n')
  expect(why(observed)).toBe('')
  expect(why({ ...observed, ...change(observed) })).toMatch(message)
})

test('external etcd: refuses to make an API server trust only the new CA before its members present it', async () => {
  const scene = externalScene()
  await run(scene, 1, 1)
  const on = await observeIn(scene)
  expect(brokenBy(on, planned(on, 4))).toMatch(
    /cp1\/kube-apiserver, --etcd-cafile would refuse e1\/etcd, --cert-file/,
  )
})

test('external etcd: refuses to remove the bridge certificate while one API server has the old CA in memory', async () => {
  const scene = externalScene()
  await run(scene, 1, 3)
  const { observed, target } = await observeIn(scene)
  const written = planned({ observed, target }, 4)
    .flatMap(actionsOf)
    .filter(({ kind }) => kind === 'write-file')
  expect(written.map(nodeOf)).toEqual([...nodes, 'cp1'])
  const [refusal] = phaseOf(etcdPlaybook, 5).refusals(observed, target)
  expect(refusal?.what).toBe(
    `still trusting the old etcd CA: ${nodes.map((node) => `${node}/kube-apiserver`).join(', ')}`,
  )
  expect(brokenBy({ observed, target }, [...written, ...planned({ observed, target }, 5)])).toMatch(
    /--etcd-cafile would refuse /,
  )
})

test('external etcd: refuses to restore old certificates while an API server may have the new CA in memory', async () => {
  const scene = externalScene()
  await run(scene, 1, 4)
  scene.kill = ({ action }) => (action.kind === 'restart' ? 'before' : undefined)
  await expect(scene.asProcess((rotation) => rotation.undo(4))).rejects.toThrow()
  scene.kill = () => undefined
  const cas = () => nodes.map((node) => scene.cluster.read(node, '/etc/kubernetes/pki/etcd/ca.crt')?.text)
  expect(new Set(cas()).size).toBe(1)
  await scene.asProcess((rotation) => rotation.undo(3))
  await expect(scene.asProcess((rotation) => rotation.undo(2))).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: expect.stringMatching(/breaks a connection: .*kube-apiserver, --etcd-cafile would refuse /),
  })
  expect(scene.clients.failures).toEqual([])
  await undo(scene, 4)
  expect(scene.clients.failures).toEqual([])
})
