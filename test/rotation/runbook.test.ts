import { describe, expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { keyPlaybook } from '../../src/rotation/service-account-key/playbook.ts'
import type { ClusterShape } from '../fakes/simulated-cluster.ts'
import { SimulatedExecutor } from '../fakes/simulated-cluster-ports.ts'
import { violations } from '../scripts/schemas.ts'
import { SimulatedOperator } from './operator.ts'
import { Scene } from './scene.ts'

// Sites where people make the changes on nodes manually: kcert writes the scripts and does everything else.

const byRunbook = { yes: true, options: { byRunbook: true } } as const

/** Alternates between a phase and its scripts, as its help describes. Returns the number of scripts in each round. */
async function toAndFro(
  operator: SimulatedOperator,
  phase: number,
  isUndo = false,
): Promise<readonly number[]> {
  const { cluster, clients, playbook, settings } = operator.scene
  const { command } = playbook
  const handed: number[] = []
  for (let round = 0; round < 12; round++) {
    try {
      await operator.command((session) => (isUndo ? session.rollback(phase - 1) : session.run([phase])), {
        ...byRunbook,
        settings,
      })
      return handed
    } catch (error) {
      if (!(error instanceof KcertError) || !error.message.startsWith('the next step is on a node'))
        throw error
      expect(error.next).toBe(
        `${command} runbook phase-${phase}${isUndo ? '-back' : ''} --phase ${phase}${isUndo ? ' --undo' : ''}`,
      )
    }
    const { report } = await operator.command(
      (session) => (isUndo ? session.runbookBack(phase, 'DIR') : session.runbook(phase, 'DIR')),
      { settings },
    )
    expect(violations('RotationRunbook', report)).toEqual([])
    expect(report.next.command).toBe(
      isUndo
        ? `${command} rollback --to ${phase - 1} --by-runbook`
        : `${command} --phase ${phase} --by-runbook`,
    )
    const { groups } = operator.runbooks.at(-1)!
    handed.push(report.scripts.length)
    const executor = new SimulatedExecutor(cluster, clients)
    const people = async (): Promise<void> => {
      for (const { scripts } of groups) {
        for (const { acts } of scripts) {
          for (const act of acts) await (act.kind === 'restart' ? executor.restart(act) : executor.write(act))
        }
      }
    }
    await cluster.time.until(people())
  }
  throw new Error(`phase ${phase} does not come to its end`)
}

test.for<{ name: string; shape: ClusterShape }>([
  { name: 'kubeadm', shape: { controlPlanes: 2, workers: 1 } },
  { name: 'units, every flag', shape: { controlPlanes: 2, workers: 1, isPlain: true, allFlags: true } },
  { name: 'laid out by hand', shape: { controlPlanes: 2, workers: 1, isByHand: true } },
])('$name: a whole rotation with manual changes on nodes fails no client', async ({ shape }) => {
  const scene = new Scene(shape)
  const operator = new SimulatedOperator(scene)
  const rounds: Record<number, readonly number[]> = {}
  for (let phase = 1; phase <= 12; phase++) {
    if (phase === 12) scene.clients.expectsBridge = false
    rounds[phase] = await toAndFro(operator, phase)
    if (phase === 9) scene.cluster.reissueHandlers(scene.newCa())
  }
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
  // One script for each node, unless an action of kcert must come in between.
  expect(rounds[1]).toEqual([scene.cluster.nodes.size])
  expect(rounds[5]).toEqual([scene.cluster.nodes.size])
  expect([rounds[3], rounds[4], rounds[10], rounds[11]]).toEqual([[], [], [], []])
})

describe('the service account key', () => {
  const shape = { controlPlanes: 3, workers: 2, namespaces: 2, hasTokens: true } as const
  const waivers = new Set(['audit-log', 'rollback:audit-log'])
  const sceneOf = () =>
    new Scene(shape, { proof: 'audit', acceptedVersions: new Set(['1.36']), waivers }, keyPlaybook)

  test('a whole rotation with manual changes on nodes rejects no token', async () => {
    const scene = sceneOf()
    const operator = new SimulatedOperator(scene)
    const before = Object.entries(scene.files()).filter(([key]) => key.includes('/manifests/'))
    const rounds: Record<number, readonly number[]> = {}
    for (let phase = 1; phase <= 8; phase++) rounds[phase] = await toAndFro(operator, phase)
    expect(scene.clients.failures).toEqual([])
    const { cluster } = scene
    for (const process of cluster.processes.values()) {
      if (process.name === 'kube-apiserver')
        expect(cluster.verifiedBy(process)).toEqual([cluster.signedBy(process)])
    }
    expect(
      JSON.stringify(Object.entries(scene.files()).filter(([key]) => key.includes('/pki/sa.'))),
    ).not.toContain(cluster.oldKey)
    expect(Object.entries(scene.files()).filter(([key]) => key.includes('/manifests/'))).toEqual(before)
    expect(rounds).toMatchObject({ 1: [3], 3: [], 6: [] })
    // In phase 4 all API servers restart, one after the other, and then all controller managers.
    const order = operator.runbooks.flatMap(({ groups }) =>
      groups.map(({ atOnce, scripts }) => ({
        atOnce,
        its: scripts.flatMap(({ acts }) =>
          acts.flatMap((act) => (act.kind === 'restart' && act.phase === 4 ? act.process : [])),
        ),
      })),
    )
    const restarts = order.filter(({ its }) => its.length > 0)
    expect(restarts.map(({ atOnce }) => atOnce)).toEqual(restarts.map(() => 1))
    expect(restarts.flatMap(({ its }) => its)).toEqual([
      ...['cp1', 'cp2', 'cp3'].map((node) => `${node}/kube-apiserver`),
      ...['cp2', 'cp3', 'cp1'].map((node) => `${node}/kube-controller-manager`),
    ])
  })

  test('a rollback by scripts from phase 7 restores every byte', async () => {
    const scene = sceneOf()
    const files = scene.files()
    const operator = new SimulatedOperator(scene)
    for (let phase = 1; phase <= 7; phase++) await toAndFro(operator, phase)
    for (const phase of [7, 6, 5, 4, 3, 2, 1]) await toAndFro(operator, phase, true)
    expect(scene.files()).toEqual(files)
    expect(scene.clients.failures).toEqual([])
  })
})

test('names an action that must come before any change on a node, and writes no scripts', async () => {
  const operator = new SimulatedOperator(new Scene({ controlPlanes: 2, workers: 1 }))
  const { report } = await operator.command((session) => session.runbook(1, 'phase-1/'))
  expect(report.rollback).toBe('kcert rotate-ca runbook phase-1-back --phase 1 --undo')
  await toAndFro(operator, 1)
  const work = operator.command((session) => session.runbook(2, 'DIR'))
  await expect(work).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: 'a step on the API server comes first: patch ConfigMap kube-system/kubeadm-config',
    next: 'kcert rotate-ca --phase 2 --by-runbook',
  })
  expect(operator.runbooks).toHaveLength(2)
})

test.for<{ name: string; shape: ClusterShape }>([
  { name: 'kubeadm', shape: { controlPlanes: 2, workers: 1 } },
  { name: 'laid out by hand', shape: { controlPlanes: 2, workers: 1, isByHand: true } },
])('$name: a rollback by scripts from phase 9 restores every byte', async ({ shape }) => {
  const scene = new Scene(shape)
  const [files, objects] = [scene.files(), scene.objects()]
  const operator = new SimulatedOperator(scene)
  for (let phase = 1; phase <= 9; phase++) await toAndFro(operator, phase)
  for (const phase of [9, 8, 7, 6, 5, 4, 3, 2, 1]) await toAndFro(operator, phase, true)
  await scene.cluster.time.pass(120_000)
  expect(scene.files()).toEqual(files)
  expect(scene.objects()).toEqual(objects)
  expect(scene.clients.failures).toEqual([])
})

test('refuses scripts for an undo out of order, or when there is nothing to undo', async () => {
  const operator = new SimulatedOperator(new Scene({ controlPlanes: 2, workers: 1 }))
  const back = (phase: number) => operator.command((session) => session.runbookBack(phase, 'back again'))
  await expect(back(1)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: 'phase 1 has nothing to roll back',
  })
  await toAndFro(operator, 1)
  await toAndFro(operator, 2)
  await expect(back(1)).rejects.toMatchObject({
    message: 'roll back phase 2 before phase 1',
    next: "kcert rotate-ca runbook 'back again' --phase 2 --undo",
  })
  await expect(back(2)).rejects.toMatchObject({
    message: 'a step on the API server comes first: patch ConfigMap kube-system/kubeadm-config',
    next: 'kcert rotate-ca rollback --to 1 --by-runbook',
  })
})
