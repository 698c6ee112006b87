import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pMap from 'p-map'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Cluster as Connection } from '../../src/cluster/cluster.ts'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { readPrivateKeyFile } from '../../src/x509/keys.ts'
import { openWith } from '../contract/stage.ts'
import { requestPem } from '../csr/made-requests.ts'
import { callFaults, type FaultKind, limitFor } from '../fakes/api-server-faults.ts'
import { kcertBeside, type Session } from '../scripts/program.ts'
import { sleep, until } from './command.ts'
import { type FaultyProxy, startFaultyProxy, type Way } from './faulty-proxy.ts'
import { type Cluster, describeOnCluster, openCluster } from './fixture.ts'

// Every API call of every writing command meets every fault once on a real API server. The command succeeds or reports that it
// must run again, and the second run completes it. Nothing is lost and nothing is done twice.

const own = 'example.com/faults'
const users = 'kubernetes.io/kube-apiserver-client'
const atOnce = 4
// A command makes an additional call when the API server was briefly unavailable. It is repeated until it meets its fault.
const tries = 5

describeOnCluster('API faults', () => {
  let cluster: Cluster & { close(): Promise<void> }
  let connection: Connection
  let proxy: FaultyProxy
  let folder: string
  const at = (file: string): string => join(folder, file)
  const pair = (): string[] => ['--ca', at('ca.pem'), '--ca-key', at('ca-key.pem')]

  beforeAll(async () => {
    cluster = await openCluster({ controlPlanes: 1, workers: 1 })
    folder = mkdtempSync(join(tmpdir(), 'kcert-faults-'))
    proxy = await startFaultyProxy(cluster.kubeconfig, cluster.spec.keys)
    connection = await openWith(cluster.kubeconfig)
    const made = [
      await kcertBeside(['key', 'generate', '--out', at('key.pem')]),
      await kcertBeside(['ca', 'init', '--cn', 'x', '--out', at('ca.pem'), '--key-out', at('ca-key.pem')]),
    ]
    expect(made.map(({ exit }) => exit)).toEqual([0, 0])
  })
  afterAll(async () => {
    connection?.close()
    await proxy?.close()
    if (folder) rmSync(folder, { recursive: true })
    await cluster?.close()
  })

  /** Returns the PEM of a request with this name for the key of the suite. */
  function pemOf(name: string): string {
    const { keyObject } = readPrivateKeyFile(readFileSync(at('key.pem')))
    return requestPem({ subject: { commonName: name } }, keyObject)
  }

  async function stored(name: string): Promise<RequestObject> {
    const object = await connection.requests.get(name)
    if (object === undefined) throw new Error(`${name} is lost`)
    return object
  }

  async function put(name: string, signerName: string, isApproved: boolean): Promise<void> {
    const object = await connection.requests.create({
      metadata: { name, labels: { fault: name } },
      spec: { request: Buffer.from(pemOf(name)).toString('base64'), signerName, usages: ['client auth'] },
    })
    if (isApproved) await approve(object)
  }

  async function approve(object: RequestObject): Promise<void> {
    const condition = { type: 'Approved', status: 'True', reason: 'ByTest', message: 'by a test' }
    await connection.requests.replaceApproval({ ...object, status: { conditions: [condition] } })
  }

  /**
   * Approves the request that a command waits for as soon as it watches, so that every run makes the same calls. Stops when the
   * command ends first.
   */
  async function approveWhenWatched(
    name: string,
    calls: readonly string[],
    ended: () => boolean,
  ): Promise<void> {
    while (!ended()) {
      if (calls.some((call) => call.includes('watch=true'))) {
        const object = await connection.requests.get(name)
        if (object !== undefined && object.status?.conditions === undefined) await approve(object)
        return
      }
      await sleep(100)
    }
  }

  interface Commanded {
    readonly prepare?: (name: string) => Promise<void>
    readonly args: (name: string, wait: string) => string[]
    readonly meanwhile?: (name: string, calls: readonly string[], ended: () => boolean) => Promise<void>
    /** The condition that must be true at the end, exactly once. */
    readonly expectDone: (name: string) => Promise<void>
  }

  async function expectOneApproval(name: string): Promise<void> {
    const conditions = (await stored(name)).status?.conditions ?? []
    expect(conditions.map(({ type, reason }) => [type, reason])).toEqual([['Approved', 'ApprovedByOperator']])
  }

  async function expectFetched(name: string, file: string): Promise<void> {
    const { status } = await stored(name)
    const issued = Buffer.from(status?.certificate ?? '', 'base64').toString()
    expect(readFileSync(file, 'utf8').trim()).toBe(issued.trim())
  }

  const issuedBefore = async (name: string): Promise<void> => {
    await put(name, users, true)
    await until(
      `${name} is issued`,
      180_000,
      async () => (await stored(name)).status?.certificate !== undefined,
    )
  }

  const commands: Readonly<Record<string, Commanded>> = {
    'csr submit': {
      prepare: async (name) => writeFileSync(at(`${name}.csr`), pemOf(name)),
      args: (name) => [
        ...['csr', 'submit', at(`${name}.csr`), '--name', name],
        ...['--signer', own, '--usage', 'client auth'],
      ],
      async expectDone(name) {
        expect((await stored(name)).spec).toMatchObject({ signerName: own, usages: ['client auth'] })
      },
    },
    'csr approve NAME': {
      prepare: (name) => put(name, own, false),
      args: (name) => ['csr', 'approve', name],
      expectDone: expectOneApproval,
    },
    'csr approve -l': {
      prepare: (name) => put(name, own, false),
      args: (name) => ['csr', 'approve', '-l', `fault=${name}`, '--yes'],
      expectDone: expectOneApproval,
    },
    'ca sign --csr': {
      prepare: (name) => put(name, own, true),
      args: (name) => ['ca', 'sign', '--csr', name, ...pair(), '--issuance-log', at(`${name}.jsonl`)],
      async expectDone(name) {
        const { status } = await stored(name)
        writeFileSync(at(`${name}.crt`), Buffer.from(status?.certificate ?? '', 'base64'))
        const printed = execFileSync('openssl', ['x509', '-noout', '-serial', '-in', at(`${name}.crt`)], {
          encoding: 'utf8',
        })
        const serial = printed.trim().replace('serial=', '').toLowerCase()
        // It also contains certificates that were signed without effect.
        expect(readFileSync(at(`${name}.jsonl`), 'utf8').toLowerCase()).toContain(serial)
      },
    },
    'csr fetch --wait': {
      prepare: (name) => put(name, users, false),
      args: (name, wait) => [
        ...['csr', 'fetch', name, '--wait', wait],
        ...['--key', at('key.pem'), '--out', at(`${name}.crt`)],
      ],
      meanwhile: approveWhenWatched,
      expectDone: (name) => expectFetched(name, at(`${name}.crt`)),
    },
    'csr fetch NAME --out-dir': {
      prepare: issuedBefore,
      args: (name) => ['csr', 'fetch', name, '--out-dir', at(name)],
      expectDone: (name) => expectFetched(name, at(`${name}/${name}.crt`)),
    },
    'csr fetch -l --out-dir': {
      prepare: issuedBefore,
      args: (name) => ['csr', 'fetch', '-l', `fault=${name}`, '--out-dir', at(name)],
      expectDone: (name) => expectFetched(name, at(`${name}/${name}.crt`)),
    },
    'csr request': {
      args: (name, wait) => [
        ...['csr', 'request', '--user', name, '--wait', wait],
        ...[
          '--key-out',
          at(`${name}.pem`),
          '--out',
          at(`${name}.crt`),
          '--kubeconfig-out',
          at(`${name}.conf`),
        ],
      ],
      meanwhile: approveWhenWatched,
      async expectDone(name) {
        await expectFetched(name, at(`${name}.crt`))
        const publicKeyOf = (args: string[]): string => execFileSync('openssl', args, { encoding: 'utf8' })
        expect(publicKeyOf(['x509', '-noout', '-pubkey', '-in', at(`${name}.crt`)])).toBe(
          publicKeyOf(['pkey', '-pubout', '-in', at(`${name}.pem`)]),
        )
      },
    },
  }

  let made = 0

  interface Fault {
    readonly kind: FaultKind
    readonly at: number
  }

  interface Done {
    /** The calls of the first run. */
    readonly calls: readonly string[]
    readonly runs: number
  }

  async function runUntilMet(command: Commanded, fault: Fault): Promise<Done> {
    for (let left = tries; left > 0; left--) {
      const done = await runWith(command, fault)
      if (done.calls.length >= fault.at) return done
    }
    throw new Error(`no run made a call ${fault.at}, which was to meet ${fault.kind}`)
  }

  /** Runs a command until it is done, at most twice. */
  async function runWith(command: Commanded, fault?: Fault): Promise<Done> {
    const name = `fault-${++made}`
    await command.prepare?.(name)
    const way = proxy.way(at(`${name}.admin`), fault)
    const once = async ({ kubeconfig, calls }: Way, line: readonly string[]): Promise<Session> => {
      let isEnded = false
      const running = kcertBeside(line, { env: { KUBECONFIG: kubeconfig } })
      const ended = running.finally(() => {
        isEnded = true
      })
      await command.meanwhile?.(name, calls, () => isEnded)
      return ended
    }
    // Limits the wait for a response that never comes. Without a fault, no limit applies.
    const limit = fault === undefined ? [] : limitFor(fault.kind)
    const line = [...command.args(name, fault === undefined ? '3m' : '30s'), ...limit]
    const first = await once(way, line)
    const what = `${line.join(' ')} with ${JSON.stringify(fault)}: ${first.stdout}${first.stderr}`
    if (first.exit !== 0) {
      expect([3, 4], what).toContain(first.exit)
      const second = await once(proxy.way(at(`${name}.again`)), command.args(name, '3m'))
      expect(second.exit, `${what}\nagain: ${second.stdout}${second.stderr}`).toBe(0)
    }
    await command.expectDone(name)
    return { calls: way.calls, runs: first.exit === 0 ? 1 : 2 }
  }

  test.each(Object.entries(commands))('kcert %s loses nothing', async (line, command) => {
    const { calls } = await runWith(command)
    expect(calls.length).toBeGreaterThan(0)
    const faults = calls.flatMap((_, index) => callFaults.map((kind) => ({ kind, at: index + 1 })))
    const results = await pMap(faults, (fault) => runUntilMet(command, fault), { concurrency: atOnce })
    const again = results.filter(({ runs }) => runs > 1).length
    process.stderr.write(
      `kcert ${line}: ${calls.length} calls, ${faults.length} faults, ${again} run again\n`,
    )
  })
})
