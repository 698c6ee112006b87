import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pMap from 'p-map'
import type { Cluster } from '../../src/cluster/cluster.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createRequest } from '../../src/x509/issuing.ts'
import { generatePrivateKey } from '../../src/x509/new-key.ts'
import { writePem } from '../../src/x509/pem.ts'
import { paths, readRecord } from '../lab/state.ts'
import { countingProxy } from './counting-proxy.ts'
import { openBenchCluster, removeRequests } from './on-cluster.ts'
import { peer } from './peers.ts'
import { requestFolder } from './requests.ts'

// Approval and download on the API server of a running lab, with kcert and with kubectl. An approved request cannot be approved
// again, so each row has its own requests: rows are rates, not times. All rows are measured twice, and the better rate counts,
// because other load on a shared machine says nothing about the program.

const many = 2_000
/** kubectl takes minutes for thousands: its client limits itself to 5 calls a second after the first 10. */
const someAtOnce = 100
const rounds = 2
const someInALoop = 60
const leastTimesFaster = 10

interface Row {
  readonly name: string
  readonly count: number
  readonly seconds: number
  readonly connections: number
}

interface Contender {
  readonly name: string
  readonly count: number
  /** Returns the commands to run in sequence. */
  readonly commands: (names: readonly string[], kubeconfig: string) => string[][]
  /** Continues with the results of the previous row. */
  readonly goesOn?: boolean
}

/** Returns the table, and whether the target is missed. Without a running lab, prints the reason and returns undefined. */
export async function approveTable(folder: string): Promise<{ text: string; isMissed: boolean } | undefined> {
  const kubectl = peer('kubectl')
  if (readRecord()?.phase !== 'ready' || kubectl === undefined) {
    process.stderr.write(
      'approving on an API server is left out: it needs a lab (npm run lab -- up) and kubectl (npm run bench:peers)\n\n',
    )
    return undefined
  }
  const at = join(folder, 'approve')
  mkdirSync(at)
  const proxy = await countingProxy(paths.kubeconfig, at)
  const cluster = await openBenchCluster(paths.kubeconfig)
  try {
    const policy = join(at, 'policy.yaml')
    writeFileSync(policy, policyText)
    const best = new Map<string, Row>()
    let all: string[] = []
    const measured = Array.from({ length: rounds }, (_, round) =>
      contenders(kubectl, policy, join(at, String(round))),
    ).flat()
    for (const contender of measured) {
      if (contender.goesOn !== true) {
        await removeRequests(cluster, all)
        all = await makeRequests(cluster, contender.count)
      }
      const names = all.slice(0, contender.count)
      const commands = contender.commands(names, proxy.kubeconfig)
      const before = proxy.connections()
      const started = performance.now()
      for (const command of commands) await run(command)
      const seconds = (performance.now() - started) / 1000
      const connections = proxy.connections() - before
      await expectApproved(cluster, names)
      const row = { name: contender.name, count: names.length, seconds, connections }
      if (rate(row) > rate(best.get(row.name))) best.set(row.name, row)
      process.stderr.write(`${contender.name}: ${(names.length / seconds).toFixed(1)}/s\n`)
    }
    await removeRequests(cluster, all)
    return tableOf([...best.values()])
  } finally {
    cluster.close()
    proxy.close()
  }
}

const signerName = 'example.com/bench'
const policyText = `apiVersion: kcert/v1
kind: ApprovalPolicy
rules:
- name: bench
  decision: approve
  signerNames: [${signerName}]
  usernames: [kubernetes-admin]
  commonNames: ["bench-*"]
  usages: [client auth]
`

function contenders(kubectl: string, policy: string, folder: string): readonly Contender[] {
  const certificate = [kubectl, 'certificate', 'approve']
  const { ca, caKey } = requestFolder(join(folder, 'ca'), 0, systemClock())
  const issuanceLog = join(folder, 'issuance-log.jsonl')
  const pair = ['--ca', ca, '--ca-key', caKey, '--issuance-log', issuanceLog]
  const program = [process.execPath, 'bin/run.js']
  const fetch = (config: string, into: string): string[] => [
    ...[...program, 'csr', 'fetch', '--kubeconfig', config, '-o', 'json'],
    ...['--ca', ca, '--out-dir', join(folder, into)],
  ]
  return [
    {
      name: 'kcert csr approve NAME…',
      count: many,
      commands: (names, config) => [
        [...program, 'csr', 'approve', '--kubeconfig', config, '-o', 'json', ...names],
      ],
    },
    {
      name: 'kcert ca sign --csr-signer NAME, signed and uploaded',
      count: many,
      goesOn: true,
      commands: (_, config) => [
        [...program, 'ca', 'sign', '--kubeconfig', config, '-o', 'json', ...pair, '--csr-signer', signerName],
      ],
    },
    {
      name: 'kcert csr fetch --signer NAME --out-dir FOLDER',
      count: many,
      goesOn: true,
      commands: (_, config) => [[...fetch(config, 'selected'), '--signer', signerName]],
    },
    {
      name: 'kcert csr fetch NAME… --out-dir FOLDER',
      count: many,
      goesOn: true,
      commands: (names, config) => [[...fetch(config, 'named'), ...names]],
    },
    {
      name: 'kcert csr fetch NAME, in a loop',
      count: someInALoop,
      goesOn: true,
      commands: (names, config) =>
        names.map((name) => [
          ...[...program, 'csr', 'fetch', '--kubeconfig', config, name],
          ...['--out', join(folder, `${name}.crt`)],
        ]),
    },
    {
      name: 'kubectl get csr NAME -o jsonpath, in a loop',
      count: someInALoop,
      goesOn: true,
      commands: (names, config) =>
        names.map((name) => [
          ...[kubectl, '--kubeconfig', config, 'get', 'csr', name],
          ...['-o', 'jsonpath={.status.certificate}'],
        ]),
    },
    {
      name: 'kubectl get csr -o json, one call for all, no files and no checks',
      count: many,
      goesOn: true,
      commands: (_, config) => [[kubectl, '--kubeconfig', config, 'get', 'csr', '-o', 'json']],
    },
    {
      name: 'kcert csr approve --policy FILE',
      count: many,
      commands: (_, config) => [
        [...program, 'csr', 'approve', '--kubeconfig', config, '-o', 'json', '--policy', policy],
      ],
    },
    {
      name: 'kubectl certificate approve NAME…',
      count: someAtOnce,
      commands: (names, config) => [[...certificate, '--kubeconfig', config, ...names]],
    },
    {
      name: 'kubectl certificate approve NAME, in a loop',
      count: someInALoop,
      commands: (names, config) => names.map((name) => [...certificate, '--kubeconfig', config, name]),
    },
  ]
}

function rate(row: Row | undefined): number {
  return row === undefined ? 0 : row.count / row.seconds
}

function tableOf(rows: readonly Row[]): { text: string; isMissed: boolean } {
  const lines = rows.map(
    (row) =>
      `| ${row.name} | ${row.count.toLocaleString('en')} | ${row.seconds.toFixed(1)} | ${rate(row).toFixed(1)} | ${row.connections} |`,
  )
  const rateOf = (start: string): number[] => rows.filter(({ name }) => name.startsWith(start)).map(rate)
  const fastest = Math.max(...rateOf('kubectl certificate approve'))
  const times = Math.min(...rateOf('kcert csr approve')) / fastest
  const isMissed = times < leastTimesFaster
  const text = `${clusterTitle}

| | requests | seconds | requests a second | connections |
|---|---|---|---|---|
${lines.join('\n')}

kcert lists or reads the requests, reads each one again and then approves it: two or three calls for each. kubectl reads and approves
each request, and limits itself to 5 calls a second. kcert compares each fetched certificate with its request and CA, and writes it
to its own file. Each row is the better of two runs.

Target: kcert at least ${leastTimesFaster} × the faster of the two: ${isMissed ? 'missed' : 'met'} (${times.toFixed(1)} ×).`
  return { text, isMissed }
}

/** Title of the table in docs/benchmarks.md. */
export const clusterTitle = '### Requests approved, signed and fetched on a real API server'

let made = 0

async function makeRequests(cluster: Cluster, count: number): Promise<string[]> {
  const key = generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })
  const names = Array.from({ length: count }, () => `bench-${process.pid}-${made++}`)
  await pMap(
    names,
    (name) => {
      const request = writePem('CERTIFICATE REQUEST', createRequest({ subject: { commonName: name } }, key))
      const spec = { request: Buffer.from(request).toString('base64'), signerName, usages: ['client auth'] }
      return cluster.requests.create({ metadata: { name }, spec })
    },
    { concurrency: 16 },
  )
  return names
}

async function expectApproved(cluster: Cluster, names: readonly string[]): Promise<void> {
  const approved = new Set<string>()
  for await (const { metadata, status } of cluster.requests.list({ signerName })) {
    if (status?.conditions?.some(({ type }) => type === 'Approved')) approved.add(metadata.name ?? '')
  }
  const left = names.filter((name) => !approved.has(name))
  if (left.length > 0) throw new Error(`${left.length} of ${names.length} were not approved: ${left[0]}`)
}

async function run([program = '', ...args]: readonly string[]): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-2000)
  })
  const exit = await new Promise((done) => child.once('close', done))
  if (exit !== 0) throw new Error(`${program} ${args.slice(0, 4).join(' ')} … ended with ${exit}: ${stderr}`)
}
