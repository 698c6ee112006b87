import { execFileSync, spawn } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createServer } from 'node:tls'
import { memoryEnvironment, memoryLimit } from '../../src/app/controller/manifest.ts'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { writePem } from '../../src/x509/pem.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { seconds } from '../fakes/api-server-store.ts'
import { freePort } from '../node/ports.ts'
import { putCluster, putServing, requestsKey } from '../scripts/cluster-session.ts'

// Measures the memory of `kcert controller` with the options of its pods, in a memory cgroup with the limit of its pods, on a fake API
// server: npm run bench:controller -- [SCENARIO]... Exits with 1 if the process ended or exceeded the goal of a scenario.
// Without cgroup v1 or root, no limit applies, and only the peak is compared.

interface Scenario {
  /** What is on the API server. */
  readonly fill: (server: FakeApiServer) => Promise<void> | void
  /** Happens after the first scan. */
  readonly act?: (server: FakeApiServer, sample: () => unknown) => Promise<void>
  /** Of the resident memory at the end. */
  readonly goalMb?: number
  readonly args?: readonly string[]
}

const core = { group: '', version: 'v1' } as const
const nodeCount = 5_000
const secretCount = 20_000
const requestCount = 20_000
const churnCount = 100_000

const scenarios: Readonly<Record<string, Scenario>> = {
  idle: { fill: (server) => putNodes(server, 5), act: () => pause(30_000), goalMb: 75 },
  large: {
    async fill(server) {
      await putNodes(server, nodeCount)
      putSecrets(server, secretCount)
      for (let index = 0; index < requestCount; index++) putRequest(server, index, index < 1_000)
    },
  },
  // Not Latin-1, so V8 needs two bytes for each character.
  'wide-configmaps': {
    fill: (server) => putConfigMaps(server, 2_000, 'wide', `\u4e2d${'x'.repeat(33_000)}`),
  },
  // Six bytes of JSON for each, and as large as etcd permits.
  'escaped-configmaps': {
    fill: (server) => putConfigMaps(server, 10, 'escaped', `\u4e2d${'\u0001'.repeat(1_450_000)}`),
  },
  'many-keys': {
    fill(server) {
      for (let index = 0; index < 20; index++)
        server.put(
          { ...core, resource: 'configmaps', namespace: 'keys' },
          {
            metadata: { name: `keys-${index}` },
            data: Object.fromEntries(Array.from({ length: 70_000 }, (_, key) => [`k${key}`, ''])),
          },
        )
    },
  },
  'large-requests': {
    fill(server) {
      const extra = { 'example.com/x': Array.from({ length: 100_000 }, (_, one) => `value-${one}`) }
      for (let index = 0; index < 20; index++)
        putServing(server, `large-${index}`, { username: 'anyone', extra } as object)
    },
  },
  churn: {
    fill: (server) => putNodes(server, 5),
    args: ['--watch-interval', '10s'],
    act: churn,
  },
}

async function measure(name: string, { fill, act, goalMb, args = [] }: Scenario): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-memory-'))
  const server = await startApiServer({})
  try {
    putCluster(server)
    server.put(
      { group: 'coordination.k8s.io', version: 'v1', resource: 'leases', namespace: 'kube-system' },
      { metadata: { name: 'kcert-controller' }, spec: { holderIdentity: '' } },
    )
    for (const namespace of ['default', 'kube-system'])
      server.put(
        { ...core, resource: 'configmaps', namespace },
        { metadata: { name: 'kube-root-ca.crt' }, data: { 'ca.crt': server.caPem } },
      )
    await fill(server)
    const began = performance.now()
    const controller = await Controller.start(server, folder, args)
    const samples: number[] = []
    const sample = (): unknown => samples.push(controller.residentMb)
    await controller.until('kcert_scan_failed{part="clustertrustbundles"}')
    sample()
    await act?.(server, sample)
    sample()
    const failed = await controller.failedParts()
    const { peakMb, groupPeakMiB, cpuSeconds, log } = controller
    const isAlive = await controller.stop()
    const isMet = isAlive && failed === '' && !((samples.at(-1) ?? 0) > (goalMb ?? 1_000))
    console.log(
      [
        `${name}: ${isMet ? 'ok' : 'FAILED'}, ${Math.round((performance.now() - began) / 1000)} s`,
        `resident ${samples.join(' ')} MB, peak ${peakMb} MB, cgroup ${groupPeakMiB ?? '-'} MiB of ${memoryLimit}, ${cpuSeconds} s of processor time`,
        ...(failed === '' ? [] : [`failed parts: ${failed}`]),
        ...(isMet ? [] : [`log: ${log.slice(-1_000)}`]),
      ].join('\n  '),
    )
    return isMet
  } finally {
    await server.close()
    rmSync(folder, { recursive: true })
  }
}

/** The process, in a cgroup of its own where that is possible. */
class Controller {
  readonly #child
  readonly #url: string
  readonly #group: string | undefined
  log = ''

  private constructor(kubeconfig: string, port: number, args: readonly string[], node: string) {
    const group = `/sys/fs/cgroup/memory/kcert-bench-${process.pid}`
    this.#group =
      process.getuid?.() === 0 && existsSync('/sys/fs/cgroup/memory/cgroup.procs') ? group : undefined
    if (this.#group !== undefined) {
      mkdirSync(this.#group, { recursive: true })
      writeFileSync(
        join(this.#group, 'memory.limit_in_bytes'),
        String(Number.parseInt(memoryLimit, 10) * 1024 * 1024),
      )
      writeFileSync(join(this.#group, 'memory.max_usage_in_bytes'), '0')
    }
    this.#url = `http://127.0.0.1:${port}/metrics`
    const enter = this.#group === undefined ? '' : `echo $$ >${this.#group}/cgroup.procs; `
    const line = ['controller', '--approve', 'builtin', '--watch', '--watch-secrets', ...args]
    this.#child = spawn(
      'sh',
      [
        ...['-c', `${enter}exec "$@"`, 'sh', node, resolve('bin/run.js'), ...line],
        ...['--kubeconfig', kubeconfig, '--listen', `127.0.0.1:${port}`],
      ],
      { env: { PATH: process.env.PATH, ...memoryEnvironment } },
    )
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.log += text
      })
  }

  static async start(server: FakeApiServer, folder: string, args: readonly string[]): Promise<Controller> {
    const kubeconfig = server.writeKubeconfig(join(folder, 'admin.conf'))
    // A copy that is not in the page cache, so that reading the program counts too, as in the first pod with Node.js on a node.
    const node = join(folder, 'node')
    copyFileSync(process.execPath, node)
    execFileSync('dd', [`if=${node}`, 'iflag=nocache', 'count=0', 'status=none'])
    return new Controller(kubeconfig, await freePort(), args, node)
  }

  get #isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  #status(field: string): number {
    if (!this.#isAlive) return Number.NaN
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8')
    return Math.round((Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) * 1024) / 1_000_000)
  }

  get residentMb(): number {
    return this.#status('VmRSS')
  }

  get peakMb(): number {
    return this.#status('VmHWM')
  }

  get groupPeakMiB(): number | undefined {
    if (this.#group === undefined) return undefined
    return Number(readFileSync(join(this.#group, 'memory.max_usage_in_bytes'), 'utf8')) >> 20
  }

  /** Hundredths of a second are the unit in /proc on Linux. */
  get cpuSeconds(): number {
    if (!this.#isAlive) return Number.NaN
    const [, rest = ''] = readFileSync(`/proc/${this.#child.pid}/stat`, 'utf8').split(') ')
    const fields = rest.split(' ')
    return Math.round((Number(fields[11]) + Number(fields[12])) / 100)
  }

  async metrics(): Promise<string> {
    return fetch(this.#url).then(
      (answer) => answer.text(),
      () => '',
    )
  }

  /** Returns when the metrics contain a text, or the process ended. */
  async until(text: string): Promise<void> {
    while (this.#isAlive && !(await this.metrics()).includes(text)) await pause(500)
  }

  async failedParts(): Promise<string> {
    return ((await this.metrics()).match(/(?<=kcert_scan_failed\{part=")[^"]+(?="\} 1)/g) ?? []).join(', ')
  }

  /** Returns whether the process was still alive. */
  async stop(): Promise<boolean> {
    const wasAlive = this.#isAlive
    if (wasAlive) {
      const ended = new Promise((done) => this.#child.once('close', done))
      this.#child.kill('SIGTERM')
      await ended
    }
    if (this.#group !== undefined) rmdirSync(this.#group)
    return wasAlive
  }
}

/** Stores Nodes of 17 KB, as with 50 images, whose kubelets serve on one port. */
async function putNodes(server: FakeApiServer, count: number): Promise<void> {
  const { certificate, key } = server.issue('system:node:node-0', ['system:nodes'], {
    usage: 'serverAuth',
    names: { ip: ['127.0.0.1'] },
  })
  const kubelet = createServer({ cert: certificate, key }, (socket) => socket.on('error', () => {}))
  kubelet.on('tlsClientError', () => {})
  await new Promise<void>((ready) => kubelet.listen(0, '127.0.0.1', 512, ready))
  kubelet.unref()
  const { port } = kubelet.address() as AddressInfo
  for (let index = 0; index < count; index++)
    server.put(
      { ...core, resource: 'nodes' },
      {
        metadata: { name: `worker-${index}`, labels: { 'kubernetes.io/hostname': `worker-${index}` } },
        status: {
          addresses: [
            { type: 'InternalIP', address: '127.0.0.1' },
            { type: 'Hostname', address: `worker-${index}` },
          ],
          daemonEndpoints: { kubeletEndpoint: { Port: port } },
          images: Array.from({ length: 50 }, (_, image) => ({
            names: [
              `registry.example.com/team-${image}/service@sha256:${String(index * 50 + image).padStart(64, '0')}`,
              `registry.example.com/team-${image}/service:v1.${index}.${image}${'-build'.repeat(20)}`,
            ],
            sizeBytes: 100_000_000 + image,
          })),
        },
      },
    )
}

/** Each Secret has a certificate of its own, and a CA. */
function putSecrets(server: FakeApiServer, count: number): void {
  const { key, certificate } = server.signingCa
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  for (let index = 0; index < count; index++) {
    const name = `web-${index}`
    const der = issueCertificate(
      {
        serialNumber: String(10_000_000 + index),
        subject: { commonName: name },
        issuer: certificate.subject,
        notBefore: new Date('2026-11-01T00:00:00Z'),
        notAfter: new Date(Date.parse('2027-11-01T00:00:00Z') + index * 1000),
        publicKey: key,
        keyUsage: ['digitalSignature'],
        extendedKeyUsage: ['serverAuth'],
        basicConstraints: { ca: false },
        subjectAltNames: { dns: [`${name}.example.com`] },
      },
      key,
    )
    server.put(
      { ...core, resource: 'secrets', namespace: `team-${index % 500}` },
      {
        metadata: { name },
        type: 'kubernetes.io/tls',
        data: {
          'tls.crt': base64(writePem('CERTIFICATE', der)),
          'tls.key': base64('not a key\n'.repeat(20)),
          'ca.crt': base64(server.caPem),
        },
      },
    )
  }
}

/** Stores a CSR of 6 KB, by one of a hundred users. */
function putRequest(server: FakeApiServer, index: number, isPending: boolean): void {
  putServing(
    server,
    `csr-${index}`,
    { username: `system:node:worker-${index % nodeCount}` },
    {
      labels: Object.fromEntries(
        Array.from({ length: 40 }, (_, one) => [`example.com/label-${one}`, 'x'.repeat(60)]),
      ),
      ...(!isPending && {
        status: {
          conditions: [{ type: 'Approved', status: 'True', lastUpdateTime: seconds(new Date()) }],
          certificate: Buffer.from(server.caPem).toString('base64'),
        },
      }),
    },
  )
}

function putConfigMaps(server: FakeApiServer, count: number, namespace: string, value: string): void {
  for (let index = 0; index < count; index++)
    server.put(
      { ...core, resource: 'configmaps', namespace },
      { metadata: { name: `${namespace}-${index}` }, data: { value } },
    )
}

/** Creates and deletes CSRs, Secrets and ConfigMaps. A compaction after each thousand keeps the fake server small, and ends watches with 410. */
async function churn(server: FakeApiServer, sample: () => unknown): Promise<void> {
  const kinds = ['secrets', 'configmaps'] as const
  for (let done = 0; done < churnCount; done += 1_000) {
    for (let index = done; index < done + 800; index++) putRequest(server, index, true)
    for (const resource of kinds)
      for (let index = done; index < done + 100; index++)
        server.put(
          { ...core, resource, namespace: 'churn' },
          {
            metadata: { name: `object-${index}` },
            data: { 'ca.crt': Buffer.from(server.caPem).toString('base64') },
          },
        )
    await pause(500)
    for (let index = done; index < done + 800; index++) server.remove(requestsKey, `csr-${index}`)
    for (const resource of kinds)
      for (let index = done; index < done + 100; index++)
        server.remove({ ...core, resource, namespace: 'churn' }, `object-${index}`)
    await pause(500)
    if (done % 10_000 === 0) {
      server.compact()
      sample()
    }
  }
  // Deleted requests leave the queue.
  await pause(20_000)
}

let failures = 0
const chosen = process.argv.slice(2)
for (const [name, scenario] of Object.entries(scenarios))
  if (chosen.length === 0 || chosen.includes(name)) failures += Number(!(await measure(name, scenario)))
process.exitCode = Number(failures > 0)
