import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type { ProcessFacts } from '../../src/pki/node-access.ts'
import { Restarting, type UnreadLogs } from '../../src/rotation-io/restarting.ts'
import { ControlPlanes } from '../../src/site/control-planes.ts'
import type { Site } from '../../src/site/site.ts'
import { tlsPair } from '../pki/tls-pair.ts'
import { MemoryNode, now } from './memory-node.ts'

// Which process a restart replaces: the observed one, or one that started by itself before the files were written.

let health: Server
let tlsHealth: Server
beforeAll(async () => {
  health = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1')
  const { certificate, keyPem } = tlsPair('localhost')
  tlsHealth = createTlsServer({ cert: certificate, key: keyPem }, (_, response) => response.end('ok'))
  tlsHealth.listen(0, '127.0.0.1')
  await Promise.all([once(health, 'listening'), once(tlsHealth, 'listening')])
})
afterAll(() => {
  health.close()
  tlsHealth.close()
})

const nowMs = now.getTime()
const processAt = (startedMs: number, program: string): ProcessFacts =>
  ({
    program,
    argv: [program],
    pid: startedMs,
    startTicks: startedMs,
    startedAt: new Date(startedMs),
  }) as unknown as ProcessFacts

interface UnitFaults {
  /** The error with which the request to restart the unit ends. */
  readonly error?: KcertError
  /** True if no new process starts. */
  readonly isStuck?: boolean
}

/** A node whose kubelet, or another program, runs as a unit since this time. A restart starts a new process. */
function siteWith(
  startedMs: number,
  holderIdentity = '',
  program = 'kubelet',
  { error, isStuck = false }: UnitFaults = {},
) {
  const node = new MemoryNode('w1', { files: new Map() } as never)
  const run = (at: number): void => {
    node.processes = [processAt(at, program)]
    node.files.set(`/proc/${at}/environ`, { content: Buffer.alloc(0), mode: 0o400 })
  }
  run(startedMs)
  const restarted: string[] = []
  Object.assign(node.access, {
    unit: async (name: string) => ({
      name,
      loadState: 'loaded',
      dropInPaths: [],
    }),
    restartUnit: async (name: string) => {
      restarted.push(name)
      if (!isStuck) run(nowMs + 500)
      if (error !== undefined) throw error
    },
  })
  let clockMs = nowMs
  const lease = { spec: { holderIdentity, acquireTime: new Date(nowMs - 60_000).toISOString() } }
  const site = {
    objects: {
      get: async () => lease,
      replace: async (_: unknown, object: typeof lease) => Object.assign(lease, object),
    },
    inventory: { apiVersion: 'kcert/v1', kind: 'Inventory', nodes: [] },
    clock: () => {
      // The wait for a process that never starts takes a few readings.
      if (isStuck) clockMs += 50_000
      return new Date(clockMs)
    },
    node: () => node.access,
    dial: () => connect((health.address() as AddressInfo).port, '127.0.0.1'),
    startedAtMs: async (_: string, { pid }: ProcessFacts) => pid,
  } as unknown as Site
  return { restarting: new Restarting(site, new ControlPlanes(site)), restarted, lease }
}

const restart = {
  kind: 'restart',
  phase: 9,
  process: 'w1/kubelet',
  replaces: nowMs - 60_000,
  how: 'service',
} as const

test('replaces the observed process', async () => {
  const { restarting, restarted } = siteWith(restart.replaces)
  await restarting.restart(restart)
  expect(restarted).toEqual(['kubelet.service'])
})

test('replaces a process that restarted by itself after the plan and before the write', async () => {
  const { restarting, restarted } = siteWith(nowMs - 20_000)
  restarting.wrote('w1')
  await restarting.restart(restart)
  expect(restarted).toEqual(['kubelet.service'])
})

describe('a restart of a unit', () => {
  const lost = new KcertError('KCERT_NODE_UNREACHABLE', 'lost the connection to node "w1"')
  const failed = new KcertError('KCERT_NODE_COMMAND_FAILED', 'systemctl restart kubelet.service failed')

  test('that ends its own connection succeeds if a new process is healthy', async () => {
    const { restarting, restarted } = siteWith(restart.replaces, '', 'kubelet', { error: lost })
    await restarting.restart(restart)
    expect(restarted).toEqual(['kubelet.service'])
  })

  test('whose connection is lost fails if the previous process still runs', async () => {
    const { restarting, restarted } = siteWith(restart.replaces, '', 'kubelet', {
      error: lost,
      isStuck: true,
    })
    await expect(restarting.restart(restart)).rejects.toMatchObject({
      code: 'KCERT_ROTATION_CHECK_FAILED',
      message: 'w1/kubelet did not come back within 180 s',
    })
    expect(restarted).toEqual(['kubelet.service'])
  })

  test.each([
    ['a new process runs', false],
    ['the previous process runs', true],
  ])('that systemd rejects fails with its error although %s', async (_, isStuck) => {
    const { restarting } = siteWith(restart.replaces, '', 'kubelet', { error: failed, isStuck })
    await expect(restarting.restart(restart)).rejects.toBe(failed)
  })
})

test.each([
  ['w1_0a', ''],
  ['w2_0b', 'w2_0b'],
])(
  'the Lease that %s holds when w1 is restarted is handed over only by w1: then by "%s"',
  async (holderIdentity, then) => {
    const { restarting, lease } = siteWith(restart.replaces, holderIdentity)
    await restarting.restart({ ...restart, lease: 'kube-scheduler' })
    expect(lease.spec.holderIdentity).toBe(then)
  },
)

test('skips a process that started after the plan if nothing was written since', async () => {
  const { restarting, restarted } = siteWith(nowMs - 20_000)
  await restarting.restart(restart)
  expect(restarted).toEqual([])
})

test.each([
  // As planned.
  [nowMs - 60_000, nowMs - 60_000, ['etcd.service']],
  // It was down when kcert planned, and came back before the write.
  [undefined, nowMs - 20_000, ['etcd.service']],
  // It has started since the write.
  [nowMs - 60_000, nowMs + 100, []],
  [undefined, nowMs + 100, []],
])(
  'a member of etcd that runs as a unit, planned as %j, running since %i: restarts %j',
  async (planned, startedMs, expected) => {
    const { restarting, restarted } = siteWith(startedMs, '', 'etcd')
    restarting.wrote('w1')
    const { replaces: _, ...action } = { ...restart, process: 'w1/etcd' }
    await restarting.restart({ ...action, ...(planned !== undefined && { replaces: planned }) })
    expect(restarted).toEqual(expected)
  },
)

const complaint = (seconds: number) =>
  `2026-11-21T12:00:${seconds}Z stderr F x509: certificate signed by unknown authority`

/** A healthy scheduler that has just restarted. `log` returns its log by the number of the reading. */
async function restartScheduler(log: (reading: number) => string | undefined, unread?: UnreadLogs) {
  const node = new MemoryNode('cp1', { files: new Map() } as never)
  node.processes = [
    { program: 'kube-scheduler', argv: ['kube-scheduler'], pid: nowMs } as unknown as ProcessFacts,
  ]
  let readings = 0
  Object.assign(node.access, {
    run: async () => {
      const text = log(readings++)
      return text === undefined
        ? { status: 3, stdout: '', stderr: '/var/log/pods/x/0.log cannot be read' }
        : { status: 0, stdout: Buffer.from(text), stderr: '' }
    },
  })
  let clockMs = nowMs
  const site = {
    inventory: { apiVersion: 'kcert/v1', kind: 'Inventory', nodes: [] },
    clock: () => {
      clockMs += 1_000
      return new Date(clockMs)
    },
    clockAheadMs: async () => 0,
    node: () => node.access,
    dial: () => connect((tlsHealth.address() as AddressInfo).port, '127.0.0.1'),
    startedAtMs: async (_: string, { pid }: ProcessFacts) => pid,
  } as unknown as Site
  const process = 'cp1/kube-scheduler'
  const action = { kind: 'restart', phase: 7, process, replaces: nowMs - 60_000, how: 'definition' } as const
  await new Restarting(site, new ControlPlanes(site), unread).restart(action)
  return readings
}

test('fails on an unreadable log, names it, and shows how to accept the risk', async () => {
  await expect(restartScheduler(() => undefined)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    message: 'the log of cp1/kube-scheduler cannot be read',
    why: expect.stringMatching(/^\/var\/log\/pods\/x\/0\.log cannot be read; .*--waive cp1\/kube-scheduler$/),
  })
}, 60_000)

test('accepts the risk of an unreadable log only for this process', async () => {
  await restartScheduler(() => undefined, { waivers: new Set(['cp1/kube-scheduler']) })
  const other = { waivers: new Set(['cp2/kube-scheduler', 'cp1/kube-controller-manager']) }
  await expect(restartScheduler(() => undefined, other)).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
  })
}, 60_000)

test('a command without waivers reports the unreadable log', async () => {
  const lines: string[] = []
  await restartScheduler(() => undefined, { tell: (line) => lines.push(line) })
  expect(lines).toEqual([
    'cp1/kube-scheduler runs; its log cannot be read (/var/log/pods/x/0.log cannot be read), so certificate errors may be unnoticed',
  ])
}, 60_000)

test('reads a log again after a short absence, and ignores old errors', async () => {
  expect(await restartScheduler((reading) => (reading < 2 ? undefined : complaint(1)))).toBeGreaterThan(3)
}, 60_000)

test('fails when a process keeps logging certificate errors', async () => {
  await expect(restartScheduler((reading) => complaint(reading + 10))).rejects.toMatchObject({
    code: 'KCERT_ROTATION_CHECK_FAILED',
    message: 'cp1/kube-scheduler runs, but its log has certificate errors',
    why: expect.stringContaining('x509: certificate signed by unknown authority'),
  })
}, 60_000)
