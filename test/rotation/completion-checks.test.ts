import { describe, expect, test } from 'vitest'
import { actionsOf } from '../../src/rotation/action.ts'
import { missingFor } from '../../src/rotation/conditions.ts'
import { notUpdatingBundles } from '../../src/rotation/convergence.ts'
import { evidenceIn } from '../../src/rotation/journal.ts'
import { servers } from '../../src/rotation/phases/drop-old/servers.ts'
import { phaseNumbered } from '../../src/rotation/playbook.ts'
import { isProven } from '../../src/rotation/proof.ts'
import { latestStart } from '../../src/rotation/restart.ts'
import { type PodSnapshot, type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import type { Target } from '../../src/rotation/target.ts'
import { versionMix } from '../../src/rotation/upgrades.ts'
import { verificationReport } from '../../src/rotation/verification-report.ts'
import { Scene } from './scene.ts'

// A check fails when the value that it needs is missing: each test removes one value from a snapshot.

const scenes = new Map<number, Promise<{ observed: Snapshot; target: Target }>>()

/** Returns the snapshot after these phases are complete. */
function stateAfter(phase: number): Promise<{ observed: Snapshot; target: Target }> {
  const made =
    scenes.get(phase) ??
    (async () => {
      const scene = new Scene()
      await scene.runAll(1, phase)
      return scene.asProcess((rotation) => rotation.observe(sectionNames))
    })()
  scenes.set(phase, made)
  return made
}

async function gapsOf(phase: number, change: (observed: Snapshot) => Partial<Snapshot>): Promise<string[]> {
  const { observed, target } = await stateAfter(phase)
  expect(phaseNumbered(phase).gaps(observed, target)).toEqual([])
  return phaseNumbered(phase)
    .gaps({ ...observed, ...change(observed) }, target)
    .map(({ at, what }) => `${at}: ${what}`)
}

test('phase 2: reports a signing file with zero or two certificates for its controller-manager', async () => {
  const containing = (certificates: readonly string[]) => (observed: Snapshot) => {
    const [api] = observed.components.filter(({ name }) => name === 'kube-controller-manager')
    const path = api!.flags['cluster-signing-cert-file']
    return {
      files: new Map(
        [...observed.files].map(([key, file]) => [
          key,
          file.node === api!.node && file.path === path
            ? { ...file, contains: { kind: 'certificates', certificates } as const }
            : file,
        ]),
      ),
    }
  }
  const { target } = await stateAfter(2)
  const [change] = target.changes
  expect(await gapsOf(2, containing([change!.oldCa.digest, change!.newCa.digest]))).toContain(
    'cp1/kube-controller-manager: signing file with 2 certificates',
  )
  expect(await gapsOf(2, containing([]))).toContain(
    'cp1/kube-controller-manager: signing file with 0 certificates',
  )
})

test('phase 2: a controller-manager that does not run proves no signature', async () => {
  const gaps = await gapsOf(2, (observed) => ({
    components: observed.components.map(({ process, ...one }) =>
      one.id === 'cp2/kube-controller-manager' || process === undefined ? one : { ...one, process },
    ),
  }))
  expect(gaps.join()).toContain('cp2/kube-controller-manager')
  expect(latestStart([])).toBeUndefined()
})

test('phase 3 and its wait: nothing is published when no namespace is observed', async () => {
  const nowhere = 'ConfigMap kube-root-ca.crt: not found in any namespace'
  expect(await gapsOf(3, () => ({ published: [] }))).toEqual([nowhere])
  const { observed } = await stateAfter(3)
  const missing = missingFor(
    { kind: 'published', bundles: true, contains: [], lacks: [] },
    { ...observed, published: [] },
  )
  expect(missing.map(({ at, what }) => `${at}: ${what}`)).toEqual([nowhere])
})

test('phase 4: a pod with an unknown volume and namespace does not count as trusting the new CA', async () => {
  const { observed } = await stateAfter(4)
  const [pod] = observed.pods
  const { volume: _, ...blind } = pod!
  const namespace = pod!.id.slice(0, pod!.id.indexOf('/'))
  const gaps = await gapsOf(4, ({ published }) => ({
    pods: [{ ...blind, startedAtMs: observed.atMs }],
    published: published.filter(({ name }) => !name.startsWith(`${namespace}/`)),
  }))
  expect(gaps.join()).toContain(pod!.id)
})

test('phase 5: a missing trust file is not proven, regardless of the age of the evidence', async () => {
  const { observed } = await stateAfter(5)
  const api = observed.components.find(({ name }) => name === 'kube-apiserver')!
  const gaps = await gapsOf(5, ({ files }) => ({
    files: new Map([...files].filter(([, { path }]) => path !== api.flags['client-ca-file'])),
  }))
  expect(gaps.filter((gap) => gap.includes('cp1/kube-apiserver')).length).toBeGreaterThan(1)
})

test('phase 7: a component with a missing kubeconfig does not count as having read it', async () => {
  const scheduler = (await stateAfter(7)).observed.components.find(({ name }) => name === 'kube-scheduler')!
  const gaps = await gapsOf(7, ({ files }) => ({
    files: new Map(
      [...files].filter(
        ([, { node, path }]) => node !== scheduler.node || path !== scheduler.flags.kubeconfig,
      ),
    ),
  }))
  expect(gaps.join()).toContain(scheduler.id)
})

test('phase 11: unobserved serving certificates, unwatched counters and missing leaf certificates are pending', async () => {
  const silent = 'no TLS handshake succeeds, so its certificate is unknown'
  for (const id of ['cp1/kube-apiserver', 'w1/kubelet']) {
    const gaps = await gapsOf(11, ({ handshakes }) => ({
      handshakes: handshakes.filter(({ server }) => server !== id),
    }))
    expect(gaps).toEqual([`${id}: ${silent}`])
  }
  const unwatched = await gapsOf(11, ({ evidence }) => ({
    evidence: new Map([...evidence].filter(([key]) => key !== 'handshake errors cp2/kube-apiserver')),
  }))
  expect(unwatched).toEqual([
    expect.stringMatching(/^cp2\/kube-apiserver: TLS handshake errors not compared/),
  ])
  const { observed } = await stateAfter(11)
  const api = observed.components.find(({ id }) => id === 'cp1/kube-apiserver')!
  const leafless = await gapsOf(11, ({ files }) => ({
    files: new Map(
      [...files].filter(([, { node, path }]) => node !== 'cp1' || path !== api.flags['tls-cert-file']),
    ),
  }))
  expect(leafless.join()).toContain('cp1/kube-apiserver: TLS handshake errors not compared')
})

test('verify: anything not counted, published or observed is a finding', async () => {
  const { observed, target } = await stateAfter(11)
  const emptied = { ...observed, published: [], handshakes: [] }
  const report = verificationReport(emptied, target, [], [])
  const open = report.checks.filter(({ ok }) => !ok).map(({ id }) => id)
  expect(open).toEqual(expect.arrayContaining(['served-certificates', 'published', 'handshake-errors']))
  expect(report.checks.find(({ id }) => id === 'handshake-errors')?.findings[0]?.what).toContain(
    'no API server was found',
  )
})

test('keeps waiting for a missing caBundle', async () => {
  const { observed } = await stateAfter(2)
  const gone = { kind: 'available', bundle: 'APIService v1.gone' } as const
  expect(missingFor(gone, observed)).toEqual([{ at: 'APIService v1.gone', what: 'not found' }])
})

test('evidence proves nothing about a missing observation', async () => {
  const { observed } = await stateAfter(2)
  const subject = { kind: 'signer', generation: 'old' } as const
  expect(isProven(observed, subject, 0)).toBe(true)
  expect(isProven(observed, subject, undefined)).toBe(false)
})

test.each([
  { errors: -1, overMs: 20_000 },
  { errors: 5, overMs: 0 },
  { errors: 'many', overMs: 20_000 },
  { errors: 5 },
])('ignores a rate of %j in a journal', (rate) => {
  const entry = { kind: 'evidence', key: 'x', ok: true, atMs: 0, detail: '', phase: 1, rate }
  expect(evidenceIn([entry as never]).get('x')).not.toHaveProperty('rate')
})

test.each([
  ['of which a node does not answer', 1],
  ['of which a node does not answer', 9],
])('a phase %s is incomplete, although nothing is pending: phase %i', async (_, phase) => {
  const scene = new Scene()
  await scene.runAll(1, phase)
  const acts = scene.acts
  scene.cluster.nodes.get('w1')!.isUnreachable = true
  await expect(scene.run(phase)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: expect.stringContaining('1 node cannot be reached: w1'),
  })
  expect(scene.acts).toBe(acts)
})

test('phase 4 reports which pods are assumed to read their CA file once, and why', async () => {
  const { observed, target } = await stateAfter(3)
  const said = (pods: Snapshot['pods']): readonly string[] =>
    phaseNumbered(4).remarks!({ ...observed, pods }, target)
  const [pod] = observed.pods.filter(({ rereads }) => !rereads)
  const { newCa, oldCa } = target.changes.find(({ ca }) => ca === 'cluster')!
  const containing = (trust: readonly string[], readsOnce?: string) => ({
    ...pod!,
    volume: { trust, changedAtMs: observed.atMs },
    ...(readsOnce === undefined ? {} : { readsOnce }),
  })
  const both = [oldCa.digest, newCa.digest]
  expect(said([containing(both)])).toEqual([])
  expect(said([containing(both, 'a'), containing(both, 'b'), containing(both, 'a')])).toEqual([
    '2 pods assumed to read the CA file only at startup: a',
    '1 pod assumed to read the CA file only at startup: b',
  ])
  const early =
    'kcert checks the programs of pods once both CAs are in their files; until then it assumes that they read the files only once'
  expect(said([containing([oldCa.digest])])).toEqual([early])
  const again = { ...containing(both), startedAtMs: 0, rereads: true }
  const its = (name: string) => ({ ...again, id: `lab/${name}`, workload: `Deployment lab/${name}` })
  expect(said(['a', 'b', 'c', 'd', 'e', 'f', 'a'].map(its))).toEqual([
    'not restarted, because they read the CA file again: Deployment lab/a, Deployment lab/b, Deployment lab/c, Deployment lab/d, Deployment lab/e and 1 more; to restart them too: --no-trust-reloading-clients',
  ])
  const { workload: _, ...bare } = its('bare')
  expect(said([bare])[0]).toContain('again: Pod lab/bare;')
})

test('phase 1 reports the versions of an accepted mix, and no others', async () => {
  const { observed, target } = await stateAfter(1)
  const components = observed.components.map((one) =>
    one.id === 'cp2/kube-apiserver' ? { ...one, version: 'v1.30.9' } : one,
  )
  const said = (on: Partial<Snapshot>, ...waivers: string[]) =>
    phaseNumbered(1).remarks({ ...observed, ...on }, { ...target, waivers: new Set(waivers) })
  const { id } = versionMix({ ...observed, components })!
  expect(said({ components }, id)).toEqual([
    expect.stringMatching(
      /^accepted version mix: kube-apiserver v1\.\S+ \(cp1, cp3\) and v1\.30\.9 \(cp2\)$/,
    ),
  ])
  expect(said({ components })).toEqual([])
  expect(said({}, id)).toEqual([])
})

describe('a ClusterTrustBundle', () => {
  const bundle = (name: string, trust?: readonly string[]) =>
    ({
      kind: 'ClusterTrustBundle',
      name,
      isActive: true,
      changedAtMs: 0,
      ...(trust && { trust }),
    }) as const
  const withManagers = ({ components }: Snapshot, version: string) =>
    components.map((one) => (one.name === 'kube-controller-manager' ? { ...one, version } : one))
  /** No pod mounts a bundle. */
  const unmounted = ({ pods }: Snapshot): PodSnapshot[] => pods.map(({ trustBundle: _, ...pod }) => pod)

  test('that a pod mounts by name stops phase 2 until it is waived', async () => {
    const { observed, target } = await stateAfter(1)
    const [pod] = unmounted(observed)
    const refusals = (
      mounted: PodSnapshot['trustBundle'],
      changed: Partial<Target> = {},
      published = [...observed.published, bundle('a:1', [])],
    ) => {
      const pods = [{ ...pod!, id: 'shop/web 1', ...(mounted && { trustBundle: mounted }) }]
      return phaseNumbered(2).refusals({ ...observed, pods, published }, { ...target, ...changed })
    }
    const byName = { name: 'a:1' }
    expect(refusals(byName)).toEqual([
      {
        what: 'pod shop/web 1 mounts ClusterTrustBundle "a:1" by name',
        why: "kube-controller-manager deletes this object in this phase, so the pod could not start again; mount it by signerName, or accept the risk with --waive 'shop/web 1'",
        next: 'kcert rotate-ca plan',
      },
    ])
    expect(refusals(byName, { waivers: new Set(['shop/web 1']) })).toEqual([])
    expect(refusals({})).toEqual([])
    expect(refusals(undefined)).toEqual([])
    // The object is deleted already: the pod has lost it, and waiting does not help.
    expect(refusals(byName, {}, [bundle('a:2', [])])).toEqual([])
    expect(refusals(byName, { isDropping: true })).toEqual([])
    expect(refusals(byName, { changes: target.changes.filter(({ ca }) => ca !== 'cluster') })).toEqual([])
  })

  test.each([
    ['v1.36.0', []],
    ['v1.37.0', ['ClusterTrustBundle a:1: without the new CA']],
  ])(
    'without the new CA is pending in phase 3 if kube-controller-manager %s updates it',
    async (version, gaps) => {
      expect(
        await gapsOf(3, (observed) => ({
          pods: unmounted(observed),
          components: withManagers(observed, version),
          published: [...observed.published, bundle('a:1', [])],
        })),
      ).toEqual(gaps)
    },
  )

  test.each([
    ['v1.36.0', []],
    ['v1.37.0', ['ClusterTrustBundle a:1']],
  ])(
    'with the old CA is pending in phase 12 if kube-controller-manager %s updates it',
    async (version, names) => {
      const { observed, target } = await stateAfter(11)
      const { oldCa } = target.changes.find(({ ca }) => ca === 'cluster')!
      const on = {
        ...observed,
        pods: unmounted(observed),
        components: withManagers(observed, version),
        published: [bundle('a:1', [oldCa.digest])],
      }
      const gaps = phaseNumbered(12).gaps(on, target)
      expect(gaps.map(({ at }) => at).filter((at) => at.startsWith('ClusterTrustBundle'))).toEqual(names)
    },
  )

  test.each([
    [{ 'feature-gates': 'ClusterTrustBundle=false' }, 'ClusterTrustBundle is turned off'],
    [{ 'feature-gates': 'kube:A=true,kube:ClusterTrustBundle=False' }, 'ClusterTrustBundle is turned off'],
    [{ 'emulated-version': 'kube=1.36' }, 'unknown feature gates'],
  ])('is not waited for while a kube-controller-manager 1.37 has %j', async (flags, why) => {
    const { observed } = await stateAfter(2)
    const managers = withManagers(observed, 'v1.37.0')
    const on = (components: Snapshot['components']) => ({ components })
    expect(notUpdatingBundles({ ...observed, ...on(managers) })).toEqual([])
    // What runs counts, not what its next start uses.
    const [first] = managers.filter(({ name }) => name === 'kube-controller-manager')
    const process = { ...first!.process!, flags }
    const components = managers.map((one) => (one.id === first!.id ? { ...one, process } : one))
    const found = notUpdatingBundles({ ...observed, ...on(components) })
    expect(found.map(({ id, why: its }) => [id, its])).toEqual([[first!.id, why]])
    const pending = await gapsOf(3, (now) => ({
      pods: unmounted(now),
      components,
      published: [...now.published, bundle('a:1', [])],
    }))
    expect(pending).toEqual([])
  })

  test('with the old CA that no pod mounts is reported in phase 12, if no kube-controller-manager updates it', async () => {
    const { observed, target } = await stateAfter(11)
    const { oldCa, newCa } = target.changes.find(({ ca }) => ca === 'cluster')!
    const [configMap] = observed.published
    const published = [
      bundle('a:1', [oldCa.digest, newCa.digest]),
      bundle('a:2', [newCa.digest]),
      bundle('unread'),
      { ...configMap!, trust: [oldCa.digest] },
    ]
    const said = (version: string, pods = unmounted(observed), changes = target.changes) =>
      phaseNumbered(12)
        .remarks(
          { ...observed, published, pods, components: withManagers(observed, version) },
          { ...target, changes },
        )
        .filter((line) => line.startsWith('ClusterTrustBundle'))
    expect(said('v1.36.0')).toEqual([
      'ClusterTrustBundle a:1, which no pod mounts, contains the old CA until a kube-controller-manager that updates it is the leader; these do not: cp1/kube-controller-manager (v1.36.0), cp2/kube-controller-manager (v1.36.0), cp3/kube-controller-manager (v1.36.0)',
    ])
    expect(said('v1.37.0')).toEqual([])
    const [pod] = observed.pods
    expect(said('v1.36.0', [{ ...pod!, trustBundle: {} }])).toEqual([])
    expect(
      said(
        'v1.36.0',
        unmounted(observed),
        target.changes.filter(({ ca }) => ca !== 'cluster'),
      ),
    ).toEqual([])
  })
})

test('phase 4 does not wait for a pod whose namespace is not observed: no instant makes its restart safe', async () => {
  const { observed, target } = await stateAfter(3)
  const [pod] = observed.pods
  const { volume: _, ...blind } = pod!
  const namespace = pod!.id.slice(0, pod!.id.indexOf('/'))
  const published = observed.published.filter(({ name }) => !name.startsWith(`${namespace}/`))
  const steps = phaseNumbered(4).plan({ ...observed, pods: [blind], published }, target)
  const actions = steps.flatMap(actionsOf)
  expect(actions.map(({ kind }) => kind)).toContain('rollout')
  expect(actions.flatMap((one) => (one.kind === 'wait' ? [one.until.kind] : []))).not.toContain('instant')
})

test('phase 9 reports a Service whose only pods are on a node where the restart of the kubelet makes them not Ready', async () => {
  const { observed, target } = await stateAfter(8)
  const nodes = observed.nodes.map((one) => ({ ...one, kubeletVersion: 'v1.34.2' }))
  const backend = { pod: 'shop/web-1', node: 'w1', isReady: true, changedAtMs: 0, services: ['shop/web'] }
  const said = (changes: Target['changes']) =>
    phaseNumbered(9).remarks({ ...observed, nodes, backends: [backend] }, { ...target, changes })
  expect(said(target.changes)).toEqual([
    'expect an interruption of some seconds: the kubelet of w1 (v1.34.2) reports its pods as not Ready after a restart, and all pods of Service shop/web are on this node',
  ])
  expect(said(target.changes.filter(({ ca }) => ca !== 'cluster'))).toEqual([])
})

test('phase 9 restarts a kubelet alone if a feature gate makes its pods not Ready, or its feature gates are unknown', async () => {
  const { observed, target } = await stateAfter(8)
  const waits = (gates: string | undefined) =>
    phaseNumbered(9)
      .plan(
        {
          ...observed,
          kubelets: observed.kubelets.map(({ gates: _, ...kubelet }) => ({
            ...kubelet,
            ...(gates !== undefined && { gates }),
          })),
        },
        target,
      )
      .filter((step) => step.kind === 'wait' && step.until.kind === 'backends-ready').length
  const { length } = observed.kubelets
  expect(waits('')).toBe(0)
  expect(waits('ChangeContainerStatusOnKubeletRestart=true')).toBe(length)
  expect(waits(undefined)).toBe(length)
})

test('phase 9: no handler is pending for the cluster CA alone, or once the old CA is being dropped', async () => {
  const { observed, target } = await stateAfter(8)
  const pending = (changed: Partial<Target>) =>
    phaseNumbered(9)
      .gaps(observed, { ...target, ...changed })
      .filter(({ what }) => what.includes('front-proxy CAs'))
  expect(pending({})).not.toEqual([])
  expect(pending({ changes: target.changes.filter(({ ca }) => ca === 'cluster') })).toEqual([])
  expect(pending({ isDropping: true })).toEqual([])
})

test.each([
  [1, '1 pod keeps'],
  [2, '2 pods keep'],
])('phase 12 reports that %i of the pods has both CAs until its restart', async (count, words) => {
  const { observed, target } = await stateAfter(11)
  const pods = observed.pods.filter(({ volume }) => volume !== undefined).slice(0, count)
  expect(phaseNumbered(12).remarks({ ...observed, pods }, target)[0]).toBe(
    `${words} both CAs until the next restart; no server uses a certificate of the old CA`,
  )
})

test('phase 12: without copies and CA flags of API servers, controller-managers keep their flags', async () => {
  const { observed, target } = await stateAfter(11)
  const components = observed.components.map((one) =>
    one.name === 'kube-apiserver' ? { ...one, flags: {} } : one,
  )
  const steps = phaseNumbered(12).plan({ ...observed, components, copies: [] }, target)
  const written = steps
    .flatMap(actionsOf)
    .flatMap((one) =>
      one.kind === 'write-file' &&
      one.path.endsWith('/kube-controller-manager.yaml') &&
      one.content.kind === 'definition'
        ? [one.content.flags]
        : [],
    )
  expect(written).toEqual([{}, {}, {}])
})

test('phase 12: watches only the API server whose bridge certificate it removed', async () => {
  const { observed, target } = await stateAfter(11)
  const paths = new Map(
    observed.components.flatMap(({ name, node, flags }) =>
      name === 'kube-apiserver' ? [[node, flags['tls-cert-file']!] as const] : [],
    ),
  )
  const files = new Map(
    [...observed.files].map(([key, file]) => [
      key,
      paths.get(file.node) === file.path && 'certificates' in file.contains
        ? { ...file, contains: { ...file.contains, certificates: file.contains.certificates.slice(0, 1) } }
        : file,
    ]),
  )
  const copies = [{ phase: 12, node: 'cp2', of: { path: paths.get('cp2')! } }]
  const on = { ...observed, files, copies, caBundles: [], evidence: new Map() }
  expect(servers(on, { ...target, isDropping: true }).gaps).toEqual([
    {
      at: 'cp2/kube-apiserver',
      what: 'TLS handshake errors not watched since the bridge certificate was removed',
    },
  ])
})
