import { expect, test } from 'vitest'
import { renderPlan } from '../../src/output/rotation/plan.ts'
import { wholePlan } from '../../src/rotation/plan-report.ts'
import { phaseNumbered, playbook } from '../../src/rotation/playbook.ts'
import { type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import { statusReport } from '../../src/rotation/status-report.ts'
import type { Target } from '../../src/rotation/target.ts'
import { defaultSettings } from '../../src/rotation/target-reading.ts'
import { verificationReport } from '../../src/rotation/verification-report.ts'
import { wide } from './operator.ts'
import { Scene } from './scene.ts'

// ConfigMaps and Secrets of other owners that contain the old CA. kcert names them, and refuses phase 12 until the owners replace
// them.

const small = { controlPlanes: 2, workers: 1 } as const
const config = 'ConfigMap monitoring/ca'
const secret = 'Secret argocd/cluster-prod'

/** Runs a rotation up to phase 11 with such objects. */
async function before12(store: (scene: Scene) => void, settings = {}): Promise<Scene> {
  const scene = new Scene(small, settings)
  await scene.runAll(1, 11)
  store(scene)
  return scene
}

async function refusal(scene: Scene): Promise<{ message: string; why?: string; next?: string }> {
  return scene.run(12).then(
    () => expect.fail('was not refused'),
    (error: { message: string }) => error,
  )
}

async function observeIn(scene: Scene): Promise<{ observed: Snapshot; target: Target }> {
  return scene.asProcess((rotation) => rotation.observe(sectionNames))
}

function waiving(...ids: readonly string[]) {
  return { ...defaultSettings, waivers: new Set(ids) }
}

test.for(['routine', 'compromise'] as const)(
  'refuses phase 12 while an object contains the old CA without the new CA (%s)',
  async (reason) => {
    const scene = new Scene(small, { reason })
    // Without a bridge certificate, clients that trust only the old CA already fail in phase 9.
    scene.clients.expectsBridge = reason === 'routine'
    await scene.runAll(1, 11)
    scene.cluster.store(config, { cas: [scene.cluster.oldCa], owner: 'helm' })
    const { message, why, next } = await refusal(scene)
    expect(message).toContain(`${config} contains the old CA without the new CA (data[ca.crt])`)
    expect(why).toContain('would lose their server in this phase; its owner (helm) must add the new CA')
    expect(next).toBe('kubectl -n monitoring get configmap ca -o yaml')
    expect(why).toContain(`--waive '${config}'`)
    scene.cluster.store(config, { cas: [scene.cluster.oldCa, scene.newCa()] })
    await scene.runInTurn(12)
  },
)

test('refuses phase 12 while an object contains a leaf certificate of the old CA, without printing its keys', async () => {
  const scene = await before12(({ cluster }) =>
    cluster.store(secret, { leaves: [cluster.issue('web', cluster.oldCa)] }),
  )
  const { message, why, next } = await refusal(scene)
  expect(message).toContain(`${secret} contains a certificate of the old CA`)
  expect(why).toContain('no client would trust it any more; its owner must reissue it')
  expect(next).toBe('kubectl -n argocd describe secret cluster-prod')
  scene.cluster.store(secret, { leaves: [scene.cluster.issue('web', scene.newCa())] })
  await scene.runInTurn(12)
})

test('the operator accepts the risk for an object by name, and kcert reports it after the old CA is removed', async () => {
  const scene = await before12(({ cluster }) => cluster.store(config, { cas: [cluster.oldCa] }))
  scene.settings = waiving('ConfigMap monitoring/other')
  expect((await refusal(scene)).message).toContain(config)
  scene.settings = waiving(config)
  await scene.runInTurn(12)
  const { observed, target } = await observeIn(scene)
  const last = statusReport(playbook, observed, target, []).phases.at(-1)
  expect(last?.state).toBe('complete')
  expect(last?.remarks).toContain(`${config} still contains the old CA without the new CA (data[ca.crt])`)
})

test('accepts an object with both CAs, and reports it once the old CA is removed', async () => {
  const scene = await before12((one) => one.cluster.store(config, { cas: [one.cluster.oldCa, one.newCa()] }))
  await scene.runInTurn(12)
  expect(scene.events.findLast(({ kind }) => kind === 'phase-completed')).toMatchObject({
    remarks: [expect.any(String), expect.any(String), `${config} still contains both CAs (data[ca.crt])`],
  })
  const { observed, target } = await observeIn(scene)
  expect(phaseNumbered(12).gaps(observed, target)).toEqual([])
  expect(storedCheck(observed, target)?.ok).toBe(true)
})

test('checks for an old front-proxy CA like for an old cluster CA', async () => {
  const scene = await before12(({ cluster }) => cluster.store(config, { cas: [cluster.oldFrontProxyCa] }))
  expect((await refusal(scene)).message).toContain(config)
})

test('reports objects that kcert may not list, and fails the check', async () => {
  const scene = await before12(({ cluster }) => cluster.unlisted.add('Secret'))
  const unknown = 'Secrets were not checked: kcert may not list them'
  const { observed, target } = await observeIn(scene)
  for (const phase of [11, 12]) {
    expect(phaseNumbered(phase).remarks(observed, target)).toContain(
      `${unknown}, so they may contain the old CA`,
    )
  }
  expect(storedCheck(observed, target)).toMatchObject({ ok: false, findings: [{ what: unknown }] })
  expect(wholePlan(playbook, observed, target).blastRadius.storedUnchecked).toEqual(['Secret'])
  await scene.runInTurn(12)
})

test('plan, status and verify name objects and owners; no earlier phase depends on the owners', async () => {
  const scene = new Scene(small)
  const { cluster } = scene
  cluster.store(config, { cas: [cluster.oldCa], owner: 'helm' })
  cluster.store(secret, { leaves: [cluster.issue('web', cluster.oldCa)] })
  cluster.store('ConfigMap a/own', { cas: [cluster.makeCa('their own', true)] })
  const { observed, target } = await observeIn(scene)
  const plan = wholePlan(playbook, observed, target)
  const { blastRadius, blockers } = plan
  const text = renderPlan(plan, wide)
  expect(text).toContain(
    `${config} contains the old CA without the new CA (data[ca.crt]): its owner (helm) must replace it before phase 12`,
  )
  expect(text).toContain(
    `${secret} contains a certificate of the old CA (data[tls.crt]): its owner must replace it`,
  )
  expect(blastRadius.stored).toEqual([
    { object: config, what: 'contains the old CA without the new CA (data[ca.crt])', owner: 'helm' },
    { object: secret, what: 'contains a certificate of the old CA (data[tls.crt])' },
  ])
  expect(blockers).toEqual([])
  const remarks = statusReport(playbook, observed, target, []).phases[10]?.remarks
  expect(remarks).toEqual([
    `${config} contains the old CA without the new CA (data[ca.crt]), of helm`,
    `${secret} contains a certificate of the old CA (data[tls.crt])`,
  ])
  expect(storedCheck(observed, target)?.findings.map(({ at }) => at)).toEqual([config, secret])
  const waived = { ...target, waivers: new Set([config, secret]) }
  expect(storedCheck(observed, waived)?.ok).toBe(true)
})

test('names twenty of a thousand objects in a refusal, and counts the others', async () => {
  const scene = await before12(({ cluster }) => {
    for (let index = 0; index < 1_000; index++)
      cluster.store(`ConfigMap ns${index}/ca`, { cas: [cluster.oldCa] })
  })
  const { observed, target } = await observeIn(scene)
  const refusals = phaseNumbered(12).refusals!(observed, target)
  expect(refusals).toHaveLength(21)
  expect(refusals.at(-1)?.what).toBe(
    '980 more ConfigMaps and Secrets of other applications contain only the old CA or its certificates',
  )
})

function storedCheck(observed: Snapshot, target: Target) {
  return verificationReport(observed, target, [], []).checks.find(({ id }) => id === 'stored')
}
