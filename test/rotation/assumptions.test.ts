import { expect, test } from 'vitest'
import { renderPlan } from '../../src/output/rotation/plan.ts'
import { assumptionsOf } from '../../src/rotation/assumptions.ts'
import { wholePlan } from '../../src/rotation/plan-report.ts'
import { playbook } from '../../src/rotation/playbook.ts'
import { type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import type { Target } from '../../src/rotation/target.ts'
import { wide } from './operator.ts'
import { Scene } from './scene.ts'

// What `rotate-ca plan` says about behavior that kcert cannot detect.

const scene = new Scene({ controlPlanes: 2, workers: 1, allFlags: true, hasTrustBundles: true })
const state = scene.asProcess((rotation) => rotation.observe(sectionNames))

async function assumed(
  change: (observed: Snapshot) => Partial<Snapshot>,
  ofTarget: (target: Target) => Partial<Target> = () => ({}),
): Promise<string[]> {
  const { observed, target } = await state
  const none = { pods: [] }
  return assumptionsOf({ ...observed, ...none, ...change(observed) }, { ...target, ...ofTarget(target) })
}

const withApis = (changed: object) => (observed: Snapshot) => ({
  components: observed.components.map((one) =>
    one.name === 'kube-apiserver' ? { ...one, ...changed, flags: { ...one.flags, ...changed } } : one,
  ),
})
const rereading = 'assumed not to reread --kubelet-certificate-authority: kcert restarts it'

test('names API servers that may reread --kubelet-certificate-authority, if they have the flag', async () => {
  expect(await assumed(() => ({}))).toEqual([`kube-apiserver 1.36 on cp1, cp2: ${rereading}`])
  expect(await assumed(withApis({ version: undefined }))).toEqual([
    `kube-apiserver on cp1, cp2: ${rereading} (unknown version)`,
  ])
  expect(await assumed(withApis({ version: 'v1.35.4' }))).toEqual([])
  expect(await assumed(withApis({ 'feature-gates': 'ClientsAllowCARotation=false' }))).toEqual([])
  expect(await assumed(withApis({ 'kubelet-certificate-authority': undefined }))).toEqual([])
  const others = ({ changes }: Target) => ({ changes: changes.filter(({ ca }) => ca !== 'cluster') })
  expect(await assumed(() => ({}), others)).toEqual([])
})

const unready = 'to report its pods as not Ready after a restart: kcert restarts such kubelets one at a time'

test('names kubelets with unknown feature gates or versions, but not those with detected behavior', async () => {
  const kubelets = (version: string, gates?: string) => (observed: Snapshot) => ({
    ...withApis({ version: 'v1.35.4' })(observed),
    nodes: observed.nodes.map((node) => ({ ...node, kubeletVersion: version })),
    kubelets: observed.kubelets.map(({ gates: _, ...one }) => ({
      ...one,
      ...(gates !== undefined && { gates }),
    })),
  })
  expect(await assumed(kubelets('v1.36.3'))).toEqual([
    `kubelet 1.36 on cp1, cp2, w1: assumed ${unready} (unknown feature gates)`,
  ])
  expect(await assumed(kubelets('v\u001b[2J', ''))).toEqual([
    `kubelet on cp1, cp2, w1: assumed ${unready} (unknown version)`,
  ])
  expect(await assumed(kubelets('v1.34.4'))).toEqual([])
  expect(await assumed(kubelets('v1.36.3', ''))).toEqual([])
  expect(await assumed(kubelets('v1.36.3', 'ChangeContainerStatusOnKubeletRestart=true'))).toEqual([])
})

test('names kube-controller-managers that may not update ClusterTrustBundles, if there are any', async () => {
  const managers = (observed: Snapshot): Pick<Snapshot, 'components'> => ({
    components: observed.components.flatMap((one) =>
      one.name !== 'kube-controller-manager'
        ? []
        : [
            {
              ...one,
              version: 'v1.37.2',
              process: { ...one.process!, flags: { 'emulated-version': '1.36' } },
            },
          ],
    ),
  })
  expect(await assumed(managers)).toEqual([
    'kube-controller-manager 1.37 on cp1, cp2: assumed not to update ClusterTrustBundles: kcert waits for those that pods mount (unknown feature gates)',
  ])
  expect(await assumed((observed) => ({ ...managers(observed), published: [] }))).toEqual([])
})

test('counts each pod whose program was not checked once, and shows the section in the plan', async () => {
  const pods = (change: object) => (observed: Snapshot) => ({
    components: [],
    pods: observed.pods.slice(0, 1).flatMap((pod) => [
      { ...pod, ...change },
      { ...pod, ...change, trustBundle: {} },
    ]),
  })
  const line = '1 pod: assumed to read the CA file only at startup, unless phase 4 detects otherwise'
  expect(await assumed(pods({ rereads: false }))).toEqual([line])
  expect(
    await assumed(pods({ rereads: false, readsOnce: 'its program cannot be read on its node' })),
  ).toEqual([line])
  expect(await assumed(pods({ rereads: false, readsOnce: 'its client-go is v0.35.4' }))).toEqual([])
  expect(await assumed(pods({ rereads: true }))).toEqual([])
  const { observed, target } = await state
  const waivers = new Set(observed.pods.map(({ id }) => id))
  expect(await assumed(pods({ rereads: false }), () => ({ waivers }))).toEqual([])
  const plan = wholePlan(playbook, observed, target)
  expect(renderPlan(plan, wide)).toContain(
    `\nassumptions\n${plan.assumptions.map((one) => `  ${one}\n`).join('')}`,
  )
  expect(plan.assumptions).toHaveLength(2)
  expect(renderPlan({ ...plan, assumptions: [] }, wide)).not.toContain('assumptions')
})
