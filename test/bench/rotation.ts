import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { RotationSession } from '../../src/app/rotate-ca/session.ts'
import { renderJson } from '../../src/output/json.ts'
import { noPaint } from '../../src/output/paint.ts'
import { renderPlan } from '../../src/output/rotation/plan.ts'
import { renderStatus } from '../../src/output/rotation/status.ts'
import { playbook } from '../../src/rotation/playbook.ts'
import { SimulatedCluster } from '../fakes/simulated-cluster.ts'
import { SimulatedClients } from '../fakes/simulated-cluster-clients.ts'
import { SimulatedExecutor, SimulatedJournal, SimulatedObserver } from '../fakes/simulated-cluster-ports.ts'

// `kcert rotate-ca plan` and `status` on simulated clusters of several sizes, each in a separate process: from the observation to
// the text and the JSON. The largest resident set includes the simulated cluster itself.

const sizes = [50, 500, 5_000]
const targets = { plan: { seconds: 20, mib: 1_024 }, status: { seconds: 10, mib: 1_024 } } as const

type Work = keyof typeof targets

interface Row {
  readonly work: Work
  readonly nodes: number
  readonly pods: number
  readonly clusterMib: number
  readonly seconds: number
  readonly cpuSeconds: number
  readonly mib: number
}

/** Returns the table of plan and status by size, and whether a target is missed. */
export function rotationTable(): { readonly text: string; readonly isMissed: boolean } {
  const works = Object.keys(targets) as Work[]
  const rows = sizes.flatMap((nodes) => works.map((work) => measured(work, nodes)))
  const lines = rows.map(
    ({ work, nodes, pods, seconds, cpuSeconds, mib, clusterMib }) =>
      `| rotate-ca ${work} | ${nodes} | ${pods} | ${seconds.toFixed(1)} | ${cpuSeconds.toFixed(1)} | ${mib} | ${clusterMib} |`,
  )
  const missed = rows.filter(
    ({ work, seconds, mib }) => seconds > targets[work].seconds || mib > targets[work].mib,
  )
  const verdict =
    missed.length === 0
      ? 'met'
      : `missed (${missed.map(({ work, nodes }) => `${work} at ${nodes}`).join(', ')})`
  return {
    text: [
      '### Planning a rotation, by the size of the cluster (simulated)',
      '',
      '| | nodes | pods | s | CPU s | peak MiB | of this before kcert starts |',
      '|---|---|---|---|---|---|---|',
      ...lines,
      '',
      `Target: plan within 20 s, status within 10 s, each within 1 GiB: ${verdict}.`,
    ].join('\n'),
    isMissed: missed.length > 0,
  }
}

function measured(work: Work, nodes: number): Row {
  const script = fileURLToPath(import.meta.url)
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, work, String(nodes)], {
    encoding: 'utf8',
    maxBuffer: 1 << 20,
  })
  if (status !== 0) throw new Error(`${work} at ${nodes} nodes failed: ${stderr.slice(0, 500)}`)
  return JSON.parse(stdout) as Row
}

async function measure(work: Work, nodes: number): Promise<Row> {
  const cluster = new SimulatedCluster({
    controlPlanes: 3,
    workers: nodes - 3,
    namespaces: Math.ceil(nodes * 0.4),
    deployments: { count: nodes * 2, podsEach: 10 },
  })
  const { time } = cluster
  const clusterMib = mibNow()
  const began = { wall: performance.now(), cpu: process.cpuUsage() }
  const session = await RotationSession.open(
    {
      observer: new SimulatedObserver(cluster),
      executor: new SimulatedExecutor(cluster, new SimulatedClients(cluster)),
      journal: new SimulatedJournal(),
      pace: { now: time.now, sleep: time.sleep },
    },
    { playbook, settings: {}, yes: false, pauseBetween: undefined, rollEveryMs: 0 },
    {
      choose: undefined,
      type: undefined,
      showPlan: () => {},
      tell: () => {},
      note: () => {},
      interrupted: new AbortController().signal,
    },
  )
  const view = { width: 120, paint: noPaint }
  let shown = 0
  if (work === 'plan') {
    const plan = await time.until(session.plan())
    shown = renderPlan(plan, view).length + renderJson(plan).length
  } else {
    const status = await time.until(session.status())
    shown = renderStatus(status, view).length + renderJson(status).length
  }
  if (shown === 0) throw new Error('nothing was shown')
  const { user, system } = process.cpuUsage(began.cpu)
  return {
    work,
    nodes,
    pods: cluster.pods.size,
    clusterMib,
    seconds: (performance.now() - began.wall) / 1_000,
    cpuSeconds: (user + system) / 1e6,
    mib: Math.round(process.resourceUsage().maxRSS / 1024),
  }
}

function mibNow(): number {
  return Math.round(process.memoryUsage.rss() / 2 ** 20)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , work, nodes] = process.argv
  process.stdout.write(JSON.stringify(await measure(work as Work, Number(nodes))))
}
