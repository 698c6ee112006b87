import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import pMap from 'p-map'
import { shellNode } from '../../src/node/shell-node.ts'
import { NodeJobs } from '../../src/site/node-jobs.ts'
import { systemClock } from '../../src/system/clock.ts'
import { openWith } from '../contract/stage.ts'
import { pods, runs, startJobsCluster } from '../fakes/jobs-cluster.ts'

// Reaches many simulated nodes by Jobs: node test/bench/node-jobs.ts [NODES] [AT-ONCE] [PODS-PER-SECOND]. kcert runs in a process of
// its own. The API server, the controller of Jobs and the kubelets are the fake one of the tests, in real time: a pod starts after 2
// to 10 s, and every request to a node takes 0.2 s. The removal of a namespace takes no time in the fake.

const startMs = { least: 2_000, most: 10_000 }
const scriptMs = 200
const rounds = 3

export interface JobsFigures {
  readonly nodes: number
  readonly atOnce: number
  /** Seconds of the first round, in which the pods start, and of the others. */
  readonly roundSeconds: readonly number[]
  readonly openSeconds: number
  readonly closeSeconds: number
  /** Calls by verb and kind. */
  readonly calls: Readonly<Record<string, number>>
  readonly mostCallsPerSecond: number
  readonly mostConnections: number
  readonly mostStarting: number
  readonly mib: number
  /** Objects of the run that are left. */
  readonly left: number
}

/** `podsPerSecond`: how many pods the controller of Jobs creates in a second (default no limit). */
export async function jobsFigures(
  nodes: number,
  atOnce: number,
  podsPerSecond = Number.POSITIVE_INFINITY,
  delays: { readonly startMs: typeof startMs; readonly scriptMs: number } = { startMs, scriptMs },
): Promise<JobsFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-node-jobs-'))
  const names = Array.from({ length: nodes }, (_, index) => `node-${index}`)
  const cluster = await startJobsCluster(names)
  const { server } = cluster
  let count = 0
  let starting = 0
  let mostStarting = 0
  let nextMs = performance.now()
  cluster.status = () => ({ phase: 'Pending' })
  server.onChange(({ type, key, object }) => {
    if (type !== 'ADDED' || key.resource !== 'pods') return
    mostStarting = Math.max(mostStarting, ++starting)
    nextMs = Math.max(nextMs + 1_000 / podsPerSecond, performance.now())
    const { least, most } = delays.startMs
    const waitMs = nextMs - performance.now() + least + (((++count * 37) % 101) / 100) * (most - least)
    setTimeout(() => {
      starting--
      const key = pods(String(object.metadata.namespace))
      const pod = server.peek(key, object.metadata.name)
      if (pod !== undefined) server.put(key, { ...pod, status: runs })
    }, waitMs)
  })
  server.exec = () => nodeProgram(delays.scriptMs)
  let before = server.calls.length
  let mostCallsPerSecond = 0
  const sampling = setInterval(() => {
    mostCallsPerSecond = Math.max(mostCallsPerSecond, server.calls.length - before)
    before = server.calls.length
  }, 1_000)
  try {
    const kubeconfig = server.writeKubeconfig(join(folder, 'admin.conf'))
    const child = spawn(
      process.execPath,
      [fileURLToPath(import.meta.url), 'kcert', kubeconfig, `${nodes}`, `${atOnce}`],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    const exit = await new Promise((done, failed) => child.once('close', done).once('error', failed))
    if (exit !== 0) throw new Error(`kcert ended with ${exit}`)
    const calls: Record<string, number> = {}
    for (const { verb, resource, subresource } of server.calls) {
      const what = `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`
      calls[what] = (calls[what] ?? 0) + 1
    }
    const kinds = [
      { group: '', resource: 'namespaces' },
      { group: 'batch', resource: 'jobs' },
      { group: '', resource: 'pods' },
    ]
    const left = kinds.reduce((sum, kind) => sum + server.all({ version: 'v1', ...kind }).length, 0)
    const { mostConnections } = server
    return {
      nodes,
      atOnce,
      ...JSON.parse(text),
      calls,
      mostCallsPerSecond,
      mostConnections,
      mostStarting,
      left,
    }
  } finally {
    clearInterval(sampling)
    await server.close()
    rmSync(folder, { recursive: true })
  }
}

/** Returns a shell on a simulated node: it takes its time for each request, and knows only the time. */
function nodeProgram(answerMs: number): ChildProcessWithoutNullStreams {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const program = Object.assign(new EventEmitter(), { stdin, stdout, stderr })
  let input = Buffer.alloc(0)
  let mark = ''
  const answer = (id: string, line: string): void => {
    setTimeout(() => stdout.write(`@${mark} begin ${id}\n${line}\n@${mark} end ${id} 0\n`), answerMs)
  }
  stdin.on('data', (bytes: Buffer) => {
    input = Buffer.concat([input, bytes])
    for (let end = input.indexOf(10); end !== -1; end = input.indexOf(10)) {
      const words = input.toString('utf8', 0, end).split(' ')
      const length = Number(mark === '' ? words[0] : words[1]) || 0
      if (words[0] === 'bye') return void program.emit('close', 0, null)
      if (input.length < end + 1 + length) return
      const content = input.toString('utf8', end + 1, end + 1 + length)
      input = input.subarray(end + 1 + length)
      if (mark === '') {
        mark = /^K=(\S+)/.exec(content)?.[1] ?? ''
        answer('0', 'ready')
      } else answer(words[0] ?? '', `now ${Date.now() / 1000}`)
    }
  })
  stdin.once('end', () => program.emit('close', 0, null))
  return program as unknown as ChildProcessWithoutNullStreams
}

/** Reaches every node in each round, as an observation does. */
async function reachAll(kubeconfig: string, nodes: number, atOnce: number) {
  const cluster = await openWith(kubeconfig)
  const begun = performance.now()
  const seconds = (from: number): number => Math.round((performance.now() - from) / 100) / 10
  const jobs = await NodeJobs.open({ cluster, image: 'kcert:1', random: randomBytes, tell: () => {} })
  const openSeconds = seconds(begun)
  const reached = Array.from({ length: nodes }, (_, index) => {
    const name = `node-${index}`
    return shellNode({ name, transport: jobs.transport(name), clock: systemClock })
  })
  const roundSeconds: number[] = []
  for (let round = 0; round < rounds; round++) {
    const from = performance.now()
    await pMap(reached, (node) => node.clock({ timeoutMs: 120_000 }), { concurrency: atOnce })
    roundSeconds.push(seconds(from))
  }
  const from = performance.now()
  await Promise.all(reached.map((node) => node.close()))
  await jobs.close()
  cluster.close()
  const mib = Math.round(process.resourceUsage().maxRSS / 1024)
  return { openSeconds, roundSeconds, closeSeconds: seconds(from), mib }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , first = '5000', ...rest] = process.argv
  if (first === 'kcert') {
    const [kubeconfig = '', nodes, atOnce] = rest
    process.stdout.write(JSON.stringify(await reachAll(kubeconfig, Number(nodes), Number(atOnce))))
  } else {
    const [atOnce = '100', rate] = rest
    const figures = await jobsFigures(
      Number(first),
      Number(atOnce),
      rate === undefined ? undefined : Number(rate),
    )
    process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`)
  }
}
