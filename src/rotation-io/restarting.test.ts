import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { KcertError } from '../errors/kcert-error.ts'
import type { ProcessFacts } from '../pki/node-access.ts'
import { Restarting } from './restarting.ts'

// Restarts by signal, with real processes: the shell on the node ends exactly the process that was observed.

function started(script: string): ChildProcess {
  const child = spawn('sh', ['-c', script], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

function ticksOf({ pid }: ChildProcess): number {
  return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[21])
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

/** A node whose etcd is this process, until it ends. Then another process runs, as its kubelet starts it. */
async function nodeWith(child: ChildProcess, startTicks = ticksOf(child), isOther = false) {
  const health = createServer((_, answer) => answer.end('{"health":"true"}'))
  await new Promise<void>((done) => health.listen(0, '127.0.0.1', () => done()))
  onTestFinished(() => void health.close())
  const { port } = health.address() as AddressInfo
  const flags = { name: 'cp1', 'data-dir': '/var/lib/etcd' }
  const facts = (pid: number, ticks: number, name = 'cp1'): ProcessFacts => ({
    ...{ program: 'etcd', pid, startTicks: ticks },
    argv: [
      ...['etcd', `--name=${name}`, '--data-dir=/var/lib/etcd'],
      `--listen-metrics-urls=http://127.0.0.1:${port}`,
    ],
    startedAt: new Date(0),
  })
  const ran: string[] = []
  const node = {
    name: 'cp1',
    processes: async () => {
      if (isOther) return [facts(child.pid!, startTicks, 'calico'), facts(1, 1)]
      return [isAlive(child) ? facts(child.pid!, startTicks) : facts(1, 1)]
    },
    run: async ([program = '', ...words]: readonly string[]) => {
      ran.push(words.at(-1) ?? '')
      const { status, stderr } = spawnSync(program, words, { encoding: 'utf8' })
      return { status: status ?? 1, stdout: new Uint8Array(), stderr }
    },
  }
  const site = {
    clock: () => new Date(),
    dial: (_: string, host: string, at: number) => connect({ host, port: at }),
    node: () => node,
    startedAtMs: async (_: string, { pid }: ProcessFacts) => (pid === child.pid ? 1_000 : Date.now()),
    clockAheadMs: async () => 0,
  }
  const planes = { node: () => node, manifestFlags: async () => flags }
  return { restarting: new Restarting(site as never, planes as never), ran }
}

const restart = { kind: 'restart', phase: 3, process: 'cp1/etcd', how: 'signal', replaces: 1_000 } as const

test('ends the process with SIGTERM, and waits until another one is healthy', async () => {
  const child = started('sleep 60')
  const { restarting, ran } = await nodeWith(child)
  await restarting.restart(restart)
  expect([child.signalCode ?? child.exitCode, ran]).toEqual(['SIGTERM', ['TERM']])
})

test('ends a process that ignores SIGTERM with SIGKILL after its time', async () => {
  const child = started('trap "" TERM; while :; do sleep 0.1; done')
  await new Promise((done) => setTimeout(done, 300))
  const { restarting, ran } = await nodeWith(child)
  await restarting.restart({ ...restart, killAfterMs: 500 })
  expect([child.signalCode, ran]).toEqual(['SIGKILL', ['TERM', 'KILL']])
})

test('does not end another process that got the same process ID', async () => {
  const child = started('sleep 60')
  const { restarting, ran } = await nodeWith(child, ticksOf(child) - 1)
  const waiting = restarting.restart(restart)
  await new Promise((done) => setTimeout(done, 1_000))
  expect([isAlive(child), ran]).toEqual([true, ['TERM']])
  child.kill('SIGKILL')
  await waiting
})

test('only waits when another process than the observed one runs already', async () => {
  const child = started('sleep 60')
  const { restarting, ran } = await nodeWith(child)
  await restarting.restart({ ...restart, replaces: 500_000 })
  expect([isAlive(child), ran]).toEqual([true, []])
})

test('ends a process that was not observed but started before the write of this run', async () => {
  const child = started('sleep 60')
  const { restarting } = await nodeWith(child)
  restarting.wrote('cp1')
  const { replaces: _, ...unobserved } = restart
  await restarting.restart(unobserved)
  expect(child.signalCode ?? child.exitCode).toBe('SIGTERM')
})

test('never ends the same program in another pod, such as the datastore of a CNI plugin', async () => {
  const child = started('sleep 60')
  const { restarting, ran } = await nodeWith(child, ticksOf(child), true)
  restarting.wrote('cp1')
  // The member has restarted by itself since kcert planned.
  await restarting.restart({ ...restart, replaces: 500_000 })
  expect([isAlive(child), ran]).toEqual([true, []])
})

test('reports a process that cannot be ended', async () => {
  const child = started('sleep 60')
  const { restarting } = await nodeWith(child)
  const node = { run: async () => ({ status: 1, stdout: new Uint8Array(), stderr: 'kill: not permitted' }) }
  Object.assign((restarting as unknown as { planes: { node(): object } }).planes.node(), node)
  await expect(restarting.restart(restart)).rejects.toMatchObject({
    code: 'KCERT_NODE_COMMAND_FAILED',
    why: 'kill: not permitted',
  })
})

test('a node that does not list its processes has not lost one: the Lease of a leader stays, and the wait goes on', async () => {
  const child = started('trap "" TERM; while :; do sleep 0.1; done')
  await new Promise((done) => setTimeout(done, 300))
  const { restarting } = await nodeWith(child)
  const { site, planes } = restarting as unknown as {
    site: object
    planes: { node(): { processes(): Promise<readonly ProcessFacts[]> } }
  }
  const node = planes.node()
  const list = node.processes
  let listings = 0
  node.processes = async () => {
    listings++
    // The first listing is before the signal.
    if (listings === 1 || !isAlive(child)) return list()
    throw new KcertError('KCERT_NODE_UNREACHABLE', 'node cp1', { why: 'connection reset' })
  }
  const released: boolean[] = []
  const objects = {
    get: async () => ({ spec: { holderIdentity: 'cp1_1' } }),
    replace: async () => void released.push(isAlive(child)),
  }
  Object.assign(site, { objects })
  const waiting = restarting.restart({ ...restart, lease: 'kube-controller-manager' })
  await new Promise((done) => setTimeout(done, 1_500))
  expect([isAlive(child), released]).toEqual([true, []])
  expect(listings).toBeGreaterThan(3)
  child.kill('SIGKILL')
  await waiting
  expect(released).toEqual([false])
})
