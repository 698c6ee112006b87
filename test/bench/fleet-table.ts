import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/system/clock.ts'
import { paths, readRecord } from '../lab/state.ts'
import { type ManyRequests, manyRequests, mostConnections } from './many-requests.ts'
import { openBenchCluster } from './on-cluster.ts'

const fleetOf = 5_000

/** Returns the table of a fleet on the running lab. Without a lab, prints the reason and returns undefined. */
export async function fleetTable(folder: string, machine: string): Promise<string | undefined> {
  const record = readRecord()
  if (record?.phase !== 'ready') {
    process.stderr.write(
      'a fleet of requests is left out: it needs a lab (npm run lab -- up --workers 1)\n\n',
    )
    return undefined
  }
  const at = join(folder, 'fleet')
  mkdirSync(at)
  const { kubeconfig } = paths
  const cluster = await openBenchCluster(kubeconfig)
  const tell = (line: string): void => void process.stderr.write(`${line}\n`)
  try {
    const done = await manyRequests({
      kubeconfig,
      cluster,
      count: fleetOf,
      folder: at,
      now: systemClock(),
      tell,
    })
    const { controlPlanes, workers } = record.spec
    return manyRequestsTable(done, `${machine} The cluster was the lab's, ${controlPlanes}+${workers}.`)
  } finally {
    cluster.close()
  }
}

/** Title of the table in docs/benchmarks.md. */
export const manyRequestsTitle =
  '### A fleet of requests sent, approved, signed and fetched on a real API server'

export function manyRequestsTable({ count, steps }: ManyRequests, where: string): string {
  const rows = steps.map(({ name, count, seconds, connections, mostAtOnce, peakMiB }) => {
    const cells = [connections, mostAtOnce, peakMiB?.toFixed(0)].map((cell) => cell ?? '')
    const own = connections === undefined ? name : `kcert ${name}`
    const perSecond = (count / seconds).toFixed(1)
    return `| ${own} | ${count.toLocaleString('en')} | ${seconds.toFixed(1)} | ${perSecond} | ${cells.join(' | ')} |`
  })
  const most = Math.max(...steps.map(({ mostAtOnce = 0 }) => mostAtOnce))
  return `${manyRequestsTitle}

${where}

| | requests | seconds | requests a second | connections | most at a time | peak MiB |
|---|---|---|---|---|---|---|
${rows.join('\n')}

${count.toLocaleString('en')} requests, each with its own key: half for a local CA, and half for kube-controller-manager, whose clients send at most 20 calls
a second by default. Every certificate was then compared with the name and key of its request: lost 0.

Target: at most ${mostConnections} connections at a time: met (${most}).`
}
