import { expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { phaseNumbered } from '../../src/rotation/playbook.ts'
import { sectionNames } from '../../src/rotation/snapshot.ts'
import { Scene } from './scene.ts'

// Kubelets before 1.35 report the pods of their node as not Ready when they restart.

const old = 'v1.33.13'

function sceneWith(versions: Readonly<Record<string, string>>): Scene {
  const scene = new Scene({ controlPlanes: 1, workers: 3 })
  for (const [node, version] of Object.entries(versions)) scene.cluster.kubeletVersions.set(node, version)
  for (const id of scene.cluster.workloads.keys())
    for (let count = 0; count < 4; count++) scene.cluster.startPod(id)
  return scene
}

test('restarts the next kubelet once the pods of the previous node are Ready again', async () => {
  const scene = sceneWith({ w1: old, w2: old, w3: old })
  await scene.runAll(1, 9)
  expect(scene.cluster.mostUnreadyNodes).toBe(1)
  await scene.undo(9)
  expect(scene.cluster.mostUnreadyNodes).toBe(1)
})

test('stops with the names of pods that do not become Ready again, and continues when run again', async () => {
  const scene = sceneWith({ w1: old })
  await scene.runAll(1, 8)
  scene.cluster.unreadyMs = 400_000
  const error = await scene.run(9).catch((thrown: unknown) => thrown)
  if (!(error instanceof KcertError)) throw error
  expect(error.message).toBe(
    'timed out after 300 s waiting until pods on w1 that Services select are Ready again',
  )
  expect(error.why).toMatch(/^still pending: Pod \S+ \(not Ready, selected by Service \S+\/\S+\)/)
  await scene.run(9)
  expect(scene.clients.failures).toEqual([])
})

test('names a Service whose only Ready pods are on such a node before its kubelet restarts', async () => {
  const scene = sceneWith({ w1: old })
  await scene.runAll(1, 8)
  const { observed, target } = await scene.asProcess((rotation) => rotation.observe(sectionNames))
  const pod = (node: string, service: string, isReady = true) => ({
    pod: `${service}-${node}`,
    node,
    isReady,
    changedAtMs: 0,
    services: [service],
  })
  const backends = [
    pod('w1', 'shop/alone'),
    pod('w2', 'shop/alone', false),
    pod('w1', 'shop/two'),
    pod('w2', 'shop/two'),
    pod('w3', 'shop/elsewhere'),
  ]
  const remarks = (nodes = observed.nodes) =>
    phaseNumbered(9).remarks!({ ...observed, nodes, backends }, target)
  expect(remarks()).toEqual([
    'expect an interruption of some seconds: the kubelet of w1 (v1.33.13) reports its pods as not Ready after a restart, and all pods of Service shop/alone are on this node',
  ])
  expect(remarks(observed.nodes.map((node) => ({ ...node, kubeletVersion: 'v1.35.0' })))).toEqual([])
  await scene.run(9)
  const after = await scene.asProcess((rotation) => rotation.observe(sectionNames))
  expect(phaseNumbered(9).remarks!({ ...after.observed, backends }, after.target)).toEqual([])
})
