import { X509Certificate } from 'node:crypto'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CertificateRenewal } from '../../src/ca/renewal-report.ts'
import type { KubeletDiagnosis } from '../../src/kubelet/doctor/report.ts'
import { ageCertificates, failPower } from './aging.ts'
import { type CommandResult, run, until } from './command.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'
import { staticPods } from './rotation-aftermath.ts'
import { labInventory } from './rotation-site.ts'

// An outage at three in the morning: every leaf of the cluster has expired, and no process that needs one runs.

const kcertProgram = [process.execPath, resolve('bin/run.js')]

describeOnCluster('renew', () => {
  let cluster: Cluster & { close(): Promise<void> }
  let folder: string
  /** With the inventory: reaches every node. */
  const kcert = (...args: string[]): Promise<CommandResult> =>
    run([...kcertProgram, ...args, '--inventory', 'kcert.yaml'], {
      ...{ cwd: folder, mayFail: true, timeoutMs: 900_000 },
      env: { PATH: process.env.PATH!, HOME: folder },
    })
  const onNode = (node: string, ...argv: string[]): Promise<CommandResult> =>
    cluster.onNode(node, argv, { mayFail: true, timeoutMs: 600_000 })

  beforeAll(async () => {
    cluster = await openCluster({ controlPlanes: 1, workers: 1 })
    folder = mkdtempSync(join(tmpdir(), 'kcert-renew-'))
    const inventory = labInventory(cluster)
    writeFileSync(join(folder, 'kcert.yaml'), JSON.stringify(inventory))
    ageCertificates(cluster, 'leaves')
    await failPower(cluster)
  })
  afterAll(async () => {
    if (folder) rmSync(folder, { recursive: true })
    await cluster?.close()
  })

  const endOf = (node: string, path: string): number =>
    new X509Certificate(readFileSync(cluster.hostPath(node, path))).validToDate.getTime()
  /** The link's target is a path on the node, so it is resolved there. */
  const endOnNode = async (node: string, path: string): Promise<number> => {
    const { stdout } = await onNode(node, 'cat', path)
    return new X509Certificate(stdout).validToDate.getTime()
  }

  test('with the API server down, kcert renew on the node itself lists the expired certificates', async () => {
    const asked = ['get', '--raw', '/readyz', '--request-timeout=3s']
    expect((await cluster.kubectl(asked, { mayFail: true })).code).not.toBe(0)
    const listed = await onNode('cp1', ...kcertProgram, 'renew')
    expect(listed.code).toBe(3)
    expect(listed.stdout).toMatch(/cp1 +apiserver +\S+ \S+ +1h/)
    expect(listed.stdout).toContain('kcert renew --all')
    expect(listed.stdout.match(/ expired$/gm)?.length).toBeGreaterThanOrEqual(12)
    const planned = await onNode('cp1', ...kcertProgram, 'renew', '--all', '--dry-run', '-o', 'json')
    expect((JSON.parse(planned.stdout) as CertificateRenewal).outcome).toBe('planned')
  })

  test('kubeadm certs renew all leaves kubelet.conf and every restart to the operator', async () => {
    const renewed = await onNode('cp1', 'kubeadm', 'certs', 'renew', 'all')
    expect(renewed.stdout).toContain('You must restart the kube-apiserver')
    expect(endOf('cp1', '/etc/kubernetes/pki/apiserver.crt')).toBeGreaterThan(Date.now())
    expect(await endOnNode('cp1', '/var/lib/kubelet/pki/kubelet-client-current.pem')).toBeLessThan(Date.now())
    // kcert starts from the same state as kubeadm.
    ageCertificates(cluster, 'leaves')
    await failPower(cluster)
  })

  test('kcert renew --all alone repairs every node', async () => {
    const before = staticPods(cluster)
    const began = performance.now()
    const done = await kcert('renew', '--all', '--yes', '-o', 'json')
    process.stderr.write(`renewed in ${((performance.now() - began) / 1000).toFixed(0)} s\n${done.stderr}`)
    expect(done.code, done.stdout + done.stderr).toBe(0)
    const report = JSON.parse(done.stdout) as CertificateRenewal
    expect(report.outcome).toBe('renewed')
    const names = report.certificates.filter(({ action }) => action === 'renewed').map(({ name }) => name)
    for (const name of [
      'apiserver',
      'etcd-server',
      'etcd-peer',
      'admin.conf',
      'kubelet.conf',
      'scheduler.conf',
    ])
      expect(names).toContain(name)
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([])
    expect(report.checks.map(({ name, what }) => `${name} ${what}`)).toEqual(
      expect.arrayContaining([
        'apiserver served',
        'etcd-server served',
        'etcd-peer served',
        'kubelet.conf accepted',
      ]),
    )
    expect(done.stdout + done.stderr).not.toContain('PRIVATE')
    copyFileSync(cluster.hostPath('cp1', '/etc/kubernetes/admin.conf'), cluster.kubeconfig)
    await cluster.kubectl(['wait', 'node', '--all', '--for=condition=Ready', '--timeout=300s'])
    const backup = report.backups[0]!.folder
    expect(endOf('cp1', `${backup}/etc/kubernetes/pki/apiserver.crt`)).toBeLessThan(Date.now())
    // No new file is next to the manifests.
    expect(Object.keys(staticPods(cluster))).toEqual(Object.keys(before))
    const manifests = await onNode('cp1', 'ls', '-A', '/etc/kubernetes/manifests')
    expect(manifests.stdout.trim().split('\n')).toHaveLength(4)
  })

  test('a second run finds nothing to do', async () => {
    const again = await kcert('renew', '--all', '--yes')
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('nothing is due')])
  })

  test('completes after a kill and a second run, and one certificate by name is in use', async () => {
    const child = run(
      ['timeout', '-s', 'KILL', '4', ...kcertProgram, 'renew', 'etcd-server', 'apiserver', '--yes'],
      {
        ...{ cwd: folder, mayFail: true, env: { PATH: process.env.PATH!, HOME: folder } },
      },
    )
    expect((await child).code).not.toBe(0)
    const done = await kcert('renew', 'etcd-server', 'apiserver', '--yes', '-o', 'json')
    expect(done.code, done.stdout + done.stderr).toBe(0)
    const report = JSON.parse(done.stdout) as CertificateRenewal
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([])
    await cluster.kubectl(['wait', 'node', '--all', '--for=condition=Ready', '--timeout=300s'])
  })

  const current = '/var/lib/kubelet/pki/kubelet-client-current.pem'
  const later = '/var/lib/kubelet/pki/kubelet-client-2099-01-01-00-00-00.pem'
  /** Shell lines on the worker. The expired pair is in the backup of the renewal. */
  const damages: readonly (readonly [string, string])[] = [
    ['LINK_MISSING', `rm ${current}`],
    ['LINK_DANGLING', `ln -sfn /var/lib/kubelet/pki/kubelet-client-2000-01-01-00-00-00.pem ${current}`],
    ['LINK_IS_FILE', `f=$(readlink ${current}); rm ${current}; mv $f ${current}`],
    [
      'PAIR_MISMATCH',
      `umask 077; (openssl x509 -in ${current}; openssl ecparam -genkey -name prime256v1 -noout) > ${later}; ln -sfn ${later} ${current}`,
    ],
    [
      'KUBECONFIG_EMBEDS',
      `d=$(cat $OLD | base64 -w0); sed -i "s|client-certificate: .*|client-certificate-data: $d|; s|client-key: .*|client-key-data: $d|" /etc/kubernetes/kubelet.conf`,
    ],
    ['EXPIRED', `umask 077; cat $OLD > ${later}; ln -sfn ${later} ${current}`],
  ]

  test.each(damages)(
    'the doctor repairs a kubelet that was killed and damaged (%s), and its node reports again',
    async (id, line) => {
      const script = `set -e; systemctl stop kubelet; OLD=$(ls /var/lib/kcert/backups/renew-*/var/lib/kubelet/pki/kubelet-client-2*.pem | head -1); ${line}; systemctl start kubelet || true`
      const damaged = await onNode('w1', 'sh', '-c', script)
      expect(damaged.code, damaged.stderr).toBe(0)
      const observed = await kcert('kubelet', 'doctor', 'w1')
      expect([observed.code, observed.stdout]).toEqual([3, expect.stringContaining(id)])
      const since = Date.now()
      const repaired = await kcert('kubelet', 'doctor', 'w1', '--fix', '--yes', '-o', 'json')
      expect(repaired.code, repaired.stdout + repaired.stderr).toBe(0)
      const [node] = (JSON.parse(repaired.stdout) as KubeletDiagnosis).nodes
      expect([node!.fixed[0]!.id, node!.kubelet, node!.findings]).toEqual([id, 'restarted', []])
      expect(repaired.stdout).not.toContain('PRIVATE')
      await until(`w1 is heard of after ${id}`, 180_000, async () => {
        const lease = ['get', 'lease', '-n', 'kube-node-lease', 'w1', '-o', 'jsonpath={.spec.renewTime}']
        return Date.parse((await cluster.kubectl(lease)).stdout) > since
      })
      await cluster.kubectl(['wait', 'node', 'w1', '--for=condition=Ready', '--timeout=300s'])
      await onNode('w1', 'rm', '-f', later)
    },
  )
})
