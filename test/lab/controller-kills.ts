import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pMap from 'p-map'
import type { Cluster as Connection } from '../../src/cluster/cluster.ts'
import { openWith } from '../contract/stage.ts'
import { requestPem } from '../csr/made-requests.ts'
import { Daemon } from '../scripts/daemon.ts'
import { sleep, until } from './command.ts'
import { startFaultyProxy } from './faulty-proxy.ts'
import type { Cluster } from './fixture.ts'

// Two replicas of `kcert controller --approve` while the leader is killed and API servers restart, then one whose watch is silent.

const kills = 100
const requestsPerKill = 20
/** The duration of the Lease: longer than this, nobody approves. */
const longestTakeoverMs = 15_000
const longestSilenceMs = 60_000

const signerName = 'kubernetes.io/kube-apiserver-client'
const label = 'lab.local/controller-kills'
const policy = `apiVersion: kcert/v1
kind: ApprovalPolicy
rules:
- name: lab
  decision: approve
  signerNames: [${signerName}]
  usernames: [kubernetes-admin]
  commonNames: ["approve-*"]
  usages: [client auth]
`
const leaseOfController = {
  group: 'coordination.k8s.io',
  version: 'v1',
  resource: 'leases',
  namespace: 'kube-system',
  name: 'kcert-controller',
} as const

/**
 * Half of the requests match the policy. Each of these is approved once, and none of the others. Returns the evidence as text, and
 * throws when it is not so, or a takeover took too long.
 */
export async function killedControllers(cluster: Cluster): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-controller-'))
  const connection = await openWith(cluster.kubeconfig, 10_000)
  writeFileSync(join(folder, 'policy.yaml'), policy, { mode: 0o600 })
  let port = 19_465
  const start = (kubeconfig: string): Daemon =>
    new Daemon(
      [
        'controller',
        '--approve',
        'policy.yaml',
        '--listen',
        `127.0.0.1:${port++}`,
        '--kubeconfig',
        kubeconfig,
      ],
      folder,
    )
  try {
    const takeoversMs = await killLeaders(cluster, connection, () => start(cluster.kubeconfig))
    const found = await countResults(connection)
    Daemon.killAll()
    const silentMs = await silenceWatch(cluster, connection, folder, start)
    const ordered = takeoversMs.toSorted((a, b) => a - b)
    const longestMs = ordered.at(-1)!
    const text = [
      `requests                   ${kills * requestsPerKill}, half of them to approve`,
      `leaders killed             ${takeoversMs.length}, ${apiServersOf(cluster).length} API servers restarted meanwhile`,
      `approved                   ${found.approved} of ${found.toApprove}, twice ${found.twice}`,
      `approved against policy    ${found.wrong}`,
      `takeover, median           ${seconds(ordered[Math.floor(ordered.length / 2)]!)}`,
      `takeover, longest          ${seconds(longestMs)}`,
      `silent watch noticed after ${seconds(silentMs)}`,
      '',
    ].join('\n')
    const isComplete = found.toApprove === (kills * requestsPerKill) / 2 && found.approved === found.toApprove
    const isInTime = longestMs <= longestTakeoverMs && silentMs <= longestSilenceMs
    if (!isComplete || found.wrong + found.twice > 0 || !isInTime) throw new Error(text)
    return text
  } finally {
    Daemon.killAll()
    connection.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns how long it took after each kill until another replica held the Lease, in milliseconds. */
async function killLeaders(
  cluster: Cluster,
  connection: Connection,
  start: () => Daemon,
): Promise<readonly number[]> {
  const replicas = [start(), start()]
  const takeoversMs: number[] = []
  const apiServers = apiServersOf(cluster)
  for (let kill = 1; kill <= kills; kill++) {
    const creating = pMap(
      Array.from({ length: requestsPerKill }, (_, index) => `${kill}-${index}`),
      (id, index) => create(connection, index % 2 === 0 ? `approve-${id}` : `leave-${id}`),
      { concurrency: 4 },
    )
    // Every third of the time, one API server restarts while replicas change.
    const node = apiServers[Math.floor((kill * apiServers.length) / kills)]
    const isDue =
      Math.floor(((kill - 1) * apiServers.length) / kills) < Math.floor((kill * apiServers.length) / kills)
    if (isDue) await cluster.onNode(node ?? apiServers[0]!, ['pkill', '-TERM', '-x', 'kube-apiserver'])
    await sleep(Math.random() * 2_000)
    let leader = -1
    await until('a replica leads', 120_000, async () => {
      const holder = await holderOf(connection)
      leader = replicas.findIndex((replica) => holder !== '' && identityOf(replica) === holder)
      return leader !== -1
    })
    const holder = identityOf(replicas[leader]!)
    await replicas[leader]!.kill('SIGKILL')
    const killedAt = performance.now()
    replicas[leader] = start()
    await until('another replica leads', 120_000, async () => {
      const now = await holderOf(connection)
      return now !== '' && now !== holder
    })
    takeoversMs.push(performance.now() - killedAt)
    await creating
  }
  return takeoversMs
}

/** Creates a request. Repeats the call while API servers restart. */
async function create(connection: Connection, name: string): Promise<void> {
  await until(`${name} exists`, 120_000, async () => {
    if ((await connection.requests.get(name)) !== undefined) return true
    const request = Buffer.from(requestPem({ subject: { commonName: name } })).toString('base64')
    const spec = { request, signerName, usages: ['client auth'] }
    await connection.requests.create({ metadata: { name, labels: { [label]: 'yes' } }, spec })
    return true
  })
}

/** Returns the results, after all requests that match the policy have one. */
async function countResults(connection: Connection) {
  let found = { toApprove: 0, approved: 0, twice: 0, wrong: 0 }
  const count = async (): Promise<boolean> => {
    found = { toApprove: 0, approved: 0, twice: 0, wrong: 0 }
    for await (const { metadata, status } of connection.requests.list({ labelSelector: label })) {
      const times = (status?.conditions ?? []).filter(({ type }) => type === 'Approved').length
      if (metadata.name?.startsWith('approve-')) {
        found.toApprove++
        found.approved += Math.min(1, times)
        found.twice += times > 1 ? 1 : 0
      } else if ((status?.conditions ?? []).length > 0) found.wrong++
    }
    return found.approved === found.toApprove
  }
  await until('all are approved', 300_000, count, 2_000).catch(() => {})
  return found
}

/** Returns how long a request stays pending whose event a silent watch withholds, in milliseconds. */
async function silenceWatch(
  cluster: Cluster,
  connection: Connection,
  folder: string,
  start: (kubeconfig: string) => Daemon,
): Promise<number> {
  const proxy = await startFaultyProxy(cluster.kubeconfig, cluster.spec.keys)
  try {
    const way = proxy.way(join(folder, 'silent.conf'))
    start(way.kubeconfig)
    await approvedMs(connection, 'approve-before-silence')
    way.silence()
    return await approvedMs(connection, 'approve-in-silence')
  } finally {
    await proxy.close()
  }
}

async function approvedMs(connection: Connection, name: string): Promise<number> {
  await create(connection, name)
  const began = performance.now()
  await until(`${name} is approved`, 180_000, async () => {
    const conditions = (await connection.requests.get(name))?.status?.conditions ?? []
    return conditions.some(({ type }) => type === 'Approved')
  })
  return performance.now() - began
}

async function holderOf(connection: Connection): Promise<string> {
  const lease = (await connection.objects.get(leaseOfController)) as
    | { readonly spec?: { readonly holderIdentity?: string } }
    | undefined
  return lease?.spec?.holderIdentity ?? ''
}

/** Returns the identity that a replica logged when it started. */
function identityOf({ stderr }: Daemon): string | undefined {
  return /started identity="([^"]+)"/.exec(stderr)?.[1]
}

function apiServersOf(cluster: Cluster): string[] {
  return cluster.nodes().flatMap(({ name, role }) => (role === 'control-plane' ? [name] : []))
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
