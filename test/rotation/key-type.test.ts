import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { exitCodes } from '../../src/errors/codes.ts'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { renderPlan } from '../../src/output/rotation/plan.ts'
import { renderProgress } from '../../src/output/rotation/status.ts'
import type { CertificateRecord } from '../../src/rotation/certificate-record.ts'
import { etcdPlaybook } from '../../src/rotation/etcd/playbook.ts'
import { keyTypeRefusals } from '../../src/rotation/key-type.ts'
import { encryptionAlgorithm } from '../../src/rotation/signing.ts'
import { type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import type { Target } from '../../src/rotation/target.ts'
import type { KubeadmKeyType } from '../../src/x509/new-key.ts'
import type { ClusterShape } from '../fakes/simulated-cluster.ts'
import { violations } from '../scripts/schemas.ts'
import { SimulatedOperator, wide } from './operator.ts'
import { Killed, Scene } from './scene.ts'

// A rotation to another key type (--algorithm). The simulated cluster records the type that kcert requests for each new key.

const small = { controlPlanes: 2, workers: 1 } as const
const config = 'ConfigMap kube-system/kubeadm-config'
const yes = { yes: true } as const

async function stop(work: Promise<unknown>): Promise<KcertError> {
  try {
    await work
  } catch (error) {
    if (error instanceof KcertError) return error
    throw error
  }
  throw new Error('nothing stopped it')
}

function newCas({ cluster }: Scene): CertificateRecord[] {
  const isNew = ({ isCa, subject, issuer }: CertificateRecord): boolean =>
    isCa && /-2$/.test(subject) && issuer === subject
  return [...cluster.certificates.values()].filter(isNew)
}

/** Returns the certificates in files whose keys have no requested type, by subject. */
function othersIn(scene: Scene): string[] {
  const text = Object.values(scene.files()).join()
  const held = [...scene.cluster.certificates.values()].filter(({ digest }) => text.includes(digest))
  const others = held.filter(({ spki }) => !scene.cluster.keyTypes.has(spki))
  return [...new Set(others.map(({ subject }) => subject))].sort()
}

test.for<{ keyType: KubeadmKeyType; shape: ClusterShape; others: string[] }>([
  { keyType: 'ECDSA-P256', shape: {}, others: ['cp1', 'cp2', 'w1'].map((one) => `CN=system:node:${one}`) },
  { keyType: 'RSA-3072', shape: {}, others: ['cp1', 'cp2', 'w1'].map((one) => `CN=system:node:${one}`) },
  { keyType: 'ECDSA-P384', shape: { isByHand: true }, others: [] },
])('%o: every key that kcert creates has the type, and no client fails', async (one) => {
  const { keyType, shape, others } = one
  const scene = new Scene({ ...small, ...shape }, { keyType })
  await scene.runAll()
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
  expect(new Set(scene.cluster.keyTypes.values())).toEqual(new Set([keyType]))
  expect(newCas(scene).map(({ spki }) => scene.cluster.keyTypes.get(spki))).toEqual([keyType, keyType])
  // Kubelets create the keys of the certificates that they request.
  expect(othersIn(scene)).toEqual(others)
  expect(scene.objects()[config]).toEqual(
    shape.isByHand
      ? undefined
      : { kubernetesVersion: 'v1.36.3', extraArgs: {}, encryptionAlgorithm: keyType },
  )
})

test('without --algorithm, no key type is requested, recorded or written', async () => {
  const scene = new Scene(small)
  await scene.runAll()
  expect([...scene.cluster.keyTypes]).toEqual([])
  expect(scene.journal.text).not.toMatch(/keyType|encryption/)
  expect(scene.objects()[config]).toEqual({ kubernetesVersion: 'v1.36.3', extraArgs: {} })
})

test.for(['before', 'after'] as const)('killed %s each act, it ends the same', async (when) => {
  const scene = new Scene(small, { keyType: 'ECDSA-P256' })
  const kills = await scene.killedAtEachAct(
    when,
    Array.from({ length: 12 }, (_, index) => index + 1),
    (phase) => scene.runInTurn(phase),
  )
  expect(kills).toBeGreaterThan(50)
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
  expect(othersIn(scene)).toEqual(['cp1', 'cp2', 'w1'].map((one) => `CN=system:node:${one}`))
  expect(scene.objects()[config]).toMatchObject({ encryptionAlgorithm: 'ECDSA-P256' })
})

test('phase 7 is incomplete until kubeadm-config has the type, and its rollback restores the field', async () => {
  const scene = new Scene(small, { keyType: 'ECDSA-P256' })
  scene.cluster.put(config, { kubernetesVersion: 'v1.36.3', extraArgs: {}, encryptionAlgorithm: 'RSA-3072' })
  await scene.runAll(1, 6)
  const before = scene.objects()[config]
  await scene.run(7)
  const after = scene.objects()[config] as Record<string, unknown>
  expect(after).toMatchObject({ encryptionAlgorithm: 'ECDSA-P256' })
  const pending = async () => {
    const status = await new SimulatedOperator(scene).command((session) => session.status())
    return status.phases[6]!.pending
  }
  expect(await pending()).toEqual([])
  scene.cluster.put(config, { ...after, encryptionAlgorithm: 'RSA-3072' })
  expect(await pending()).toEqual([{ at: config, what: 'encryptionAlgorithm is not ECDSA-P256' }])
  await scene.run(7)
  expect(scene.objects()[config]).toEqual(after)
  await scene.undo(7)
  expect(scene.objects()[config]).toEqual(before)
})

describe('the choice', () => {
  test('is kept when phase 1 is killed between the two CAs, and by each later command', async () => {
    const scene = new Scene(small, { keyType: 'ECDSA-P256' })
    // The first key is on the node. The front-proxy CA does not exist yet.
    scene.kill = ({ action }) => (action.kind === 'write-file' ? 'after' : undefined)
    await expect(scene.run(1)).rejects.toBeInstanceOf(Killed)
    scene.kill = () => undefined
    const operator = new SimulatedOperator(scene)
    expect((await operator.command((session) => session.run([1]), yes)).exit).toBe(exitCodes.done)
    expect(newCas(scene).map(({ spki }) => scene.cluster.keyTypes.get(spki))).toEqual([
      'ECDSA-P256',
      'ECDSA-P256',
    ])
    const status = await operator.command((session) => session.status())
    expect(violations('RotationStatus', status)).toEqual([])
    expect(status.cas.map(({ newKeyType }) => newKeyType)).toEqual(['ECDSA-P256', 'ECDSA-P256'])
    expect(renderProgress(status, wide)).toContain('with a bridge certificate, key type ECDSA-P256')
    await operator.command((session) => session.run([2, 3, 4, 5, 6, 7, 8, 9]), yes)
    expect(scene.objects()[config]).toMatchObject({ encryptionAlgorithm: 'ECDSA-P256' })
  })

  test('cannot change once something has changed, in either direction, until all phases are rolled back', async () => {
    const scene = new Scene(small)
    const operator = new SimulatedOperator(scene)
    const plan = (keyType: KubeadmKeyType) =>
      operator.command((session) => session.plan(), { settings: { keyType } })
    const run = (keyType?: KubeadmKeyType) =>
      operator.command((session) => session.run([1]), { ...yes, settings: keyType ? { keyType } : {} })
    await run('ECDSA-P384')
    const files = scene.files()
    expect(await stop(plan('RSA-2048'))).toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      message: 'this rotation began with --algorithm ECDSA-P384, not with RSA-2048',
      next: 'kcert rotate-ca rollback --to 0',
    })
    expect((await plan('ECDSA-P384')).keyType?.wanted).toBe('ECDSA-P384')
    expect(scene.files()).toEqual(files)
    await operator.command((session) => session.rollback(0), yes)
    expect((await plan('RSA-2048')).keyType?.wanted).toBe('RSA-2048')
    await run()
    expect((await stop(plan('RSA-2048'))).message).toBe(
      'this rotation began without --algorithm, not with RSA-2048',
    )
  })

  test('can change while nothing has changed', async () => {
    const scene = new Scene(small, { keyType: 'RSA-4096' })
    scene.kill = () => 'before'
    await expect(scene.run(1)).rejects.toBeInstanceOf(Killed)
    scene.kill = () => undefined
    expect(scene.journal.text).toContain('"keyType":"RSA-4096"')
    const operator = new SimulatedOperator(scene)
    await operator.command((session) => session.run([1]), { ...yes, settings: { keyType: 'ECDSA-P256' } })
    expect(new Set(scene.cluster.keyTypes.values())).toEqual(new Set(['ECDSA-P256']))
  })
})

test('the plan names what changes, what does not, and what kcert cannot see', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const plan = await operator.command((session) => session.plan(), { settings: { keyType: 'ECDSA-P256' } })
  expect(violations('RotationPlan', plan)).toEqual([])
  expect(plan.blockers).toEqual([])
  expect(plan.phases[11]!.remarks.join()).not.toContain('would stay incomplete')
  const text = renderPlan(plan, wide)
  for (const line of [
    'key type ECDSA-P256',
    '  front-proxy CA: unknown → ECDSA-P256',
    '  ConfigMap kube-system/kubeadm-config: encryptionAlgorithm RSA-2048 → ECDSA-P256 in phase 7',
    '  unchanged: client certificates that kubelets request, always ECDSA-P256: cp1, cp2, w1',
    '  unchanged: the service account key; the command that replaces it with a key of the same type is kcert rotate-sa-key',
    '      + encryptionAlgorithm: ECDSA-P256',
    '      + private key of the new cluster CA (ECDSA-P256)',
  ])
    expect(text.split('\n')).toContain(line)
  expect(text).toContain('  not checked: clients in Java, .NET, Python and other languages')
  expect(text).toContain('API servers: service/default/agg\n')
  expect(text).toMatch(/\+ CN=kube-apiserver signed by CN=kubernetes-ca-2, new key \(ECDSA-P256\)/)
})

test('with the front-proxy CA alone, kubeadm-config stays as it is', async () => {
  const scene = new Scene(small, { keyType: 'ECDSA-P256', cas: ['front-proxy'] })
  await scene.runAll()
  expect(scene.objects()[config]).not.toHaveProperty('encryptionAlgorithm')
  expect(newCas(scene).map(({ spki }) => scene.cluster.keyTypes.get(spki))).toEqual(['ECDSA-P256'])
})

test('etcd gets a CA of the type, and its certificates keep their keys', async () => {
  const scene = new Scene(
    { ...small, controlPlanes: 3, hasEtcd: true },
    { keyType: 'ECDSA-P256', cas: ['etcd'], acceptedVersions: new Set(['1.36']) },
    etcdPlaybook,
  )
  const { observed, target } = await scene.asProcess((rotation) => rotation.observe(etcdPlaybook.sections))
  expect(target.newKeys).toBe(false)
  const pinned = observed.etcdMembers.map((one) => ({
    ...one,
    flags: {
      ...one.flags,
      ...(one.node === 'cp2' && { 'cipher-suites': 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256' }),
    },
  }))
  const { keyType } = etcdPlaybook.impactOf({ ...observed, etcdMembers: pinned }, target)
  expect(keyType?.changes).toEqual(['etcd CA: unknown → ECDSA-P256'])
  expect(keyType?.unchanged[1]).toBe(
    'members whose --cipher-suites do not fit ECDSA-P256: correct the flag before kubeadm certs renew: cp2/etcd',
  )
  for (let phase = 1; phase <= 3; phase++) await scene.run(phase)
  expect([...scene.cluster.keyTypes.values()]).toEqual(['ECDSA-P256'])
  expect(scene.clients.failures).toEqual([])
})

describe('is refused', () => {
  const rsa = 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'
  const ecdsa = 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'

  async function on(keyType: KubeadmKeyType, shape: ClusterShape = {}) {
    const scene = new Scene({ ...small, ...shape }, { keyType })
    return scene.asProcess((rotation) => rotation.observe(sectionNames))
  }

  function pin(observed: Snapshot, flags: Record<string, string>, isRunning = false): Snapshot {
    const components = observed.components.map((one) => {
      if (one.id !== 'cp2/kube-apiserver') return one
      if (!isRunning) return { ...one, flags: { ...one.flags, ...flags } }
      return { ...one, process: { ...one.process!, flags: { ...one.process!.flags, ...flags } } }
    })
    return { ...observed, components }
  }

  const refusals = (observed: Snapshot, target: Target, isFirst = true) =>
    keyTypeRefusals(observed, target, isFirst)

  test.for<[KubeadmKeyType, Record<string, string>, boolean]>([
    ['ECDSA-P256', { 'tls-cipher-suites': rsa }, true],
    ['ECDSA-P256', { 'tls-cipher-suites': `TLS_AES_128_GCM_SHA256,${rsa}` }, true],
    ['ECDSA-P384', { 'tls-cipher-suites': rsa, 'tls-min-version': 'VersionTLS12' }, true],
    ['RSA-2048', { 'tls-cipher-suites': ecdsa }, true],
    ['ECDSA-P256', { 'tls-cipher-suites': `${rsa},${ecdsa}` }, false],
    ['RSA-4096', { 'tls-cipher-suites': `${rsa},${ecdsa}` }, false],
    ['RSA-3072', { 'tls-cipher-suites': rsa }, false],
    ['ECDSA-P256', { 'tls-cipher-suites': rsa, 'tls-min-version': 'VersionTLS13' }, false],
    ['ECDSA-P256', { 'tls-cipher-suites': 'TLS_AES_128_GCM_SHA256' }, false],
    ['ECDSA-P256', { 'tls-cipher-suites': '' }, false],
  ])('%s with the flags %o of an API server: %s', async ([keyType, flags, isRefused]) => {
    const { observed, target } = await on(keyType)
    expect(refusals(observed, target)).toEqual([])
    for (const isRunning of [false, true]) {
      const found = refusals(pin(observed, flags, isRunning), target)
      expect(found.length > 0).toBe(isRefused)
    }
  })

  test('by node, file and flag, and can be accepted', async () => {
    const { observed, target } = await on('ECDSA-P256')
    const pinned = pin(observed, { 'tls-cipher-suites': rsa })
    expect(refusals(pinned, target)).toEqual([
      {
        what: `cp2/kube-apiserver cannot serve a certificate with an ECDSA key to TLS 1.2 clients: tls-cipher-suites in cp2:/etc/kubernetes/manifests/kube-apiserver.yaml is ${rsa}`,
        why: `no cipher suite in the list is for ECDSA keys; add ${ecdsa}, or, if every client supports TLS 1.3, add --waive 'cp2/kube-apiserver --tls-cipher-suites'`,
        next: 'kcert rotate-ca plan',
      },
    ])
    const waivers = new Set(['cp2/kube-apiserver --tls-cipher-suites'])
    expect(refusals(pinned, { ...target, waivers })).toEqual([])
    expect(refusals(pinned, { ...target, keyType: 'RSA-2048' })).toEqual([])
  })

  test('for a kubelet that serves a certificate from a file, not for one that requests it', async () => {
    const tls = { 'tls-cipher-suites': rsa }
    const withTls = ({ kubelets, ...others }: Snapshot): Snapshot => ({
      ...others,
      kubelets: kubelets.map((one) => ({ ...one, tls, configuration: '/var/lib/kubelet/config.yaml' })),
    })
    const byHand = await on('ECDSA-P256', { isByHand: true })
    expect(
      refusals(withTls(byHand.observed), byHand.target).map(({ what }) => what.split(':', 2).join()),
    ).toEqual(
      ['cp1', 'cp2', 'w1'].map(
        (node) =>
          `${node}/kubelet cannot serve a certificate with an ECDSA key to TLS 1.2 clients, tls-cipher-suites in ${node}`,
      ),
    )
    const { observed, target } = await on('ECDSA-P256')
    expect(refusals(withTls(observed), target)).toEqual([])
  })

  test('by the version and the configuration of kubeadm, before the first change', async () => {
    const { observed, target } = await on('ECDSA-P384')
    const kubeadm = (more: Partial<NonNullable<Snapshot['kubeadm']>>): Snapshot => ({
      ...observed,
      kubeadm: { ...observed.kubeadm!, ...more },
    })
    const older = kubeadm({ kubernetesVersion: 'v1.33.9' })
    expect(refusals(older, target).map(({ what }) => what)).toEqual([
      'kubeadm 1.33 does not support the key type ECDSA-P384',
    ])
    expect(refusals(older, { ...target, keyType: 'ECDSA-P256' })).toEqual([])
    expect(refusals(older, target, false)).toEqual([])
    const gated = kubeadm({ noAlgorithm: { why: 'its feature gate says so', creates: 'ECDSA-P256' } })
    const same = { ...target, keyType: 'ECDSA-P256' } as const
    expect(refusals(gated, same)).toEqual([])
    expect(encryptionAlgorithm(gated, same)).toEqual([])
    expect(encryptionAlgorithm(observed, same)).toHaveLength(1)
    expect(refusals(gated, target).map(({ what }) => what)).toEqual([
      'kubeadm would not create ECDSA-P384 keys: its feature gate says so',
    ])
    const cas = target.changes.filter(({ ca }) => ca === 'front-proxy')
    expect(refusals(gated, { ...target, changes: cas })).toEqual([])
  })

  test.for([
    ['planned:cluster/new', 'kcert rotate-ca plan'],
    ['abc', 'kcert rotate-ca rollback --to 0'],
  ] as const)('with a new CA of another type (%s)', async ([digest, next]) => {
    const { observed, target } = await on('ECDSA-P256')
    const withCa = (publicKey: string): Target => ({
      ...target,
      changes: target.changes
        .map((one) => ({ ...one, newCa: { ...one.newCa, digest, publicKey } }))
        .slice(0, 1),
    })
    const spki = (type: 'rsa' | 'ec'): string => {
      const { publicKey } =
        type === 'rsa'
          ? generateKeyPairSync('rsa', { modulusLength: 2048 })
          : generateKeyPairSync('ec', { namedCurve: 'P-256' })
      return publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
    }
    expect(refusals(observed, withCa(spki('rsa')), false)).toEqual([
      expect.objectContaining({ what: 'the new cluster CA has the key type RSA-2048, not ECDSA-P256', next }),
    ])
    expect(refusals(observed, withCa(spki('ec')), false)).toEqual([])
    expect(refusals(observed, withCa('bm90IGEga2V5'), false)).toEqual([])
  })
})
