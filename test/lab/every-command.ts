import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { ClusterInfoUpdate } from '../../src/bootstrap/cluster-info-report.ts'
import type { BootstrapProgress } from '../../src/bootstrap/progress-report.ts'
import type { CertificateRenewal } from '../../src/ca/renewal-report.ts'
import type { InspectionReport } from '../../src/inspection/report.ts'
import type { ForecastReport } from '../../src/kubelet/forecast-report.ts'
import type { ProbeReport } from '../../src/probe/report.ts'
import { run, until } from './command.ts'
import type { Cluster } from './fixture.ts'
import { LabError } from './lab-error.ts'
import { lackingNeeds } from './needs.ts'
import { labInventory } from './rotation-site.ts'

// The commands other than rotate-ca, once each on a kubeadm cluster. Their exit code is 0, and one statement of their output is
// checked.

/** Joins with kcert's token, and is removed again. */
const joining = 'w3'

/** Runs every check and returns a line with those that pass. Throws with all that fail. */
export async function tryEveryCommand(cluster: Cluster): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-commands-'))
  try {
    const inventory = labInventory(cluster)
    writeFileSync(join(folder, 'kcert.yaml'), JSON.stringify(inventory))
    const held: string[] = []
    const failed: string[] = []
    for (const [name, check] of Object.entries(checks)) {
      try {
        await check(cluster, folder)
        held.push(name)
      } catch (error) {
        failed.push(`${name}: ${(error as Error).message}`)
      }
    }
    if (failed.length > 0)
      throw new LabError(`other commands: ${failed.length} of ${held.length + failed.length} failed`, {
        why: failed.join('\n'),
      })
    return `other commands             ${held.join(', ')}\n`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const checks: Readonly<Record<string, (cluster: Cluster, folder: string) => Promise<void>>> = {
  async needs(cluster) {
    isTrue([], await lackingNeeds(cluster))
  },
  async 'token create and join'(cluster, folder) {
    await kcert(cluster, folder, 'token', 'create', '--ttl', '30m', '-o', 'token', '--out', 'token')
    await until('the token is signed for', 180_000, async () => {
      await kcert(cluster, folder, 'token', 'check', '--token-file', 'token')
      return true
    })
    await cluster.join(joining, { token: readFileSync(join(folder, 'token'), 'utf8').trim() })
    isTrue(
      true,
      cluster.nodes().some(({ name }) => name === joining),
    )
  },
  async 'bootstrap check'(cluster, folder) {
    await until(`${joining} has joined`, 300_000, async () => {
      const { verdict } = await answer<BootstrapProgress>(cluster, folder, 'bootstrap', 'check', joining)
      return verdict === 'joined'
    })
    await cluster.remove(joining)
  },
  async csr(cluster, folder) {
    const create = [
      '--user',
      'ann',
      '--org',
      'dev',
      '--key-out',
      'ann.pem',
      '-o',
      'manifest',
      '--out',
      'ann.yaml',
    ]
    await kcert(cluster, folder, 'csr', 'create', ...create)
    await kcert(cluster, folder, 'csr', 'submit', 'ann.yaml')
    await kcert(cluster, folder, 'csr', 'approve', 'ann', '--yes')
    await kcert(
      cluster,
      folder,
      'csr',
      'fetch',
      'ann',
      '--wait',
      '2m',
      '--key',
      'ann.pem',
      '--out',
      'ann.crt',
    )
    isTrue('O=dev\nCN=ann', new X509Certificate(readFileSync(join(folder, 'ann.crt'))).subject)
  },
  async 'kubelet forecast'(cluster, folder) {
    const { nodes, findings } = await answer<ForecastReport>(cluster, folder, 'kubelet', 'forecast')
    isTrue(namesOf(cluster), nodes.map(({ name }) => name).sort())
    isTrue(
      [],
      findings.filter(({ id }) => id === 'not-read'),
    )
  },
  async renew(cluster, folder) {
    const renew = ['renew', 'apiserver', '--node', 'cp1', '--inventory', 'kcert.yaml']
    const planned = await answer<CertificateRenewal>(cluster, folder, ...renew, '--dry-run')
    isTrue('planned', planned.outcome)
    const file = cluster.hostPath('cp1', '/etc/kubernetes/pki/apiserver.crt')
    const before = readFileSync(file, 'utf8')
    const { outcome, checks } = await answer<CertificateRenewal>(cluster, folder, ...renew, '--yes')
    isTrue(['renewed', []], [outcome, checks.filter(({ ok }) => !ok)])
    isTrue(false, readFileSync(file, 'utf8') === before)
  },
  async 'probe --all'(cluster, folder) {
    const { endpoints } = await answer<ProbeReport>(cluster, folder, 'probe', '--all')
    const names = endpoints.map(({ name }) => name)
    const kubelets = namesOf(cluster).map((name) => `kubelet ${name}`)
    isTrue(
      [],
      ['kube-apiserver cp1', 'etcd cp1', ...kubelets].filter((name) => !names.includes(name)),
    )
  },
  async 'cluster-info update'(cluster, folder) {
    await kcert(
      cluster,
      folder,
      'ca',
      'init',
      '--cn',
      'kubernetes',
      '--out',
      'new.crt',
      '--key-out',
      'new.key',
    )
    const both = ['--ca', 'new.crt', '--ca', cluster.hostPath('cp1', '/etc/kubernetes/pki/ca.crt')]
    const update = ['cluster-info', 'update', ...both, '--dry-run']
    isTrue('would-update', (await answer<ClusterInfoUpdate>(cluster, folder, ...update)).outcome)
  },
  async 'inspect --cluster'(cluster, folder) {
    const { certificates } = await answer<InspectionReport>(cluster, folder, 'inspect', '--cluster')
    isTrue(
      true,
      certificates.some(({ source }) => source === 'configmap kube-public/cluster-info'),
    )
  },
}

/** Runs kcert as the administrator and returns its output. Throws unless its exit code is 0. */
async function kcert({ kubeconfig }: Cluster, folder: string, ...args: string[]): Promise<string> {
  const { stdout } = await run([process.execPath, resolve('bin/run.js'), ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', HOME: folder, KUBECONFIG: kubeconfig },
    timeoutMs: 600_000,
  })
  return stdout
}

async function answer<Report>(cluster: Cluster, folder: string, ...args: string[]): Promise<Report> {
  return JSON.parse(await kcert(cluster, folder, ...args, '-o', 'json')) as Report
}

function namesOf(cluster: Cluster): string[] {
  return cluster
    .nodes()
    .map(({ name }) => name)
    .sort()
}

function isTrue(expected: unknown, found: unknown): void {
  if (!isDeepStrictEqual(expected, found))
    throw new LabError(`expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`)
}
