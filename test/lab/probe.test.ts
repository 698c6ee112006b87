import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { InspectionReport } from '../../src/inspection/report.ts'
import type { EndpointReport, ProbeReport } from '../../src/probe/report.ts'
import { filesOfGuide } from '../guides/blocks.ts'
import { kcertBeside, type Session } from '../scripts/program.ts'
import { issue, readPair } from './certificates.ts'
import { until } from './command.ts'
import { runFromCheckout } from './cron-jobs.ts'
import { describeOnCluster, openCluster } from './fixture.ts'
import { approveServingRequests } from './kubectl.ts'
import { labInventory } from './rotation-site.ts'

// The certificates that servers of a real cluster serve, before and after a misconfiguration.

const pki = '/etc/kubernetes/pki'

describeOnCluster('probe', () => {
  let cluster: Awaited<ReturnType<typeof openCluster>>
  const folder = mkdtempSync(join(tmpdir(), 'kcert-probe-'))
  const inventory = join(folder, 'kcert.yaml')

  beforeAll(async () => {
    cluster = await openCluster({ controlPlanes: 1, workers: 1 })
    writeFileSync(inventory, JSON.stringify(labInventory(cluster)))
  })
  afterAll(async () => {
    await cluster?.close()
    rmSync(folder, { recursive: true })
  })

  const kcert = (...args: string[]): Promise<Session> =>
    kcertBeside(args, { cwd: folder, env: { KUBECONFIG: cluster.kubeconfig } })

  async function probe(...args: string[]) {
    const session = await kcert('probe', ...args, '-o', 'json')
    const report = JSON.parse(session.stdout || '{"endpoints":[]}') as ProbeReport
    const byName = new Map(report.endpoints.map((one) => [one.name, one]))
    return { ...session, report, byName }
  }

  test('--all finds API servers, kubelets and etcd through the API, and no problem in a new cluster', async () => {
    const { report, byName, exit, stderr } = await probe('--all')
    expect(stderr).toBe('')
    const wrong = report.endpoints.filter(({ status }) => status !== 'ok')
    expect([exit, wrong]).toEqual([0, []])
    expect([...byName.keys()]).toEqual(
      expect.arrayContaining([
        'kube-apiserver cp1',
        'kubelet cp1',
        'kubelet w1',
        'etcd cp1',
        'etcd peer cp1',
      ]),
    )
    expect(byName.get('kube-apiserver cp1')).toMatchObject({
      version: 'TLSv1.3',
      verdicts: [{ by: 'cluster CA', trusted: true }],
      client: { verdict: 'accepted', detail: 'as kubernetes-admin' },
    })
    expect(byName.get('kube-apiserver cp1')!.clientCas).toEqual(
      expect.arrayContaining(['CN=kubernetes', 'CN=front-proxy-ca']),
    )
    expect(byName.get('kubelet w1')).toMatchObject({
      isVerified: false,
      verdicts: [{ trusted: true }],
      client: { verdict: 'accepted' },
    })
    expect(byName.get('etcd cp1')).toMatchObject({
      clientCas: ['CN=etcd-ca'],
      client: { verdict: 'not-tested' },
    })
  })

  test.each(['1.2', '1.3'])(
    'with TLS %s, etcd accepts a client of its CA and rejects one of another CA, on both ports',
    async (tls) => {
      const { byName } = await probe('--all', '-i', inventory, '--tls', tls)
      expect(byName.get('etcd cp1')).toMatchObject({
        version: `TLSv${tls}`,
        verdicts: [{ by: 'etcd CA', trusted: true }],
        client: { source: `cp1:${pki}/apiserver-etcd-client.crt`, verdict: 'accepted' },
      })
      expect(byName.get('kubelet w1')).toMatchObject({
        client: { source: `cp1:${pki}/apiserver-kubelet-client.crt`, verdict: 'accepted' },
      })
      const files = ['client.crt', 'client.key'].map((name) => join(folder, name)) as [string, string]
      for (const [index, name] of ['apiserver-kubelet-client.crt', 'apiserver-kubelet-client.key'].entries())
        writeFileSync(files[index]!, readFileSync(cluster.hostPath('cp1', `${pki}/${name}`)), { mode: 0o600 })
      const address = cluster.nodes()[0]!.address
      const refused = await probe(
        ...[
          `${address}:2379`,
          `${address}:2380`,
          '--ca',
          cluster.hostPath('cp1', `${pki}/etcd/ca.crt`),
          '--tls',
          tls,
        ],
        ...['--client-certificate', files[0], '--client-key', files[1]],
      )
      expect(refused.exit).toBe(3)
      const verdicts = refused.report.endpoints.map(({ client, problems }) => [
        client?.verdict,
        problems.map(({ code }) => code),
      ])
      expect(verdicts).toEqual([
        ['refused', ['CLIENT_REFUSED']],
        ['refused', ['CLIENT_REFUSED']],
      ])
    },
  )

  test('with an inventory, compares every process of the nodes with its files, without a kubeconfig', async () => {
    const session = await kcertBeside(['probe', '-i', inventory, '-o', 'json'], { cwd: folder })
    const { endpoints } = JSON.parse(session.stdout) as ProbeReport
    expect([session.exit, session.stderr]).toEqual([0, `inventory: ${inventory}\n`])
    const given = (one: EndpointReport) => `${one.name}: ${one.issued?.state ?? 'none'}`
    expect(endpoints.map(given).sort()).toEqual([
      'etcd cp1: served',
      'etcd peer cp1: served',
      'kube-apiserver cp1: served',
      'kube-controller-manager cp1: none',
      'kube-scheduler cp1: none',
      'kubelet cp1: served',
      'kubelet w1: served',
    ])
  })

  // An API server reloads its files. It cannot load a certificate without its key, and keeps serving the old one. This is the
  // state after an operator copies one of two files.
  test('reports an API server that serves the old certificate after a new one was installed', async () => {
    const file = cluster.hostPath('cp1', `${pki}/apiserver.crt`)
    const before = readFileSync(file)
    const ca = readPair(cluster.hostPath('cp1', `${pki}/ca.crt`), cluster.hostPath('cp1', `${pki}/ca.key`))
    const { certificate } = await issue(
      ca,
      { commonName: 'kube-apiserver', names: [`IP:${cluster.nodes()[0]!.address}`], usages: ['serverAuth'] },
      'RSA-2048',
    )
    writeFileSync(file, certificate)
    try {
      const { byName, exit } = await probe('--api-servers', '-i', inventory)
      expect(exit).toBe(3)
      expect(byName.get('kube-apiserver cp1')).toMatchObject({
        issued: { source: `cp1:${pki}/apiserver.crt`, state: 'renewed-not-served' },
        problems: [{ code: 'OLD_CERTIFICATE_SERVED' }],
      })
    } finally {
      writeFileSync(file, before)
    }
    expect((await probe('--api-servers', '-i', inventory)).exit).toBe(0)
  })

  test('a kubelet without a serving certificate has none in the report, and the one of its request after approval', async () => {
    await cluster.onNode('w1', [
      'sh',
      '-c',
      'rm /var/lib/kubelet/pki/kubelet-server-* && systemctl restart kubelet',
    ])
    let lacking = await probe('--nodes')
    await until('the kubelet has no certificate to show', 300_000, async () => {
      lacking = await probe('--nodes')
      const { problems = [] } = lacking.byName.get('kubelet w1') ?? {}
      return problems.some(({ code }) => code === 'NO_CERTIFICATE')
    })
    expect(lacking.exit).toBe(3)
    expect(lacking.byName.get('kubelet w1')!.problems[0]!.next).toContain('kcert csr list')
    await until('it asks for one', 300_000, async () => {
      const { stdout } = await cluster.kubectl(['get', 'csr', '--no-headers'])
      return stdout.includes('Pending')
    })
    await approveServingRequests()
    let served = lacking
    await until('it serves it', 300_000, async () => {
      served = await probe('--nodes')
      return served.exit === 0
    })
    expect(served.byName.get('kubelet w1')).toMatchObject({
      status: 'ok',
      issued: { source: expect.stringMatching(/^csr\//), state: 'served' },
      verdicts: [{ trusted: true }],
    })
  })

  test('the CronJob of the guide reports the certificates of a real cluster, and its Job fails when a renewal is due', async () => {
    const manifests = runFromCheckout(filesOfGuide('monitoring')['kcert-cronjob.yaml']!)
    const fine = await jobOf(manifests, 'fine')
    expect(fine.log).toContain('configmap kube-system/extension-apiserver-authentication')
    expect(fine.log).toMatch(/^valid .* served +kube-apiserver /m)
    expect(fine.log).not.toContain('not reachable from here')
    expect(fine, fine.log).toMatchObject({ ended: 'Complete', exit: 0 })

    // The certificates that kubeadm issues to API servers are valid for a year.
    const due = await jobOf(manifests.replace('"--warn","30d"', '"--warn","400d"'), 'due')
    expect(due.log).toMatch(/^warning +CERT_EXPIRING$/m)
    expect(due.log).toContain('fix: ')
    expect(due, due.log).toMatchObject({ ended: 'Failed', exit: 3 })
  })

  /** Starts a Job of the guide's CronJob at once, as in the guide's last lines, and returns its result. */
  async function jobOf(manifests: string, name: string) {
    const file = join(folder, 'kcert-cronjob.json')
    writeFileSync(file, manifests)
    const inSystem = (...args: string[]) => cluster.kubectl(['-n', 'kube-system', ...args])
    await inSystem('apply', '-f', file)
    await inSystem('create', 'job', name, '--from=cronjob/kcert-monitor')
    let ended = ''
    await until(`job ${name} has ended`, 300_000, async () => {
      const path = 'jsonpath={.status.conditions[?(@.status=="True")].type}'
      const { stdout } = await inSystem('get', 'job', name, '-o', path)
      ended = /Complete|Failed/.exec(stdout)?.[0] ?? ''
      return ended !== ''
    })
    const state = 'jsonpath={.items[0].status.containerStatuses[0].state.terminated.exitCode}'
    const { stdout: exit } = await inSystem('get', 'pods', '-l', `job-name=${name}`, '-o', state)
    const { stdout: log } = await inSystem('logs', `job/${name}`)
    return { ended, exit: Number(exit), log }
  }

  test('inspect --cluster finds the added certificates and those of the cluster itself', async () => {
    const pair = readPair(cluster.hostPath('cp1', `${pki}/ca.crt`), cluster.hostPath('cp1', `${pki}/ca.key`))
    const leaf = async (commonName: string) =>
      issue(pair, { commonName, names: [`DNS:${commonName}`], usages: ['serverAuth'] }, 'ECDSA-P256')
    const [web, other] = await Promise.all([leaf('web'), leaf('other')])
    const plant = async (name: string, certificate: string, key: string): Promise<void> => {
      const base64 = (text: string): string => Buffer.from(text).toString('base64')
      const data = { 'tls.crt': base64(certificate), 'tls.key': base64(key) }
      const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, type: 'Opaque', data }
      writeFileSync(join(folder, `${name}.json`), JSON.stringify(object))
      await cluster.kubectl(['create', '-n', 'default', '-f', join(folder, `${name}.json`)])
    }
    await plant('web', web.certificate, web.key)
    await plant('swapped', web.certificate, other.key)
    const { stdout, exit } = await kcert('inspect', '--cluster', '-o', 'json')
    const report = JSON.parse(stdout) as InspectionReport
    const sources = new Set(report.certificates.map(({ source }) => source))
    for (const source of [
      'secret default/web',
      'secret default/swapped',
      'configmap default/kube-root-ca.crt',
      'configmap kube-public/cluster-info',
      'configmap kube-system/extension-apiserver-authentication',
      cluster.kubeconfig,
      cluster.endpoint,
    ])
      expect([...sources]).toContain(source)
    expect([...sources].some((source) => source.startsWith('csr '))).toBe(true)
    const wrong = report.problems.filter(({ code }) => code === 'KEY_MISMATCH')
    expect([exit, wrong.map(({ source }) => source)]).toEqual([3, ['secret default/swapped']])
    expect(stdout).not.toContain(other.key.split('\n')[1])
  })
})
