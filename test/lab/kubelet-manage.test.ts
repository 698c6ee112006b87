import { type ChildProcess, spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Cluster as Connection } from '../../src/cluster/cluster.ts'
import { editYaml } from '../../src/kubeconfig/edit-yaml.ts'
import type { ForecastReport } from '../../src/kubelet/forecast-report.ts'
import { editStaticPod } from '../../src/pki/static-pod.ts'
import { openWith } from '../contract/stage.ts'
import { violations } from '../scripts/schemas.ts'
import { type CommandResult, run, sleep, until } from './command.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'

// The certificate manager together with real kubelets. Each reads the files that the other wrote, and no client notices a
// renewal.

const pki = '/var/lib/kubelet/pki'
const configuration = '/var/lib/kubelet/config.yaml'
const manifest = '/etc/kubernetes/manifests/kube-controller-manager.yaml'
const program = [process.execPath, resolve('bin/run.js')]
/** Signers backdate notBefore by five minutes. With 150 s, a renewal is due after 32 to 105 s. */
const signingDuration = '150s'

describeOnCluster('kubelet manage and forecast', () => {
  let cluster: Cluster & { close(): Promise<void> }
  let connection: Connection
  let approver: NodeJS.Timeout
  const daemons: ChildProcess[] = []

  const onW1 = (args: readonly string[]): Promise<CommandResult> =>
    run([...cluster.enter('w1'), ...program, ...args], { mayFail: true })
  const onHost = (args: readonly string[]): Promise<CommandResult> =>
    run([...program, ...args, '--kubeconfig', cluster.kubeconfig], { mayFail: true })
  const address = (): string => cluster.nodes().find(({ name }) => name === 'w1')!.address

  beforeAll(async () => {
    cluster = await openCluster({ controlPlanes: 1, workers: 1 })
    connection = await openWith(cluster.kubeconfig)
    // A kubeadm cluster has no approver for kubelets' serving requests.
    approver = setInterval(() => void approveServing(connection).catch(() => {}), 500)
  })
  afterAll(async () => {
    clearInterval(approver)
    for (const daemon of daemons) daemon.kill('SIGKILL')
    connection?.close()
    await cluster?.close()
  })

  test("the forecast of a live cluster agrees with the kubelets' own metrics", async () => {
    const { exit, report } = await forecast(onHost)
    expect(violations('KubeletForecast', report)).toEqual([])
    expect(report.nodes.map(({ name }) => name).sort()).toEqual(['cp1', 'w1'])
    expect(report.controllerManagers).toMatchObject([{ node: 'cp1', clusterSigningDuration: '8760h0m0s' }])
    for (const node of report.nodes) {
      // The lab's kubelets request both certificates from the cluster.
      expect(node).toMatchObject({ rotateCertificates: true, serverTlsBootstrap: true })
      for (const [usage, metric] of [
        ['client', 'client'],
        ['serving', 'server'],
      ]) {
        const observed = node.certificates.find((one) => one.usage === usage)!
        const name = `kubelet_certificate_manager_${metric}_ttl_seconds`
        const ttlMs = (await metricWhenThere(cluster, node.name, name)) * 1000
        const differenceMs = Math.abs(Date.parse(observed.notAfter) - (Date.now() + ttlMs))
        expect(differenceMs, `${usage} of ${node.name}`).toBeLessThan(20_000)
        expect(observed).toMatchObject({ state: 'not-due', isSelfSigned: false })
        if (usage === 'serving') expect(observed).toMatchObject({ source: 'handshake' })
      }
    }
    expect(exit).toBe(0)

    // The same from w1's own files, including the client certificate itself.
    const files = await onW1(['kubelet', 'forecast', '/var/lib/kubelet', '-o', 'json'])
    const [own] = (JSON.parse(files.stdout) as ForecastReport).nodes
    const live = report.nodes.find(({ name }) => name === 'w1')!
    expect(own).toMatchObject({ name: 'w1', rotateCertificates: true })
    const ownClient = own!.certificates.find(({ usage }) => usage === 'client')!
    const liveClient = live.certificates.find(({ usage }) => usage === 'client')!
    expect(Math.abs(Date.parse(ownClient.notAfter!) - Date.parse(liveClient.notAfter!))).toBeLessThan(20_000)
    expect(ownClient.source).toBe('file')
  })

  test('a real kubelet loads the client pair that kcert stored, and kcert reads the pair that the kubelet stored', async () => {
    const client = [
      'kubelet',
      'manage',
      '--kubelet-client',
      'w1',
      '--kubeconfig',
      '/etc/kubernetes/kubelet.conf',
    ]
    const before = JSON.parse((await onW1([...client, '--dry-run', '-o', 'json'])).stdout)
    expect(before).toMatchObject({ certificate: { subject: { commonName: 'system:node:w1' } } })
    expect(before.renewal.due).toBeUndefined()

    await cluster.onNode('w1', ['systemctl', 'stop', 'kubelet'])
    const done = await onW1([...client, '--once', '--force-renewal', '-o', 'json'])
    expect(done.stderr + done.code).toMatch(/0$/)
    const { certificate } = JSON.parse(done.stdout)
    expect(certificate.serialNumber).not.toBe(before.certificate.serialNumber)
    await cluster.onNode('w1', ['systemctl', 'start', 'kubelet'])
    await until('the kubelet uses it', 180_000, async () => {
      const ttl = await metricOf(cluster, 'w1', 'kubelet_certificate_manager_client_ttl_seconds')
      return Math.abs(Date.parse(certificate.notAfter) - (Date.now() + ttl * 1000)) < 10_000
    })
    await cluster.kubectl(['wait', '--for=condition=Ready', 'node/w1', '--timeout=180s'])
  })

  test('renews a serving pair twice while the kubelet serves it, without a failed handshake', async () => {
    await setSigningDuration(cluster, signingDuration)
    const pair = `${pki}/kcert-server-current.pem`
    const line = ['kubelet', 'manage', '--kubelet-serving', 'w1', '--pair-name', 'kcert-server']
    const daemon = startDaemon([...line, '--kubeconfig', '/etc/kubernetes/kubelet.conf'])
    await until('there is a pair', 300_000, async () => daemon.renewals() >= 1)
    // If the kubelet requests it from the cluster itself, its own pair takes precedence.
    const text = await editYaml(readFileSync(cluster.hostPath('w1', configuration), 'utf8'), [
      { do: 'set', path: ['serverTLSBootstrap'], value: false },
    ])
    await putFile(
      'w1',
      configuration,
      `${text.trimEnd()}\ntlsCertFile: ${pair}\ntlsPrivateKeyFile: ${pair}\n`,
    )
    await cluster.onNode('w1', ['systemctl', 'restart', 'kubelet'])
    const ca = readFileSync(cluster.hostPath('w1', '/etc/kubernetes/pki/ca.crt'), 'utf8')
    const serials = new Set<string>()
    await until('the kubelet serves it', 180_000, async () => {
      const serial = await handshake(address(), ca).catch(() => '')
      const served = new X509Certificate(readFileSync(newestPair())).serialNumber
      if (serial !== served) return false
      serials.add(serial)
      return true
    })

    const failures: string[] = []
    let handshakes = 0
    const end = Date.now() + 600_000
    while (Date.now() < end && serials.size < 3) {
      await handshake(address(), ca).then(
        (serial) => serials.add(serial),
        (error: Error) => failures.push(`${new Date().toISOString()} ${error.message}`),
      )
      handshakes++
      await sleep(100)
    }
    process.stderr.write(
      `${handshakes} handshakes, ${failures.length} failed, ${serials.size} certificates, ${daemon.renewals()} renewals\n`,
    )
    expect(failures).toEqual([])
    expect(serials.size).toBeGreaterThanOrEqual(3)
    expect(handshakes).toBeGreaterThan(200)
    const logs = await cluster.kubectl(['get', '--raw', '/api/v1/nodes/w1/proxy/healthz'])
    expect(logs.stdout).toBe('ok')
    expect(await daemon.end()).toBe(0)
  })

  test('the forecast detects a signing duration that causes continuous renewals', async () => {
    const { exit, report } = await forecast(onHost)
    expect(exit).toBe(3)
    expect(report.findings.map(({ id }) => id)).toContain('signing-duration-short')
  })

  /** The link's target is a path on the node. */
  function newestPair(): string {
    const names = readdirSync(cluster.hostPath('w1', pki)).filter((name) => /^kcert-server-\d/.test(name))
    return cluster.hostPath('w1', `${pki}/${names.sort().at(-1)}`)
  }

  function startDaemon(args: readonly string[]) {
    const [file = '', ...words] = [...cluster.enter('w1'), ...program, ...args]
    const child = spawn(file, words, { stdio: ['ignore', 'pipe', 'pipe'] })
    daemons.push(child)
    let said = ''
    child.stderr!.setEncoding('utf8').on('data', (more: string) => {
      said += more
      process.stderr.write(more)
    })
    const over = new Promise<number | null>((done) => child.once('close', done))
    return {
      renewals: () => (said.match(/ renewed: /g) ?? []).length,
      end: async () => {
        // nsenter forks, so the signal goes to the daemon itself, by the process id in its lock.
        const lock = cluster.hostPath('w1', `${pki}/.kcert-server-current.pem.lock.kcert-tmp`)
        const { pid } = JSON.parse(readFileSync(lock, 'utf8')) as { pid: number }
        await cluster.onNode('w1', ['kill', '-TERM', String(pid)])
        return over
      },
    }
  }

  async function putFile(node: string, path: string, text: string): Promise<void> {
    const target = cluster.hostPath(node, path)
    const temporary = join(dirname(target), '.kcert-test')
    writeFileSync(temporary, text, { mode: 0o600 })
    renameSync(temporary, target)
  }

  async function setSigningDuration({ hostPath, onNode }: Cluster, duration: string): Promise<void> {
    const text = readFileSync(hostPath('cp1', manifest), 'utf8')
    const flags = { 'cluster-signing-duration': duration }
    await putFile('cp1', manifest, await editStaticPod(text, 'kube-controller-manager', { flags }))
    await until('kube-controller-manager runs with it', 300_000, async () => {
      const { code } = await onNode('cp1', ['pgrep', '-f', `cluster-signing-duration=${duration}`], {
        mayFail: true,
      })
      return code === 0
    })
  }
})

async function forecast(kcert: (args: readonly string[]) => Promise<CommandResult>) {
  const { code, stdout, stderr } = await kcert(['kubelet', 'forecast', '-o', 'json'])
  if (stdout === '') throw new Error(stderr)
  return { exit: code, report: JSON.parse(stdout) as ForecastReport }
}

async function approveServing({ requests }: Connection): Promise<void> {
  for await (const object of requests.list({ signerName: 'kubernetes.io/kubelet-serving' })) {
    if (object.status?.conditions !== undefined) continue
    const conditions = [{ type: 'Approved', status: 'True', reason: 'Test', message: 'by a test' }]
    await requests.replaceApproval({ ...object, status: { conditions } })
  }
}

/**
 * Connects as an API server does: with the cluster's CA, to the Node's address. Returns the serial number of the served
 * certificate.
 */
function handshake(host: string, ca: string): Promise<string> {
  return new Promise((done, failed) => {
    const socket = connect({ host, port: 10_250, ca, timeout: 30_000 }, () => {
      done(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.once('timeout', () => socket.destroy(new Error('no answer within 30 s')))
    socket.once('error', failed)
  })
}

async function metricWhenThere(cluster: Cluster, node: string, name: string): Promise<number> {
  let value = Number.NaN
  await until(`${node} tells its ${name}`, 180_000, async () => {
    value = await metricOf(cluster, node, name)
    return !Number.isNaN(value)
  })
  return value
}

async function metricOf(cluster: Cluster, node: string, name: string): Promise<number> {
  const { stdout } = await cluster.kubectl(['get', '--raw', `/api/v1/nodes/${node}/proxy/metrics`], {
    mayFail: true,
  })
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(stdout)?.[1])
}
