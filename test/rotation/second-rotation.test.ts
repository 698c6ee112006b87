import { expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { SimulatedOperator } from './operator.ts'
import { allPhases, Scene } from './scene.ts'

// A cluster is rotated again, and what an earlier rotation left behind is of no account: neither its copies nor what it proved.

const small = { controlPlanes: 2, workers: 1 } as const
const yes = { yes: true } as const

/** A cluster whose CAs were rotated, and an operator who begins again with a journal of its own. */
async function rotatedOnce(): Promise<{ scene: Scene; operator: SimulatedOperator }> {
  const scene = new Scene(small)
  await scene.runAll()
  scene.cluster.startOver()
  scene.journal.text = ''
  scene.clients.expectsBridge = true
  return { scene, operator: new SimulatedOperator(scene) }
}

test('rotated twice: no client fails, and nothing of the CA in between is left', async () => {
  const { scene } = await rotatedOnce()
  await scene.runAll()
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
  expect(scene.observer.snapshot.copies).toEqual([])
  const trust = scene.observer.snapshot.clusterInfo!.trust.map(
    (digest) => scene.cluster.certificates.get(digest)?.subject,
  )
  expect(trust).toEqual(['CN=kubernetes-ca-3'])
})

test('a second rotation taken back ends where it began, not where the first one did', async () => {
  const { scene, operator } = await rotatedOnce()
  const [files, objects] = [scene.files(), scene.objects()]
  await scene.runAll(1, 11)
  scene.cluster.reissueHandlers(scene.cluster.oldCa)
  const { report } = await operator.command((session) => session.rollback(0), yes)
  await scene.cluster.time.pass(120_000)
  expect(report.phases.map(({ number }) => number)).toEqual(
    allPhases
      .slice(0, 10)
      .toReversed()
      .filter((number) => ![3, 6, 8].includes(number)),
  )
  expect(scene.files()).toEqual(files)
  expect(scene.objects()).toEqual(objects)
  expect(scene.clients.failures).toEqual([])
})

test('taken back as a whole and begun again: what changed meanwhile is what a second way back brings', async () => {
  const scene = new Scene(small)
  const { cluster } = scene
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([1, 2, 3]), yes)
  await operator.command((session) => session.rollback(0), yes)
  // kubeadm upgrade, months later: allowed, since nothing of a rotation is left.
  const path = cluster.definitionPath('kube-controller-manager')
  const { definition } = JSON.parse(cluster.read('cp1', path)!.text)
  cluster.write('cp1', path, { definition: { ...definition, annotations: { image: 'v1.37' } } }, 0o600)
  await cluster.time.pass(60_000)
  const files = scene.files()
  await operator.command((session) => session.run([1, 2, 3]), yes)
  await operator.command((session) => session.rollback(0), yes)
  expect(scene.files()).toEqual(files)
})

test('requires proofs and waivers again after a complete rollback', async () => {
  const scene = new Scene(small)
  const { cluster } = scene
  const operator = new SimulatedOperator(scene)
  cluster.startPod(undefined)
  const answers = { answers: () => true }
  await operator.command((session) => session.run([1, 2, 3, 4]), answers)
  const questions = operator.questions.filter((question) => question.includes('has no controller'))
  expect(questions).toHaveLength(1)
  await operator.command((session) => session.rollback(0), yes)
  const { rehearsed } = watchRehearsals(scene)
  await operator.command((session) => session.run([1, 2, 3]), yes)
  expect(rehearsed()).toBe(3)
  const stopped = await operator
    .command((session) => session.run([4]), yes)
    .catch((error: unknown) => error as KcertError)
  expect(stopped).toBeInstanceOf(KcertError)
  expect((stopped as KcertError).code).toBe('KCERT_ROTATION_GATE')
})

/** Counts proofs that copies restore, from now on. */
function watchRehearsals(scene: Scene): { rehearsed: () => number } {
  const from = scene.journal.text.length
  return {
    rehearsed: () => scene.journal.text.slice(from).split('"key":"copies ').length - 1,
  }
}

test('taken back to phase 1 and gone through again: workloads that were rolled before are rolled again', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([1, 2, 3, 4, 5, 6, 7]), yes)
  await operator.command((session) => session.rollback(1), yes)
  await scene.cluster.time.pass(120_000)
  await operator.command((session) => session.run([2, 3, 4, 5, 6, 7, 8, 9]), yes)
  scene.cluster.reissueHandlers(scene.newCa())
  await operator.command((session) => session.run([10, 11]), yes)
  expect(scene.clients.failures).toEqual([])
})
