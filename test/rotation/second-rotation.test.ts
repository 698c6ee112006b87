import { expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { SimulatedOperator } from './operator.ts'
import { allPhases, Scene } from './scene.ts'

// A second rotation of a cluster ignores the copies and proofs of the first one.

const small = { controlPlanes: 2, workers: 1 } as const
const yes = { yes: true } as const

/** A cluster after a rotation, and an operator who starts again with a new journal. */
async function rotatedOnce(): Promise<{ scene: Scene; operator: SimulatedOperator }> {
  const scene = new Scene(small)
  await scene.runAll()
  scene.cluster.startOver()
  scene.journal.text = ''
  scene.clients.expectsBridge = true
  return { scene, operator: new SimulatedOperator(scene) }
}

test('fails no client in two rotations, and removes the CA in between', async () => {
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

test('a rollback of a second rotation restores its own start, not the start of the first', async () => {
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

test('after a complete rollback and a new start, a second rollback restores the changes in between', async () => {
  const scene = new Scene(small)
  const { cluster } = scene
  const operator = new SimulatedOperator(scene)
  await operator.command((session) => session.run([1, 2, 3]), yes)
  await operator.command((session) => session.rollback(0), yes)
  // kubeadm upgrade, months later. It is allowed, because nothing of a rotation is left.
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
  expect((stopped as KcertError).code).toBe('KCERT_ROTATION_CHECK_FAILED')
})

/** Counts rehearsals of copies from now on. */
function watchRehearsals(scene: Scene): { rehearsed: () => number } {
  const from = scene.journal.text.length
  return {
    rehearsed: () => scene.journal.text.slice(from).split('"key":"copies ').length - 1,
  }
}

test('rolls out workloads again after a rollback to phase 1 and a new start', async () => {
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
