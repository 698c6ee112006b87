import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ProcessFacts } from '../../src/pki/node-access.ts'
import { ControlPlanes } from '../../src/rotation-io/control-planes.ts'
import { Restarting } from '../../src/rotation-io/restarting.ts'
import type { Site } from '../../src/rotation-io/site.ts'
import { MemoryNode, now } from './memory-node.ts'

// Which process a restart replaces: the one that was seen, and whoever came back by itself before the files were written.

let health: Server
beforeAll(async () => {
  health = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1')
  await once(health, 'listening')
})
afterAll(() => health.close())

const nowMs = now.getTime()
const kubeletAt = (startedMs: number): ProcessFacts =>
  ({
    program: 'kubelet',
    argv: ['kubelet'],
    pid: startedMs,
    startedAt: new Date(startedMs),
  }) as unknown as ProcessFacts

/** A node whose kubelet runs since then, as a unit; a restart makes it a new one. */
function siteWith(startedMs: number, holderIdentity = '') {
  const node = new MemoryNode('w1', { files: new Map() } as never)
  node.processes = [kubeletAt(startedMs)]
  const restarted: string[] = []
  Object.assign(node.access, {
    unit: async (name: string) => ({
      name,
      loadState: 'loaded',
      activeState: 'active',
      mainPid: 1,
      dropInPaths: [],
    }),
    restartUnit: async (name: string) => {
      restarted.push(name)
      node.processes = [kubeletAt(nowMs + 500)]
    },
  })
  const lease = { spec: { holderIdentity, acquireTime: new Date(nowMs - 60_000).toISOString() } }
  const site = {
    objects: {
      get: async () => lease,
      replace: async (_: unknown, object: typeof lease) => Object.assign(lease, object),
    },
    inventory: { apiVersion: 'kcert/v1', kind: 'Inventory', nodes: [] },
    clock: () => now,
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

test('the process that was seen is replaced', async () => {
  const { restarting, restarted } = siteWith(restart.replaces)
  await restarting.restart(restart)
  expect(restarted).toEqual(['kubelet.service'])
})

test('one that came back by itself after the plan and before the write is replaced too', async () => {
  const { restarting, restarted } = siteWith(nowMs - 20_000)
  restarting.wrote('w1')
  await restarting.restart(restart)
  expect(restarted).toEqual(['kubelet.service'])
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

test('one that started after the plan, and where nothing was written since, is left alone', async () => {
  const { restarting, restarted } = siteWith(nowMs - 20_000)
  await restarting.restart(restart)
  expect(restarted).toEqual([])
})
