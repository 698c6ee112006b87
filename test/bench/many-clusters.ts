import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { startFleet } from '../fakes/fleet-servers.ts'

// `npm run bench:fleet`: kcert fleet inspect on 500 small API servers, of which 50 are hostile (test/fakes/fleet-servers.md). The limits are
// 60 s and 300 MiB on a quiet machine. No certificate may be attributed to another cluster, and no token may reach another server.

const [count = 500, hostile = 50] = process.argv
  .slice(2)
  .filter((word) => /^\d+$/.test(word))
  .map(Number)
const flags = process.argv.slice(2).filter((word) => word.startsWith('--'))
const mostSeconds = 60
const mostMib = 300

interface Line {
  readonly kind: string
  readonly cluster: string
  readonly status: string
  readonly report?: {
    readonly certificates: readonly {
      readonly subject: { readonly text: string }
      readonly issuer: { readonly text: string }
    }[]
  }
  readonly notRead: readonly { readonly cluster: string }[]
}

const folder = mkdtempSync(join(tmpdir(), 'kcert-bench-fleet-'))
const servers = await startFleet(count, hostile)
for (const server of servers) server.writeKubeconfig(folder)
const byName = new Map(servers.map((server) => [server.name, server]))
const started = performance.now()
const child = spawn(
  process.execPath,
  [resolve('bin/run.js'), 'fleet', 'inspect', folder, '-o', 'json', ...flags],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, HOME: folder },
  },
)
let peakKib = 0
let ticks = 0
const sampling = setInterval(() => {
  try {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
    peakKib = Math.max(peakKib, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0))
    const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    ticks = Number(fields[11]) + Number(fields[12])
  } catch {
    // The program has ended.
  }
}, 100)

let wrong = 0
const statuses = new Map<string, number>()
const seen = new Set<string>()
let notRead: string[] = []
let firstMs: number | undefined
for await (const text of createInterface({ input: child.stdout })) {
  const line = JSON.parse(text) as Line
  firstMs ??= performance.now() - started
  if (line.kind === 'FleetSummary') {
    notRead = line.notRead.map(({ cluster }) => cluster)
    continue
  }
  const server = byName.get(line.cluster)
  seen.add(line.cluster)
  const key = `${server?.kind} ${line.status}`
  statuses.set(key, (statuses.get(key) ?? 0) + 1)
  const certificates = line.report?.certificates ?? []
  for (const { issuer } of certificates) if (issuer.text !== `CN=ca-${line.cluster}`) wrong++
  const isFound = certificates.some(({ subject }) => subject.text === `CN=${line.cluster}`)
  if (server?.kind === 'good' && !(line.status === 'ok' && isFound)) wrong++
}
const exit = await new Promise<number | null>((done) => {
  if (child.exitCode === null) child.once('close', done)
  else done(child.exitCode)
})
clearInterval(sampling)
const seconds = (performance.now() - started) / 1000
const expected = servers.filter(({ kind }) => kind !== 'good').map(({ name }) => name)
const foreign = servers.reduce((sum, { foreignTokens }) => sum + foreignTokens, 0)
const isNamed = JSON.stringify(notRead.sort()) === JSON.stringify(expected)
const mib = peakKib / 1024
process.stdout.write(`${count} API servers, ${hostile} hostile
wall ${seconds.toFixed(1)} s (at most ${mostSeconds}), CPU ${(ticks / 100).toFixed(1)} s, first line after ${((firstMs ?? 0) / 1000).toFixed(1)} s
peak resident memory ${mib.toFixed(0)} MiB (at most ${mostMib})
wrong attributions ${wrong}, clusters missing ${count - seen.size}, requests with another cluster's token ${foreign}
clusters without a complete result named: ${isNamed ? 'all, and no other' : 'NO'}; exit code ${exit}
${[...statuses]
  .map(([key, number]) => `  ${key}: ${number}`)
  .sort()
  .join('\n')}
`)
for (const server of servers) server.close()
rmSync(folder, { recursive: true })
const isGood = wrong === 0 && foreign === 0 && seen.size === count && isNamed && exit === 4
process.exitCode = isGood && seconds <= mostSeconds && mib <= mostMib ? 0 : 1
