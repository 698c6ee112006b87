import { X509Certificate } from 'node:crypto'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { CertificateRenewal } from '../../src/ca/renewal-report.ts'
import { ageCertificates, failPower } from './aging.ts'
import { type CommandResult, run, sleep } from './command.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'
import { labInventory } from './rotation-site.ts'

// Three control planes whose leaves have all expired, and one command. Then, in a healthy cluster, etcd's certificates again
// without losing quorum.

const program = [process.execPath, resolve('bin/run.js')]

describeOnCluster('renew with three control planes', () => {
  let cluster: Cluster & { close(): Promise<void> }
  let folder: string
  const kcert = (...args: string[]): Promise<CommandResult> =>
    run([...program, ...args], {
      ...{ cwd: folder, mayFail: true, timeoutMs: 1_200_000 },
      env: { PATH: process.env.PATH!, HOME: folder },
    })

  beforeAll(async () => {
    cluster = await openCluster({ controlPlanes: 3, workers: 0 })
    folder = mkdtempSync(join(tmpdir(), 'kcert-renew-three-'))
    writeFileSync(join(folder, 'kcert.yaml'), JSON.stringify(labInventory(cluster)))
  })
  afterAll(async () => {
    if (folder) rmSync(folder, { recursive: true })
    await cluster?.close()
  })

  const names = (): string[] => cluster.nodes().map(({ name }) => name)

  async function renew(...args: string[]): Promise<{ report: CertificateRenewal; said: string[] }> {
    const begun = performance.now()
    const done = await kcert('renew', ...args, '--all-nodes', '--yes', '-o', 'json')
    process.stderr.write(`renew ${args.join(' ')}: ${((performance.now() - begun) / 1000).toFixed(0)} s\n`)
    expect(done.code, done.stdout + done.stderr).toBe(0)
    const report = JSON.parse(done.stdout) as CertificateRenewal
    expect(report.outcome).toBe('renewed')
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([])
    return { report, said: done.stderr.split('\n') }
  }

  /** Returns the members that report themselves as healthy, which requires a quorum. */
  async function healthyMembers(): Promise<string[]> {
    const ask = ['curl', '-s', '-m', '2', 'http://127.0.0.1:2381/health']
    const answers = await Promise.all(
      names().map(async (name) => ({ name, ...(await cluster.onNode(name, ask, { mayFail: true })) })),
    )
    return answers.flatMap(({ name, stdout }) => (stdout.includes('"health":"true"') ? [name] : []))
  }

  test('kcert renew --all --all-nodes repairs all three control planes when every leaf has expired and no API server runs', async () => {
    ageCertificates(cluster, 'leaves')
    await failPower(cluster)
    const asked = ['get', '--raw', '/readyz', '--request-timeout=3s']
    expect((await cluster.kubectl(asked, { mayFail: true })).code).not.toBe(0)

    const { report, said } = await renew('--all')
    expect(new Set(report.certificates.map(({ node }) => node))).toEqual(new Set(names()))
    // All etcd members before any API server, and each program one node after another.
    const order = said.flatMap((line) => /^restarting (\S+) on (\S+)$/.exec(line)?.slice(1).join(' ') ?? [])
    const programs = order.map((one) => one.split(' ')[0])
    const kinds = ['kubelet', 'etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']
    expect(programs).toEqual(kinds.flatMap((kind) => names().map(() => kind)))

    copyFileSync(cluster.hostPath('cp1', '/etc/kubernetes/admin.conf'), cluster.kubeconfig)
    await cluster.kubectl(['wait', 'node', '--all', '--for=condition=Ready', '--timeout=300s'])
    expect(await healthyMembers()).toEqual(names())
    for (const name of names()) {
      const pem = readFileSync(cluster.hostPath(name, '/etc/kubernetes/pki/etcd/peer.crt'))
      expect(new X509Certificate(pem).validToDate.getTime(), name).toBeGreaterThan(Date.now())
    }
    const again = await kcert('renew', '--all', '--all-nodes', '--yes')
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('nothing is due')])
  })

  test('in a healthy cluster, two of three members stay healthy when etcd is renewed', async () => {
    const observed: { readonly atMs: number; readonly healthy: number }[] = []
    const watch = { isOver: false }
    const watching = (async () => {
      while (!watch.isOver) {
        observed.push({ healthy: (await healthyMembers()).length, atMs: performance.now() })
        await sleep(200)
      }
    })()
    try {
      await renew('etcd-server', 'etcd-peer')
    } finally {
      watch.isOver = true
      await watching
    }
    let lastWellMs = observed[0]!.atMs
    let longestMs = 0
    for (const { atMs, healthy } of observed) {
      if (healthy >= 2) lastWellMs = atMs
      longestMs = Math.max(longestMs, atMs - lastWellMs)
    }
    process.stderr.write(`${observed.length} looks; longest without two: ${longestMs.toFixed(0)} ms\n`)
    expect(observed.length).toBeGreaterThan(20)
    expect(observed.some(({ healthy }) => healthy === 2)).toBe(true)
    // During an election no member is healthy. A lost quorum lasts as long as a pod's start.
    expect(longestMs).toBeLessThan(5_000)
    expect(await healthyMembers()).toEqual(names())
  })
})
