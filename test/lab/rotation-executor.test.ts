import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Cluster as Api } from '../../src/cluster/cluster.ts'
import { readStaticPod } from '../../src/pki/static-pod.ts'
import type { Content, ObjectChange, ProbeSubject } from '../../src/rotation/action.ts'
import type { Inventory } from '../../src/rotation/inventory.ts'
import { copiesIndex, materialPaths } from '../../src/rotation/material.ts'
import type { CopyPicture } from '../../src/rotation/picture.ts'
import { copyLines } from '../../src/rotation-io/copies.ts'
import { SiteExecutor } from '../../src/rotation-io/executor.ts'
import { withOwnAccess } from '../../src/rotation-io/own-access.ts'
import { openSite, type Site } from '../../src/rotation-io/site.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import { openWith } from '../contract/stage.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'

// What the executor does to a real cluster of one control plane and one worker. The tests build on one another, in the order of a
// rotation; each proves its act by a handshake or a read that the executor had no part in.

const pki = '/etc/kubernetes/pki'
const paths = materialPaths(`${pki}/kcert`, 'cluster')
const frontProxyPaths = materialPaths(`${pki}/kcert`, 'front-proxy')

describeOnCluster("a rotation's executor", () => {
  let lab: Cluster & { close(): Promise<void> }
  let api: Api
  let site: Site
  let executor: SiteExecutor
  beforeAll(async () => {
    lab = await openCluster({ controlPlanes: 1, workers: 1 })
    api = await openWith(lab.kubeconfig)
    const opened = openSite({ inventory: inventoryOf(lab), objects: api.objects, clock: systemClock })
    site = withOwnAccess(opened, systemRandom)
    executor = new SiteExecutor({ site, random: systemRandom })
  }, 600_000)
  afterAll(async () => {
    await site?.close()
    api?.close()
    await lab?.close()
  }, 60_000)

  const read = async (node: string, path: string) => {
    const [file] = await site.node(node)!.readFiles([path])
    return file?.found === 'file' ? file : undefined
  }
  const text = async (node: string, path: string): Promise<string> =>
    Buffer.from((await read(node, path))?.content ?? []).toString('utf8')
  const write = async (phase: number, node: string, path: string, content: Content, mode = 0o644) => {
    const replaces = (await read(node, path))?.sha256 ?? 'absent'
    await executor.write({ kind: 'write-file', phase, node, path, replaces, content, mode })
  }
  const probe = (subject: ProbeSubject, deadlineMs = 20_000) =>
    executor.probe({ kind: 'probe', phase: 5, subject, deadlineMs })
  const prove = async (subject: ProbeSubject, deadlineMs?: number): Promise<void> => {
    expect(await probe(subject, deadlineMs)).toEqual({ ok: true, detail: expect.any(String) })
  }
  const client = (
    at: string,
    ca: 'cluster' | 'front-proxy',
    generation: 'old' | 'new',
    expects: 'accepted' | 'refused',
  ) => ({ kind: 'client', at, ca, generation, expects }) as const
  const startOf = async (node: string, program: 'kube-controller-manager' | 'kubelet'): Promise<number> => {
    const [running] = await site.node(node)!.processes([program])
    return site.startedAtMs(node, running!)
  }
  const digestsIn = async (node: string, path: string): Promise<string[]> =>
    readCertificates(await text(node, path)).map(({ fingerprintSha256 }) => fingerprintSha256)

  test('copies lie beside an index, and restore', async () => {
    const of = ['/etc/kubernetes/admin.conf', `${pki}/ca.key`, `${pki}/none.crt`].map((path) => ({ path }))
    await write(1, 'cp1', copiesIndex, { kind: 'copies', of }, 0o600)
    await write(1, 'cp1', copiesIndex, { kind: 'copies', of }, 0o600)
    const copies = copyLines(await read('cp1', copiesIndex)) as CopyPicture[]
    expect(copies.map(({ of: one, digest }) => ['path' in one && one.path, digest !== undefined])).toEqual([
      ['/etc/kubernetes/admin.conf', true],
      [`${pki}/ca.key`, true],
      [`${pki}/none.crt`, false],
    ])
    await prove({ kind: 'copies', node: 'cp1' })
  })

  test('the new CA is made once, with key, bundle and bridge', async () => {
    const [old] = await digestsIn('cp1', `${pki}/ca.crt`)
    const bundle = [old!, 'planned:cluster/new']
    await write(1, 'cp1', paths.newKey, { kind: 'ca-key', ca: 'cluster', generation: 'new' }, 0o600)
    await write(1, 'cp1', paths.newCertificate, {
      kind: 'certificates',
      certificates: ['planned:cluster/new'],
    })
    await write(1, 'cp1', paths.oldKey, { kind: 'ca-key', ca: 'cluster', generation: 'old' }, 0o600)
    await write(1, 'cp1', paths.oldCertificate, { kind: 'certificates', certificates: [old!] })
    await write(1, 'cp1', paths.bundle, { kind: 'certificates', certificates: bundle })
    await write(1, 'cp1', paths.bridge, { kind: 'certificates', certificates: ['planned:cluster/bridge'] })
    const certificates = [{ kind: 'certificates', certificates: ['planned:front-proxy/new'] }] as const
    await write(
      1,
      'cp1',
      frontProxyPaths.newKey,
      { kind: 'ca-key', ca: 'front-proxy', generation: 'new' },
      0o600,
    )
    await write(1, 'cp1', frontProxyPaths.newCertificate, certificates[0])
    const verdict = await lab.onNode('cp1', ['openssl', 'verify', '-CAfile', `${pki}/ca.crt`, paths.bridge])
    expect(verdict.stdout).toContain('OK')
    const again = new SiteExecutor({ site, random: systemRandom })
    const path = '/tmp/again.crt'
    const content = { kind: 'certificates', certificates: ['planned:cluster/new'] } as const
    await again.write({
      kind: 'write-file',
      phase: 1,
      node: 'cp1',
      path,
      replaces: 'absent',
      content,
      mode: 0o644,
    })
    expect(await text('cp1', path)).toBe(await text('cp1', paths.newCertificate))
    const { stdout } = await lab.onNode('cp1', ['stat', '-c', '%a', paths.newKey])
    expect(stdout.trim()).toBe('600')
  })

  test('what somebody else changed is not written over', async () => {
    const path = '/tmp/again.crt'
    const content = { kind: 'certificates', certificates: ['planned:front-proxy/new'] } as const
    const action = { kind: 'write-file', phase: 1, node: 'cp1', path, content, mode: 0o644 } as const
    const before = await text('cp1', path)
    await expect(executor.write({ ...action, replaces: 'absent' })).rejects.toMatchObject({
      code: 'KCERT_ROTATION_DRIFT',
    })
    expect(await text('cp1', path)).toBe(before)
    await write(1, 'cp1', path, { kind: 'nothing' })
    expect(await read('cp1', path)).toBeUndefined()
  })

  test('a client of either CA is told apart at each verifier, before and after it trusts both', async () => {
    const verifiers = [
      'cp1/kube-apiserver',
      'cp1/kube-controller-manager',
      'cp1/kubelet',
      'cp1/kube-scheduler',
    ]
    for (const at of [...verifiers, 'w1/kubelet']) {
      await prove(client(at, 'cluster', 'old', 'accepted'))
      await prove(client(at, 'cluster', 'new', 'refused'))
    }
    await prove(client('cp1/kube-controller-manager', 'front-proxy', 'old', 'accepted'))
    await prove(client('cp1/kube-apiserver', 'front-proxy', 'new', 'refused'))
  })

  test('a controller-manager is restarted by its definition, signs with its own pair, and its Lease is handed over', async () => {
    const path = '/etc/kubernetes/manifests/kube-controller-manager.yaml'
    const replaces = await startOf('cp1', 'kube-controller-manager')
    const flags = {
      'root-ca-file': paths.bundle,
      'cluster-signing-cert-file': paths.oldCertificate,
      'cluster-signing-key-file': paths.oldKey,
    }
    await write(2, 'cp1', path, { kind: 'definition', flags, annotations: { 'ca-rotation': '1' } }, 0o600)
    const lease = 'kube-controller-manager'
    const restart = {
      kind: 'restart',
      phase: 2,
      process: 'cp1/kube-controller-manager',
      how: 'definition',
    } as const
    await executor.restart({ ...restart, replaces, lease })
    expect(await startOf('cp1', 'kube-controller-manager')).toBeGreaterThan(replaces)
    const pod = await readStaticPod(await text('cp1', path))
    expect(pod.containers[0]!.flags).toMatchObject(flags)
    const begun = Date.now()
    await executor.restart({ ...restart, replaces })
    expect(Date.now() - begun).toBeLessThan(10_000)
    await prove({ kind: 'signer', generation: 'old' }, 30_000)
  }, 120_000)

  test('trust files are read again, and clients of both CAs accepted', async () => {
    const [old] = await digestsIn('cp1', `${pki}/ca.crt`)
    const [next] = await digestsIn('cp1', paths.newCertificate)
    for (const node of ['cp1', 'w1'])
      await write(5, node, `${pki}/ca.crt`, { kind: 'certificates', certificates: [old!, next!] })
    for (const at of ['cp1/kube-apiserver', 'cp1/kube-controller-manager', 'cp1/kubelet', 'w1/kubelet']) {
      await prove(client(at, 'cluster', 'new', 'accepted'))
      await prove(client(at, 'cluster', 'old', 'accepted'))
    }
    expect(await probe(client('w1/kubelet', 'cluster', 'new', 'refused'), 0)).toMatchObject({ ok: false })
    await prove(client('cp1/kube-scheduler', 'cluster', 'new', 'accepted'), 60_000)
  }, 120_000)

  test('a kubeconfig gets CA data and a certificate of the new CA, and is accepted', async () => {
    const path = '/etc/kubernetes/admin.conf'
    const caData = await digestsIn('cp1', `${pki}/ca.crt`)
    const before = await text('cp1', path)
    const file = await site.reading.read(Buffer.from(before), (await read('cp1', path))!.sha256)
    const reissue = file.holds.kind === 'kubeconfig' ? file.holds.client! : ''
    await write(7, 'cp1', path, { kind: 'kubeconfig', caData, reissue }, 0o600)
    const after = await text('cp1', path)
    const keyLine = /client-key-data: .*/
    expect(keyLine.exec(after)?.[0]).toBe(keyLine.exec(before)?.[0])
    await prove({ kind: 'kubeconfig', id: `cp1:${path}` })
    expect((await lab.onNode('cp1', ['kubectl', '--kubeconfig', path, 'get', 'nodes'])).stdout).toContain(
      'w1',
    )
  })

  test("cluster-info and kubeadm's configuration are changed in place, and brought back", async () => {
    const caData = await digestsIn('cp1', `${pki}/ca.crt`)
    const object = { kind: 'ConfigMap', namespace: 'kube-public', name: 'cluster-info' }
    const configuration = { kind: 'ConfigMap', namespace: 'kube-system', name: 'kubeadm-config' }
    const get = async ({ namespace, name }: typeof object) =>
      (await api.objects.get({
        group: '',
        version: 'v1',
        resource: 'configmaps',
        namespace,
        name,
      })) as unknown as {
        metadata: { resourceVersion: string }
        data: Record<string, string>
      }
    const patch = async (of: typeof object, change: ObjectChange, version?: string) =>
      executor.patch({
        kind: 'patch-object',
        phase: 5,
        object: of,
        version: version ?? (await get(of)).metadata.resourceVersion,
        change,
      })
    await patch(object, { kind: 'cluster-info', trust: caData })
    const [, data] = /certificate-authority-data: (\S+)/.exec((await get(object)).data.kubeconfig!)!
    expect(readCertificates(Buffer.from(data!, 'base64'))).toHaveLength(2)
    await expect(patch(object, { kind: 'cluster-info', trust: caData }, '1')).rejects.toMatchObject({
      code: 'KCERT_ROTATION_DRIFT',
    })
    const before = (await get(configuration)).data.ClusterConfiguration!
    const component = 'controllerManager'
    await patch(configuration, {
      kind: 'extra-args',
      component,
      flags: { 'root-ca-file': paths.bundle, v: '2' },
    })
    expect((await get(configuration)).data.ClusterConfiguration).toContain(paths.bundle)
    await patch(configuration, { kind: 'extra-args', component, flags: { 'root-ca-file': null, v: null } })
    expect((await get(configuration)).data.ClusterConfiguration).not.toContain(paths.bundle)
    const copy = copyLines(await read('cp1', copiesIndex))!.find(
      ({ of }) => 'object' in of && of.object.name === 'kubeadm-config',
    )
    await patch(configuration, { kind: 'copy', digest: copy!.digest })
    expect((await get(configuration)).data.ClusterConfiguration).toBe(before)
  })

  test('the signing pair moves to the new CA', async () => {
    const path = '/etc/kubernetes/manifests/kube-controller-manager.yaml'
    const replaces = await startOf('cp1', 'kube-controller-manager')
    const flags = {
      'cluster-signing-cert-file': paths.newCertificate,
      'cluster-signing-key-file': paths.newKey,
    }
    await write(7, 'cp1', path, { kind: 'definition', flags }, 0o600)
    const lease = 'kube-controller-manager'
    const process = 'cp1/kube-controller-manager'
    await executor.restart({ kind: 'restart', phase: 7, process, replaces, how: 'definition', lease })
    await prove({ kind: 'signer', generation: 'new' }, 30_000)
  }, 120_000)

  test("a kubelet's certificates are asked for in its own name, and one restart takes them", async () => {
    const store = '/var/lib/kubelet/pki'
    const [next] = readCertificates(await text('cp1', paths.newCertificate))
    for (const [usage, stem] of [
      ['client', 'kubelet-client'],
      ['serving', 'kubelet-server'],
    ] as const) {
      const [leaf] = readCertificates(await text('w1', `${store}/${stem}-current.pem`))
      const replaces = site.certificates.add(leaf!)
      const dated = `${store}/${stem}-2026-11-21-16-00-00.pem`
      await write(9, 'w1', dated, { kind: 'requested', usage, replaces }, 0o600)
      await write(9, 'w1', `${store}/${stem}-current.pem`, { kind: 'link', to: dated }, 0o600)
      const [issued] = readCertificates(await text('w1', `${store}/${stem}-current.pem`))
      expect(issued!.authorityKeyId).toBe(next!.subjectKeyId)
      expect(issued!.subjectAltNames.ip).toEqual(leaf!.subjectAltNames.ip)
    }
    const caData = await digestsIn('w1', `${pki}/ca.crt`)
    await write(9, 'w1', '/etc/kubernetes/kubelet.conf', { kind: 'kubeconfig', caData }, 0o600)
    const replaces = await startOf('w1', 'kubelet')
    await executor.restart({ kind: 'restart', phase: 9, process: 'w1/kubelet', replaces, how: 'service' })
    expect(await startOf('w1', 'kubelet')).toBeGreaterThan(replaces)
    await prove({ kind: 'logs', node: 'w1' }, 90_000)
    const { stdout } = await lab.kubectl(['get', 'csr', '-o', 'name'])
    expect(stdout).not.toContain('kcert-')
  }, 180_000)

  test('an API server serves leaf and bridge, and whoever trusts the old CA alone is served until the bridge goes', async () => {
    const path = `${pki}/apiserver.crt`
    const [leaf] = readCertificates(await text('cp1', path))
    const [bridge] = readCertificates(await text('cp1', paths.bridge))
    const chain = [site.certificates.add(bridge!)]
    const reissued = { kind: 'reissued', leaf: site.certificates.add(leaf!), ca: 'cluster', chain } as const
    await write(9, 'cp1', path, reissued)
    const [after] = readCertificates(await text('cp1', path))
    expect(after!.subjectAltNames.dns).toEqual(leaf!.subjectAltNames.dns)
    expect(after!.subjectAltNames.ip).toEqual(leaf!.subjectAltNames.ip)
    expect(after!.publicKey.sha256).toBe(leaf!.publicKey.sha256)
    const at = 'cp1/kube-apiserver'
    expect(await probe({ kind: 'old-trust', at, expects: 'refused' }, 1_000)).toMatchObject({ ok: false })
    const certificates = [site.certificates.add(after!)]
    await write(12, 'cp1', path, { kind: 'certificates', certificates })
    await prove({ kind: 'old-trust', at, expects: 'refused' })
    await prove({ kind: 'handshake-errors', at, forMs: 3_000 }, 60_000)
  }, 120_000)

  test('the bytes that a copy holds come back', async () => {
    const path = `${pki}/apiserver.crt`
    const copy = copyLines(await read('cp1', copiesIndex))!.find(
      ({ of, phase }) => phase === 9 && 'path' in of && of.path === path,
    )!
    await write(9, 'cp1', path, { kind: 'copy', digest: copy.digest! })
    expect((await read('cp1', path))!.sha256).toBe(copy.digest)
  })

  test('a workload is rolled by its own controller, once', async () => {
    const workload = 'Deployment kube-system/coredns'
    const deployment = { group: 'apps', version: 'v1', resource: 'deployments', namespace: 'kube-system' }
    const generation = async () => {
      const object = await api.objects.get({ ...deployment, name: 'coredns' })
      return (object as unknown as { metadata: { generation: number } }).metadata.generation
    }
    const before = await generation()
    for (let time = 0; time < 2; time++)
      await executor.roll({ kind: 'roll', phase: 4, workload, annotation: '4-abcdef01' })
    expect(await generation()).toBe(before + 1)
  })
})

function inventoryOf(lab: Cluster): Inventory {
  return {
    apiVersion: 'kcert/v1',
    kind: 'Inventory',
    nodes: lab.nodes().map(({ name, address }) => ({
      name,
      role: name.startsWith('cp') ? ('control-plane' as const) : ('worker' as const),
      addresses: [address],
      layout: 'kubeadm' as const,
      access: { by: 'command' as const, argv: lab.enter(name) },
    })),
  }
}
