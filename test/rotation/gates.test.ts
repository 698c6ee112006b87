import { expect, test } from 'vitest'
import { missingFor } from '../../src/rotation/conditions.ts'
import { evidenceIn } from '../../src/rotation/journal.ts'
import { phaseNumbered } from '../../src/rotation/playbook.ts'
import { isProven } from '../../src/rotation/proof.ts'
import { latestStart } from '../../src/rotation/restart.ts'
import { type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import type { Target } from '../../src/rotation/target.ts'
import { verificationReport } from '../../src/rotation/verification-report.ts'
import { Scene } from './scene.ts'

// A check fails when the value that it needs is missing: each test removes one value from a snapshot.

const scenes = new Map<number, Promise<{ observed: Snapshot; target: Target }>>()

/** Returns the snapshot after these phases are complete. */
function after(phase: number): Promise<{ observed: Snapshot; target: Target }> {
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
  const { observed, target } = await after(phase)
  expect(phaseNumbered(phase).gaps(observed, target)).toEqual([])
  return phaseNumbered(phase)
    .gaps({ ...observed, ...change(observed) }, target)
    .map(({ at, what }) => `${at}: ${what}`)
}

test('phase 2: reports a signing file with zero or two certificates for its controller-manager', async () => {
  const holding = (certificates: readonly string[]) => (observed: Snapshot) => {
    const [api] = observed.components.filter(({ name }) => name === 'kube-controller-manager')
    const path = api!.flags['cluster-signing-cert-file']
    return {
      files: new Map(
        [...observed.files].map(([key, file]) => [
          key,
          file.node === api!.node && file.path === path
            ? { ...file, holds: { kind: 'certificates', certificates } as const }
            : file,
        ]),
      ),
    }
  }
  const { target } = await after(2)
  const [change] = target.changes
  expect(await gapsOf(2, holding([change!.oldCa.digest, change!.newCa.digest]))).toContain(
    'cp1/kube-controller-manager: signing file with 2 certificates',
  )
  expect(await gapsOf(2, holding([]))).toContain(
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
  const { observed } = await after(3)
  const missing = missingFor(
    { kind: 'published', bundles: true, holds: [], lacks: [] },
    { ...observed, published: [] },
  )
  expect(missing.map(({ at, what }) => `${at}: ${what}`)).toEqual([nowhere])
})

test('phase 4: a pod with an unknown volume and namespace does not count as trusting the new CA', async () => {
  const { observed } = await after(4)
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
  const { observed } = await after(5)
  const api = observed.components.find(({ name }) => name === 'kube-apiserver')!
  const gaps = await gapsOf(5, ({ files }) => ({
    files: new Map([...files].filter(([, { path }]) => path !== api.flags['client-ca-file'])),
  }))
  expect(gaps.filter((gap) => gap.includes('cp1/kube-apiserver')).length).toBeGreaterThan(1)
})

test('phase 7: a component with a missing kubeconfig does not count as having read it', async () => {
  const scheduler = (await after(7)).observed.components.find(({ name }) => name === 'kube-scheduler')!
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
      handshakes: handshakes.filter(({ presenter }) => presenter !== id),
    }))
    expect(gaps).toEqual([`${id}: ${silent}`])
  }
  const unwatched = await gapsOf(11, ({ evidence }) => ({
    evidence: new Map([...evidence].filter(([key]) => key !== 'handshake errors cp2/kube-apiserver')),
  }))
  expect(unwatched).toEqual([
    expect.stringMatching(/^cp2\/kube-apiserver: TLS handshake errors not compared/),
  ])
  const { observed } = await after(11)
  const api = observed.components.find(({ id }) => id === 'cp1/kube-apiserver')!
  const leafless = await gapsOf(11, ({ files }) => ({
    files: new Map(
      [...files].filter(([, { node, path }]) => node !== 'cp1' || path !== api.flags['tls-cert-file']),
    ),
  }))
  expect(leafless.join()).toContain('cp1/kube-apiserver: TLS handshake errors not compared')
})

test('verify: anything not counted, published or observed is a finding', async () => {
  const { observed, target } = await after(11)
  const emptied = { ...observed, published: [], handshakes: [] }
  const report = verificationReport(emptied, target, [], [])
  const open = report.checks.filter(({ ok }) => !ok).map(({ id }) => id)
  expect(open).toEqual(expect.arrayContaining(['presenters', 'published', 'handshake-errors']))
  expect(report.checks.find(({ id }) => id === 'handshake-errors')?.findings[0]?.what).toContain(
    'no API server was found',
  )
})

test('keeps waiting for a missing caBundle', async () => {
  const { observed } = await after(2)
  const gone = { kind: 'available', bundle: 'APIService v1.gone' } as const
  expect(missingFor(gone, observed)).toEqual([{ at: 'APIService v1.gone', what: 'not found' }])
})

test('evidence proves nothing about a missing observation', async () => {
  const { observed } = await after(2)
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
  const { observed, target } = await after(3)
  const said = (pods: Snapshot['pods']): readonly string[] =>
    phaseNumbered(4).remarks!({ ...observed, pods }, target)
  const [pod] = observed.pods.filter(({ rereads }) => !rereads)
  const { newCa, oldCa } = target.changes.find(({ ca }) => ca === 'cluster')!
  const holding = (trust: readonly string[], readsOnce?: string) => ({
    ...pod!,
    volume: { trust, changedAtMs: observed.atMs },
    ...(readsOnce === undefined ? {} : { readsOnce }),
  })
  const both = [oldCa.digest, newCa.digest]
  expect(said([holding(both)])).toEqual([])
  expect(said([holding(both, 'a'), holding(both, 'b'), holding(both, 'a')])).toEqual([
    '2 pods assumed to read the CA file only at startup: a',
    '1 pod assumed to read the CA file only at startup: b',
  ])
  const early =
    'kcert checks the programs of pods once both CAs are in their files; until then it assumes that they read the files only once'
  expect(said([holding([oldCa.digest])])).toEqual([early])
  const again = { ...holding(both), startedAtMs: 0, rereads: true }
  const its = (name: string) => ({ ...again, id: `lab/${name}`, workload: `Deployment lab/${name}` })
  expect(said(['a', 'b', 'c', 'd', 'e', 'f', 'a'].map(its))).toEqual([
    'not restarted, because they read the CA file again: Deployment lab/a, Deployment lab/b, Deployment lab/c, Deployment lab/d, Deployment lab/e and 1 more; to restart them too: --no-trust-reloading-clients',
  ])
  const { workload: _, ...bare } = its('bare')
  expect(said([bare])[0]).toContain('again: Pod lab/bare;')
})
