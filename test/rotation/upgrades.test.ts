import { expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { SimulatedOperator } from './operator.ts'
import { allPhases, Killed, Scene } from './scene.ts'

// kubeadm upgrade and kubeadm certs renew before and in the middle of a rotation.

const small = { controlPlanes: 2, workers: 1 } as const

async function refusalOf(work: Promise<unknown>): Promise<KcertError> {
  try {
    await work
  } catch (error) {
    if (error instanceof KcertError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

const statusOf = (scene: Scene) => new SimulatedOperator(scene).command((session) => session.status())

/** Waits until static pods run again. */
const settle = ({ cluster }: Scene) => cluster.time.pass(180_000)

test('does not start a rotation while control-plane nodes run different versions', async () => {
  const scene = new Scene(small)
  scene.cluster.upgradeNode('cp1', 'v1.37.2')
  await settle(scene)
  const { code, message, why, next } = await refusalOf(scene.run(1))
  expect(code).toBe('KCERT_ROTATION_REFUSED')
  expect(message).toContain(
    'control-plane nodes run different versions: kube-apiserver v1.37.2 (cp1) and v1.36.3 (cp2); kube-controller-manager v1.37.2 (cp1) and',
  )
  expect(why).toContain('kubeadm upgrade node')
  expect(next).toBe('kcert rotate-ca plan --waive v1.36.3+v1.37.2')
  expect(scene.files()).not.toHaveProperty(['cp1:/etc/kubernetes/pki/kcert/new/ca.crt'])
  scene.cluster.upgradeNode('cp2', 'v1.37.2')
  await settle(scene)
  await scene.run(1)
})

test.each([
  ['v1.37.2', 'kubeadm-config has v1.37.2, but API servers run v1.36.3: cp1, cp2'],
  ['v1.37', 'kubeadm-config has "v1.37", but API servers run v1.36.3: cp1, cp2'],
  [undefined, 'kubeadm-config has no Kubernetes version, but API servers run v1.36.3: cp1, cp2'],
])(
  'no rotation begins while kubeadm-config names %s and API servers run v1.36.3',
  async (version, message) => {
    const scene = new Scene(small)
    scene.cluster.put('ConfigMap kube-system/kubeadm-config', {
      extraArgs: {},
      ...(version && { kubernetesVersion: version }),
    })
    expect((await refusalOf(scene.run(1))).message).toContain(message)
  },
)

test('accepts different versions by name, and plan and status name them', async () => {
  const mixed = async (waiver: string) => {
    const scene = new Scene(small, { waivers: new Set([waiver]) })
    scene.cluster.upgradeNode('cp1', 'v1.37.2')
    await settle(scene)
    return scene
  }
  expect((await refusalOf((await mixed('v1.36.3+v1.38.0')).run(1))).code).toBe('KCERT_ROTATION_REFUSED')
  const scene = await mixed('v1.36.3+v1.37.2')
  const operator = new SimulatedOperator(scene)
  const options = { settings: { waivers: new Set(['v1.36.3+v1.37.2']) } }
  const plan = await operator.command((session) => session.plan(), options)
  expect(plan.blockers).toEqual([])
  const named =
    'accepted version mix: kube-apiserver v1.37.2 (cp1) and v1.36.3 (cp2); kube-controller-manager'
  expect(plan.phases[0]!.remarks.join()).toContain(named)
  const { blockers, phases } = await operator.command((session) => session.status(), options)
  expect([blockers, phases[0]!.remarks.join()]).toEqual([[], expect.stringContaining(named)])
  await scene.runAll()
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
})

test('an accepted mix does not allow a kubeadm-config with a version of no API server', async () => {
  const scene = new Scene(small, { waivers: new Set(['v1.36.3+v1.37.2']) })
  scene.cluster.upgradeNode('cp1', 'v1.37.2')
  scene.cluster.put('ConfigMap kube-system/kubeadm-config', { extraArgs: {}, kubernetesVersion: 'v1.38.0' })
  await settle(scene)
  expect((await refusalOf(scene.run(1))).message).toContain('kubeadm-config has v1.38.0')
})

test('treats builds of one version as the same version', async () => {
  const scene = new Scene(small)
  scene.cluster.upgradeNode('cp1', 'v1.36.3-vendor.1')
  await settle(scene)
  await scene.run(1)
})

test.each([2, 8, 9, 11])(
  'detects an upgrade after phase %i, and repairs it when the phases run again',
  async (last) => {
    const scene = new Scene(small)
    await scene.runAll(1, last)
    scene.cluster.upgradeNode('cp2', 'v1.37.2')
    await settle(scene)
    const remarks = new Map((await statusOf(scene)).phases.map((one) => [one.number, one.remarks.join('\n')]))
    const isNoticed = (number: number) =>
      remarks.get(number)!.includes('written with the old CA after the phase started, as kubeadm does: cp2:')
    expect([7, 9].map(isNoticed)).toEqual([last >= 7, last >= 9])
    if (last >= 9) {
      expect(remarks.get(9)).toContain('cp2:/etc/kubernetes/pki/apiserver.crt')
      expect(remarks.get(9)).toContain(
        'upgraded since phase 1: cp2/kube-apiserver from v1.36.3 to v1.37.2, cp2/',
      )
    }
    const next = (await statusOf(scene)).next?.command ?? ''
    const from = Number(/--phase (\d+)$/.exec(next)?.[1])
    expect(from).toBeLessThanOrEqual(Math.max(last + 1, 7))
    await scene.runAll(from)
    expect((await statusOf(scene)).state).toBe('finished')
    expect(scene.clients.failures).toEqual([])
    expect(scene.remainsOfOldCa()).toEqual([])
  },
)

test.each(['kubeadm upgrade', 'kubeadm certs renew all'])(
  'phase 12, stopped after the first node, reissues what %s issued on another one',
  async (command) => {
    const scene = new Scene(small)
    await scene.runAll(1, 11)
    scene.kill = ({ action }) =>
      action.phase === 12 && action.kind === 'probe' && action.subject.kind === 'logs' ? 'after' : undefined
    scene.clients.expectsBridge = false
    await expect(scene.run(12)).rejects.toBeInstanceOf(Killed)
    scene.kill = () => undefined
    if (command === 'kubeadm upgrade') scene.cluster.upgradeNode('cp2', 'v1.37.2')
    else scene.cluster.renewLeaves('cp2')
    await settle(scene)
    const { next, blockers, phases } = await statusOf(scene)
    expect([next?.command, blockers]).toEqual(['kcert rotate-ca --phase 12', []])
    expect(phases[11]!.pending).toEqual(
      expect.arrayContaining([
        { at: 'cp2:/etc/kubernetes/controller-manager.conf', what: 'client certificate of the old CA' },
        { at: 'cp2/kube-apiserver', what: 'serving certificate of the old CA' },
      ]),
    )
    const failed = scene.clients.failures.length
    await scene.killedAtEachAct('after', [12], (phase) => scene.run(phase))
    expect((await statusOf(scene)).state).toBe('finished')
    expect(scene.clients.failures.slice(failed)).toEqual([])
    expect(scene.remainsOfOldCa()).toEqual([])
  },
)

test('does not start a phase after one that kubeadm reverted, and names the cause', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 9)
  scene.cluster.renewLeaves('cp1')
  await settle(scene)
  const operator = new SimulatedOperator(scene)
  const { why } = await refusalOf(operator.command((session) => session.run([10]), { yes: true }))
  const { phases } = await statusOf(scene)
  expect(phases[8]!.state).not.toBe('complete')
  expect(why).toContain('written with the old CA after the phase started, as kubeadm does: cp1:')
  expect(why).not.toContain('upgraded')
})

test('does not report its own rollback as a change by kubeadm', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 9)
  for (const phase of [9, 8, 7]) await scene.undo(phase)
  const { phases } = await statusOf(scene)
  expect(phases.flatMap(({ remarks }) => remarks).join('\n')).not.toContain('as kubeadm does')
})

test('does not start a rotation while an API server has no permissions on kubelets, because phase 9 would stop halfway', async () => {
  const scene = new Scene(small)
  scene.cluster.logsFrom.set('cp1', Number.POSITIVE_INFINITY)
  const { code, message } = await refusalOf(scene.run(1))
  expect([code, message]).toEqual(['KCERT_ROTATION_CHECK_FAILED', 'not verified: logs cp1'])
  expect(scene.files()).not.toHaveProperty(['cp1:/etc/kubernetes/pki/kcert/new/ca.key'])
  scene.cluster.logsFrom.delete('cp1')
  await scene.run(1)
})

test('a rollback does not restore manifests of an older version', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 2)
  for (const node of ['cp1', 'cp2']) scene.cluster.upgradeNode(node, 'v1.37.2')
  await settle(scene)
  const files = scene.files()
  const { message, why } = await refusalOf(scene.undo(2))
  expect(message).toContain('upgraded since phase 1: cp1/kube-controller-manager from v1.36.3 to v1.37.2')
  expect(why).toContain('downgrade')
  expect(scene.files()).toEqual(files)
})

test('a rollback without an upgrade restores manifests as before', async () => {
  const scene = new Scene(small)
  const before = scene.files()
  await scene.runAll(1, 2)
  for (const phase of [2, 1]) await scene.undo(phase)
  expect(scene.files()).toEqual(before)
  expect(allPhases).toHaveLength(12)
})
