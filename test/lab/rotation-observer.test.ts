import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { renderInventory } from '../../src/output/discovery.ts'
import type { ProbeSubject } from '../../src/rotation/action.ts'
import { accessFor } from '../../src/rotation/discovery.ts'
import { readInventory } from '../../src/rotation/inventory.ts'
import { phaseNumbered, playbook } from '../../src/rotation/playbook.ts'
import { preflight } from '../../src/rotation/refusals.ts'
import { fileKey, type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import { defaultSettings, targetOf } from '../../src/rotation/target-reading.ts'
import { discover } from '../../src/rotation-io/discovering.ts'
import { SiteExecutor } from '../../src/rotation-io/executor.ts'
import { SiteObserver } from '../../src/rotation-io/observer.ts'
import { contentVersion } from '../../src/site/object-content.ts'
import type { Site } from '../../src/site/site.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'
import { certificatePem, testCa, testKey } from '../pki/kubeadm-tree.ts'
import { tracesOf } from '../scripts/secret-traces.ts'
import { endProcess, isRunning, startDetached, until } from './command.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'
import { labInventory, labSite } from './rotation-site.ts'
import { type ClusterRequest, defaultMinor, network, releases } from './spec.ts'

// The observer on a real cluster, compared with kubectl, OpenSSL and the files.

function observes(title: string, request: ClusterRequest, more: (scene: () => Scene) => void): void {
  describeOnCluster(title, () => {
    let scene: Scene

    beforeAll(async () => {
      const cluster = await openCluster(request)
      const site = await labSite(cluster)
      const observer = new SiteObserver(site)
      let snapshot = await observer.observe(sectionNames)
      // On a busy machine, a health check may time out. Tests start with a healthy cluster.
      await until('nodes, components, kubelets and add-ons are well', 300_000, async () => {
        if (isWell(snapshot)) return true
        snapshot = await observer.observe(sectionNames)
        return isWell(snapshot)
      })
      scene = { cluster, site, observer, snapshot }
    })

    afterAll(async () => {
      await scene?.site.close()
      await scene?.cluster.close()
    })

    more(() => scene)
  })
}

interface Scene {
  readonly cluster: Cluster & { close(): Promise<void> }
  readonly site: Site
  readonly observer: SiteObserver
  readonly snapshot: Snapshot
}

function isWell({ nodes, components, kubelets, caBundles }: Snapshot): boolean {
  return (
    [...components, ...kubelets].every(({ process }) => process?.isHealthy) &&
    caBundles.every(({ isAvailable }) => isAvailable) &&
    // The precision of clock comparison is limited by the response time of nodes.
    nodes.every(({ isReady, clockSkewMs = 0 }) => isReady && Math.abs(clockSkewMs) < 1_000)
  )
}

/** SHA-256 of the DER, by which snapshots identify certificates. */
function digestOf(pem: string | Buffer): string {
  return new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase()
}

function fileOn({ cluster }: Scene, node: string, path: string): Buffer {
  return readFileSync(cluster.hostPath(node, path))
}

async function kubectl({ cluster }: Scene, ...args: string[]): Promise<string> {
  return (await cluster.kubectl(args)).stdout.trim()
}

const pki = '/etc/kubernetes/pki'

observes('the observer on 1+1', { controlPlanes: 1, workers: 1 }, (scene) => {
  test('nodes match the API, and their clocks match this machine', () => {
    const { snapshot } = scene()
    const kubeletVersion = releases[defaultMinor].kubernetes
    expect(snapshot.nodes).toMatchObject([
      { name: 'cp1', isControlPlane: true, isReady: true, kubeletVersion, layout: 'kubeadm' },
      { name: 'w1', isControlPlane: false, isReady: true, kubeletVersion, layout: 'kubeadm' },
    ])
    for (const { clockSkewMs } of snapshot.nodes) expect(Math.abs(clockSkewMs!)).toBeLessThan(1_000)
  })

  test('components are the static pods, healthy, with flags of definition and process', async () => {
    const { snapshot, cluster } = scene()
    expect(snapshot.components.map(({ id }) => id)).toEqual([
      'cp1/kube-apiserver',
      'cp1/kube-controller-manager',
      'cp1/kube-scheduler',
    ])
    for (const component of snapshot.components) {
      expect(component.process?.isHealthy, component.id).toBe(true)
      expect(component.process?.flags).toEqual(component.flags)
      const { stdout } = await cluster.onNode('cp1', ['sha256sum', component.definition])
      expect(component.definitionDigest).toBe(stdout.split(' ')[0])
      expect(component.runsAs).toBe('static-pod')
    }
    expect(snapshot.components[1]!.flags['root-ca-file']).toBe(`${pki}/ca.crt`)
  })

  test('a process has the start time that the node reports', async () => {
    const { snapshot, cluster } = scene()
    const api = snapshot.components.find(({ name }) => name === 'kube-apiserver')!
    const { stdout } = await cluster.onNode('cp1', [
      'sh',
      '-c',
      'date -d "$(ps -o lstart= -C kube-apiserver)" +%s',
    ])
    expect(Math.abs(api.process!.startedAtMs - Number(stdout) * 1000)).toBeLessThan(2_000)
  })

  test('kubelets have their files, and are healthy', () => {
    expect(scene().snapshot.kubelets).toMatchObject(
      ['cp1', 'w1'].map((node) => ({
        id: `${node}/kubelet`,
        clientCaFile: `${pki}/ca.crt`,
        kubeconfig: '/etc/kubernetes/kubelet.conf',
        clientCurrent: '/var/lib/kubelet/pki/kubelet-client-current.pem',
        servingCurrent: '/var/lib/kubelet/pki/kubelet-server-current.pem',
        process: { isHealthy: true },
      })),
    )
  })

  test('files have the digests, modes and certificates on the node', async () => {
    const { snapshot, cluster } = scene()
    const at = (path: string) => snapshot.files.get(fileKey('cp1', path))
    for (const path of [`${pki}/ca.crt`, `${pki}/ca.key`, '/etc/kubernetes/admin.conf']) {
      const { stdout } = await cluster.onNode('cp1', ['sh', '-c', `sha256sum ${path}; stat -c %a ${path}`])
      const [digest, , mode] = stdout.split(/\s+/)
      expect(at(path), path).toMatchObject({ digest, mode: Number.parseInt(mode!, 8) })
    }
    const ca = digestOf(fileOn(scene(), 'cp1', `${pki}/ca.crt`))
    expect(at(`${pki}/ca.crt`)?.contains).toEqual({ kind: 'certificates', certificates: [ca] })
    const record = snapshot.certificates.get(ca)!
    expect(at(`${pki}/ca.key`)?.contains).toEqual({ kind: 'key', spki: record.spki })
    const leaf = digestOf(fileOn(scene(), 'cp1', `${pki}/apiserver.crt`))
    expect(snapshot.certificates.get(leaf)).toMatchObject({
      subject: 'CN=kube-apiserver',
      signedBy: record.spki,
    })
    expect(at('/etc/kubernetes/kubelet.conf')?.contains).toMatchObject({ kind: 'kubeconfig', caData: [ca] })
    expect(at('/var/lib/kubelet/pki/kubelet-client-current.pem')).toMatchObject({
      linksTo: expect.stringMatching(/^\/var\/lib\/kubelet\/pki\/kubelet-client-20/),
      contains: { kind: 'pair' },
    })
  })

  test('no private key is in a snapshot', () => {
    const { snapshot } = scene()
    const text = JSON.stringify([...snapshot.files.values(), ...snapshot.certificates.values()])
    const keys = [`${pki}/ca.key`, '/etc/kubernetes/admin.conf'].map((path) => {
      const content = fileOn(scene(), 'cp1', path).toString()
      const data = /client-key-data: (\S+)/.exec(content)?.[1]
      return data === undefined ? content : Buffer.from(data, 'base64').toString()
    })
    expect(keys.flatMap((key) => tracesOf(key)).filter((trace) => text.includes(trace))).toEqual([])
    expect(text).not.toContain('PRIVATE')
  })

  test("kubeconfigs are kubeadm's, each with the component that reads it; the kubelet's belongs to the kubelet", () => {
    const used = scene().snapshot.kubeconfigs.map(({ id, usedBy }) => `${id} ${usedBy ?? ''}`.trim())
    expect(used.toSorted()).toEqual([
      'cp1:/etc/kubernetes/admin.conf',
      'cp1:/etc/kubernetes/controller-manager.conf cp1/kube-controller-manager',
      'cp1:/etc/kubernetes/scheduler.conf cp1/kube-scheduler',
      'cp1:/etc/kubernetes/super-admin.conf',
    ])
  })

  test('every namespace has its CA, and every pod that mounts it is found on its node', async () => {
    const { snapshot } = scene()
    const ca = digestOf(fileOn(scene(), 'cp1', `${pki}/ca.crt`))
    const namespaces = (await kubectl(scene(), 'get', 'namespaces', '-o', 'name')).split('\n')
    // kubectl does not know the kind where no API server serves it.
    const bundles = await scene().cluster.kubectl(
      ['get', 'clustertrustbundles', '-o', 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}'],
      { mayFail: true },
    )
    const ofApiServers = bundles.stdout
      .split('\n')
      .filter((name) => name.startsWith('kubernetes.io:kube-apiserver-serving:'))
    expect(snapshot.published.map(({ kind, name }) => `${kind} ${name}`).toSorted()).toEqual(
      [
        ...namespaces.map((name) => `ConfigMap ${name.replace('namespace/', '')}/kube-root-ca.crt`),
        ...ofApiServers.map((name) => `ClusterTrustBundle ${name}`),
      ].toSorted(),
    )
    for (const one of snapshot.published) expect(one).toMatchObject({ isActive: true, trust: [ca] })
    const pods = await kubectl(
      scene(),
      ...['get', 'pods', '-A', '--field-selector=status.phase=Running', '-o'],
      'jsonpath={range .items[?(@.spec.volumes[*].projected)]}{.metadata.namespace}/{.metadata.name}{"\\n"}{end}',
    )
    expect(snapshot.pods.map(({ id }) => id).toSorted()).toEqual(pods.split('\n').toSorted())
    for (const pod of snapshot.pods) {
      expect(pod.volume?.trust, pod.id).toEqual([ca])
      expect(pod.startedAtMs, pod.id).toBeGreaterThanOrEqual(pod.volume!.changedAtMs)
    }
    expect(snapshot.pods.find(({ id }) => id.includes('coredns'))?.workload).toBe(
      'Deployment kube-system/coredns',
    )
    expect(snapshot.pods.find(({ id }) => id.includes('kube-proxy'))?.rereads).toBe(true)
  })

  test('reads the CAs that the cluster publishes, and the signatures of cluster-info verify', async () => {
    const { snapshot } = scene()
    const ca = digestOf(fileOn(scene(), 'cp1', `${pki}/ca.crt`))
    const frontProxy = digestOf(fileOn(scene(), 'cp1', `${pki}/front-proxy-ca.crt`))
    expect(snapshot.clusterInfo?.trust).toEqual([ca])
    expect(snapshot.clusterInfo?.signatures.length).toBeGreaterThan(0)
    for (const { isValid } of snapshot.clusterInfo!.signatures) expect(isValid).toBe(true)
    expect(snapshot.extensionAuthentication).toMatchObject({
      client: [ca],
      requestheader: [frontProxy],
      allowsAnyName: false,
    })
    const inSystem = ['-n', 'kube-system', 'get', 'configmap', 'kubeadm-config', '-o', 'json']
    const version = contentVersion(JSON.parse(await kubectl(scene(), ...inSystem)))
    expect(snapshot.kubeadm).toEqual({
      version,
      extraArgs: {},
      kubernetesVersion: releases[defaultMinor].kubernetes,
    })
    expect(snapshot.leases.map(({ name, holder }) => [name, holder])).toEqual([
      ['kube-controller-manager', 'cp1'],
      ['kube-scheduler', 'cp1'],
    ])
  })

  test('the served certificate of each handshake matches its file', () => {
    const { snapshot } = scene()
    const shown = new Map(snapshot.handshakes.map(({ server, chain }) => [server, chain]))
    expect(shown.get('cp1/kube-apiserver')).toEqual([
      digestOf(fileOn(scene(), 'cp1', `${pki}/apiserver.crt`)),
    ])
    const serving = snapshot.files.get(fileKey('w1', '/var/lib/kubelet/pki/kubelet-server-current.pem'))!
    expect(serving.contains).toMatchObject({ kind: 'pair', certificates: shown.get('w1/kubelet') })
  })

  test('accepts a healthy kubeadm cluster, and plans every phase', () => {
    const { snapshot } = scene()
    const target = targetOf(snapshot, defaultSettings)
    expect(target.changes.map(({ ca, oldCa }) => [ca, oldCa.subject])).toEqual([
      ['cluster', 'CN=kubernetes'],
      ['front-proxy', 'CN=front-proxy-ca'],
    ])
    for (const phase of playbook.phases) expect(preflight(snapshot, target, phase)).toEqual([])
    const first = phaseNumbered(1)
    expect(first.gaps(snapshot, target).map(({ at }) => at)).toContain('w1')
    expect(first.plan(snapshot, target).length).toBeGreaterThan(5)
    for (const phase of playbook.phases) expect(() => phase.plan(snapshot, target)).not.toThrow()
  })

  test('detects a replaced file at the next observation, even within the same second', async () => {
    const { observer, cluster } = scene()
    const path = '/etc/kubernetes/pki/kcert/new/ca.crt'
    const digest = async () => (await observer.observe(['files'])).files.get(fileKey('cp1', path))?.digest
    await cluster.onNode('cp1', ['mkdir', '-p', '/etc/kubernetes/pki/kcert/new'])
    const digests = new Set<string | undefined>([await digest()])
    for (const text of ['aaaa', 'bbbb', 'cccc']) {
      await cluster.onNode('cp1', ['sh', '-c', `printf ${text} > ${path}.t && mv ${path}.t ${path}`])
      digests.add(await digest())
    }
    expect(digests.size).toBe(4)
    await cluster.onNode('cp1', ['rm', '-r', '/etc/kubernetes/pki/kcert'])
    expect(await digest()).toBeUndefined()
  })

  test('reports a node that cannot be reached, without throwing', async () => {
    const { cluster } = scene()
    const inventory = labInventory(cluster)
    const [first, second] = inventory.nodes
    const site = await labSite(cluster, {
      ...inventory,
      nodes: [first!, { ...second!, access: { by: 'command', argv: ['false'] } }],
    })
    const observed = await new SiteObserver(site).observe(sectionNames)
    await site.close()
    expect(observed.nodes[0]).not.toHaveProperty('unreachable')
    expect(observed.nodes[1]?.unreachable).toBe('its exit status was 1')
    expect(observed.kubelets.map(({ node }) => node)).toEqual(['cp1'])
    expect(observed.pods.find(({ node }) => node === 'w1')).not.toHaveProperty('volume')
  })

  test('discover proves by ssh that each node can be read and written, and leaves nothing behind', async () => {
    const { cluster, site } = scene()
    const found = await discover({
      objects: site.objects,
      clock: systemClock,
      access: accessFor({ sshConfig: cluster.sshConfig }),
    })
    expect(found.blockers).toEqual([])
    expect(found.nodes).toMatchObject([
      {
        name: 'cp1',
        role: 'control-plane',
        layout: 'kubeadm',
        check: { canRead: true, canWrite: true, isRoot: true },
      },
      {
        name: 'w1',
        role: 'worker',
        layout: 'kubeadm',
        check: { canRead: true, canWrite: true, isRoot: true },
      },
    ])
    expect(found.components.map(({ id }) => id)).toEqual([
      'cp1/kube-apiserver',
      'cp1/kube-controller-manager',
      'cp1/kube-scheduler',
    ])
    expect(await readInventory(renderInventory(found))).toEqual(found.inventory)
    for (const node of ['cp1', 'w1']) {
      const { stdout } = await cluster.onNode(node, [
        'find',
        '/etc/kubernetes',
        '/var/lib/kcert',
        '-name',
        '.kcert*',
      ])
      expect(stdout).toBe('')
    }
  })

  test('TCP checks and a client that hangs up block nothing; a client that trusts another CA does, by its address', async () => {
    const { cluster, site } = scene()
    const executor = new SiteExecutor({ site, random: systemRandom })
    const at = 'cp1/kube-apiserver'
    const watch = (more: Partial<Extract<ProbeSubject, { kind: 'handshake-errors' }>>) =>
      executor.probe({
        kind: 'probe',
        phase: 11,
        subject: { kind: 'handshake-errors', at, forMs: 6_000, waived: [], ...more },
        deadlineMs: 25_000,
      })
    const [server, client] = ['cp1', 'w1'].map(
      (node) => cluster.nodes().find(({ name }) => name === node)!.address,
    ) as [string, string]
    const folder = mkdtempSync(join(tmpdir(), 'kcert-lab-'))
    const configuration = join(folder, 'haproxy.cfg')
    writeFileSync(
      configuration,
      `defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\nlisten api\n  bind unix@${join(folder, 'socket')}\n  server cp1 ${server}:6443 check inter 1s\n`,
    )
    const balancer = await startDetached(['haproxy', '-f', configuration, '-db'], join(folder, 'haproxy.log'))
    const hangingUp = setInterval(() => {
      const socket = connect(6443, server, () => socket.destroy())
      socket.on('error', () => {})
    }, 1_000)
    const namesake = testCa('kubernetes', testKey('lab namesake'), new Date(Date.now() - 86_400_000))
    const [ca, flag] = ['/root/another-ca.crt', '/root/another-ca.wanted']
    try {
      const measured = await executor.probe({
        kind: 'probe',
        phase: 1,
        subject: { kind: 'handshake-rate', at, forMs: 6_000 },
        deadlineMs: 25_000,
      })
      expect(isRunning(balancer), readFileSync(join(folder, 'haproxy.log'), 'utf8')).toBe(true)
      // HAProxy resets most of its checks before the API server accepts them. The client that hangs up is counted each time.
      expect(measured.rate?.errors, measured.detail).toBeGreaterThanOrEqual(4)
      const before = measured.rate!
      const quiet = await watch({ before })
      expect(quiet.ok, quiet.detail).toBe(true)
      writeFileSync(cluster.hostPath('w1', ca), certificatePem(namesake.certificate))
      writeFileSync(cluster.hostPath('w1', flag), '')
      const loop = `while [ -e ${flag} ]; do openssl s_client -connect ${server}:6443 -CAfile ${ca} -verify_return_error </dev/null; sleep 1; done`
      await startDetached([...cluster.enter('w1'), 'sh', '-c', loop], join(folder, 'client.log'))
      const refused = await watch({ before })
      expect(refused.ok, refused.detail).toBe(false)
      // In TLS 1.3, OpenSSL sends its alert unencrypted.
      expect(refused.detail).toContain(`${client} (local error: tls: bad record MAC, `)
      expect(refused.detail).toContain(`--waive ${client}`)
      expect(refused.detail).not.toContain(network.gateway)
      const accepted = await watch({ before, waived: [client] })
      expect(accepted.ok, accepted.detail).toBe(true)
      expect(accepted.accepted?.join()).toContain(`${client} (local error: tls: bad record MAC`)
    } finally {
      rmSync(cluster.hostPath('w1', flag), { force: true })
      clearInterval(hangingUp)
      await endProcess(balancer)
      rmSync(folder, { recursive: true })
    }
  })

  test('observes the same over ssh', async () => {
    const { cluster, snapshot } = scene()
    const site = await labSite(cluster, labInventory(cluster, 'ssh'))
    const observed = await new SiteObserver(site).observe(['components', 'files', 'handshakes'])
    await site.close()
    expect(observed.components.map(({ id, flags, process }) => [id, flags, process?.isHealthy])).toEqual(
      snapshot.components.map(({ id, flags, process }) => [id, flags, process?.isHealthy]),
    )
    expect([...observed.files.keys()].toSorted()).toEqual([...snapshot.files.keys()].toSorted())
    expect(observed.handshakes.map(({ server }) => server)).toEqual(
      snapshot.handshakes.map(({ server }) => server),
    )
  })
})

observes('the observer on 3+1 with add-ons', { controlPlanes: 3, workers: 1, addons: true }, (scene) => {
  test('aggregated APIs and webhooks are servers in the snapshot, with the workloads behind them', () => {
    const { snapshot } = scene()
    const servers = new Set(snapshot.caBundles.map(({ server }) => server))
    expect(servers.size).toBeGreaterThanOrEqual(2)
    const ca = digestOf(fileOn(scene(), 'cp1', `${pki}/ca.crt`))
    for (const bundle of snapshot.caBundles) {
      expect(bundle.trust, bundle.id).toEqual([ca])
      expect(bundle.isAvailable, bundle.id).toBe(true)
      expect(
        snapshot.handshakes.some(({ server }) => server === bundle.server),
        bundle.server,
      ).toBe(true)
      expect(
        snapshot.workloads.some(({ serves }) => serves.includes(bundle.id)),
        bundle.id,
      ).toBe(true)
    }
  })

  test('finds three API servers and one leader of each kind, with no refused access', () => {
    const { snapshot } = scene()
    const apis = snapshot.handshakes.filter(({ server }) => server.endsWith('/kube-apiserver'))
    expect(apis.map(({ server }) => server)).toEqual(
      ['cp1', 'cp2', 'cp3'].map((cp) => `${cp}/kube-apiserver`),
    )
    expect(snapshot.leases.filter(({ holder }) => /^cp[123]$/.test(holder ?? ''))).toHaveLength(2)
    const target = targetOf(snapshot, defaultSettings)
    expect(preflight(snapshot, target, phaseNumbered(1))).toEqual([])
  })
})
