import { expect, test } from 'vitest'
import type { Action, Step } from '../../src/rotation/action.ts'
import { materialPaths } from '../../src/rotation/material.ts'
import { type BrokenEdge, checkPlan, refusalOf } from '../../src/rotation/model/check.ts'
import { phaseNumbered } from '../../src/rotation/playbook.ts'
import { type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import type { Target } from '../../src/rotation/target.ts'
import { pki } from '../fakes/simulated-cluster.ts'
import { Scene } from './scene.ts'

// Plans with failures that real rotations had. Each plan is refused because of the connection that it breaks.

const small = { controlPlanes: 2, workers: 1 } as const

async function observeIn(scene: Scene): Promise<{ observed: Snapshot; target: Target }> {
  return scene.asProcess((rotation) => rotation.observe(sectionNames))
}

/** Returns the connection that breaks if the plan of a phase, after `change`, runs now. */
async function edgeOf(
  scene: Scene,
  phase: number,
  change: (steps: readonly Step[]) => readonly Step[] = (steps) => steps,
): Promise<BrokenEdge | undefined> {
  const { observed, target } = await observeIn(scene)
  return checkPlan(observed, target, change(phaseNumbered(phase).plan(observed, target)))
}

function inOrder(steps: readonly Step[]): Action[] {
  return steps.flatMap((step) =>
    step.kind === 'together' ? step.lanes.flatMap((lane) => lane.steps) : [step],
  )
}

function names({ credentialHolder, trustHolder, after }: BrokenEdge) {
  return { credentialHolder, trustHolder, after }
}

test('breaks new pods if kube-root-ca.crt changes from the old CA directly to the new one', async () => {
  const scene = new Scene(small)
  await scene.run(1)
  const { newCertificate, bundle } = materialPaths(`${pki}/kcert`, 'cluster')
  const edge = await edgeOf(
    scene,
    2,
    (steps) => JSON.parse(JSON.stringify(steps).replaceAll(bundle, newCertificate)) as Step[],
  )
  expect(names(edge!)).toEqual({
    credentialHolder: 'cp1/kube-apiserver, --tls-cert-file',
    trustHolder: 'a starting pod',
    after: 'write cp2:/etc/kubernetes/manifests/kube-controller-manager.yaml (definition)',
  })
})

test('refuses a new CA with the same name and no key identifiers, as OpenSSL would', async () => {
  const scene = new Scene({ ...small, sameName: true })
  await scene.runAll(1, 6)
  const { observed, target } = await observeIn(scene)
  const steps = phaseNumbered(7).plan(observed, target)
  expect(checkPlan(observed, target, steps)).toBeUndefined()
  const { oldCa } = target.changes[0]!
  const { subjectKeyId: _, authorityKeyId: __, ...bare } = target.changes[0]!.newCa
  const mimic = { ...bare, subject: oldCa.subject, issuer: oldCa.subject }
  const certificates = new Map(observed.certificates).set(mimic.digest, mimic)
  const changes = target.changes.map((change) =>
    change.ca === 'cluster' ? { ...change, newCa: mimic } : change,
  )
  const edge = checkPlan({ ...observed, certificates }, { ...target, changes }, steps)!
  expect(edge.refusing).toEqual(['openssl'])
  expect(refusalOf(edge).what).toContain('(as OpenSSL builds paths)')
})

test('breaks pods if a new serving certificate comes before they trust both CAs, without a bridge certificate', async () => {
  const scene = new Scene(small, { withBridge: false })
  await scene.runAll(1, 3)
  await scene.runAll(5, 8)
  const { credentialHolder, trustHolder, after } = (await edgeOf(scene, 9))!
  expect(credentialHolder).toBe('cp1/kube-apiserver, --tls-cert-file')
  expect(trustHolder).toMatch(/^Pod default\/ping-/)
  expect(after).toBe('write cp1:/etc/kubernetes/pki/apiserver.crt (reissued)')
})

test('breaks the path from API server to kubelet if a client certificate comes before the kubelet trusts it', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 8)
  scene.cluster.write('w1', `${pki}/ca.crt`, { certificates: [scene.cluster.oldCa.digest] })
  await scene.cluster.time.pass(1_000)
  expect(names((await edgeOf(scene, 9))!)).toEqual({
    credentialHolder: 'API servers to w1/kubelet',
    trustHolder: 'w1/kubelet, clientCAFile',
    after: 'write cp1:/etc/kubernetes/pki/apiserver-kubelet-client.crt (reissued)',
  })
})

test('breaks kubeconfigs of the new CA that come before API servers trust it', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 4)
  const edge = (await edgeOf(scene, 7))!
  expect(edge.kind).toBe('client')
  expect(edge.trustHolder).toMatch(/kube-apiserver, --client-ca-file$/)
})

test('breaks a kubelet that still presents the old CA when the old CA is dropped', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 11)
  const { cluster } = scene
  const { digest, spki } = cluster.issue('system:node:w1', cluster.oldCa)
  cluster.write('w1', '/var/lib/kubelet/pki/kubelet-client-current.pem', { pair: [digest], key: spki }, 0o600)
  cluster.restartKubelet('w1')
  await cluster.time.pass(20_000)
  const { credentialHolder, trustHolder, after } = (await edgeOf(scene, 12))!
  expect([credentialHolder, trustHolder]).toEqual([
    'w1/kubelet, client certificate',
    'cp1/kube-apiserver, --client-ca-file',
  ])
  expect(after).toBe('write cp1:/etc/kubernetes/pki/ca.crt (certificates)')
})

test('a signing file with two certificates stops the signer', async () => {
  const scene = new Scene(small)
  await scene.run(1)
  const edge = (await edgeOf(scene, 5))!
  expect(edge.flaw).toBe('2 certificates in --cluster-signing-cert-file, which must contain exactly one')
  expect(refusalOf(edge).what).toContain('would stop cp1/kube-controller-manager')
})

test('breaks the logs of a joining node if cluster-info does not contain the new CA', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 8)
  const old = [scene.cluster.oldCa.digest]
  scene.cluster.put('ConfigMap kube-public/cluster-info', { trust: old, signed: { abcdef: old } })
  await scene.cluster.time.pass(1_000)
  const { kind, trustHolder } = (await edgeOf(scene, 9))!
  expect([kind, trustHolder]).toEqual(['kubelet-client', 'a joining node'])
})

test('breaks a front-proxy client of the new CA before an aggregated API server has read both CAs', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 8)
  // The wait alone is enough to delay the plan.
  expect(
    await edgeOf(scene, 9, (steps) => inOrder(steps).filter(({ kind }) => kind !== 'rollout')),
  ).toBeUndefined()
  const early = (await edgeOf(scene, 9, (steps) => inOrder(steps).filter((one) => !isOfHandler(one))))!
  expect(early.trustHolder).toMatch(/^Pod default\/agg-/)
  expect(early.credentialHolder).toBe('cp1/kube-apiserver, --proxy-client-cert-file')
})

test('run, plan and undo refuse a broken connection before any change', async () => {
  const scene = new Scene(small)
  await scene.runAll(1, 4)
  const before = scene.files()
  for (const work of ['run', 'plan'] as const) {
    await expect(scene.asProcess<unknown>((rotation) => rotation[work](7))).rejects.toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      message: expect.stringMatching(
        /^the plan of phase 7 breaks a connection: cp1\/kube-apiserver, --client-ca-file would refuse kubeconfig cp1:\/etc\/kubernetes\/kube-proxy.conf$/,
      ),
      why: expect.stringMatching(
        /^after "write cp1:\/etc\/kubernetes\/kube-proxy.conf \(kubeconfig\)" the certificate would be signed by CN=kubernetes-ca-2, and the trusted CAs might be only CN=kubernetes \([0-9a-f]{12}\); nothing was changed; API servers must trust both CAs first$/,
      ),
      next: 'kcert rotate-ca --phase 5',
    })
  }
  expect(scene.files()).toEqual(before)
  await scene.runAll(5, 9)
  const presenting = scene.files()
  // The owner of the handler has not restored a certificate of the old CA.
  await expect(scene.asProcess((rotation) => rotation.undo(9))).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: expect.stringContaining(
      'with the caBundle of APIService v1.agg would refuse service/default/agg',
    ),
  })
  expect(scene.files()).toEqual(presenting)
})

function isOfHandler(action: Action): boolean {
  return action.kind === 'rollout' || (action.kind === 'wait' && action.until.kind === 'pods-started')
}
