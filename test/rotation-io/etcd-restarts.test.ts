import { expect, test } from 'vitest'
import { type EtcdMembers, restartMembers } from '../../src/renewal-io/etcd-restarts.ts'

// etcd members that count their quorum. A member is healthy when it runs with a valid certificate and a majority does so too.

class Members implements EtcdMembers {
  readonly restarted: string[] = []
  /** Number of working members after each step. */
  readonly able: number[] = []
  private readonly fit: Set<string>
  private readonly starting = new Set<string>()
  /** The restarted member may have been the leader: for a second or two, no member is healthy. */
  private isElecting = false
  private readonly all: readonly string[]

  constructor(all: readonly string[], unfit: readonly string[] = []) {
    this.all = all
    this.fit = new Set(all.filter((node) => !unfit.includes(node)))
  }

  private count(): number {
    return this.all.filter((node) => this.fit.has(node) && !this.starting.has(node)).length
  }

  private get hasQuorum(): boolean {
    return this.count() > this.all.length / 2
  }

  async isHealthy(node: string): Promise<boolean> {
    return !this.isElecting && this.hasQuorum && this.fit.has(node) && !this.starting.has(node)
  }

  async restart(node: string): Promise<void> {
    this.restarted.push(node)
    this.fit.add(node)
    this.starting.add(node)
    this.isElecting = true
    this.able.push(this.count())
  }

  /** Advances the time: all started members run. */
  async awaitHealthy(node: string): Promise<void> {
    this.starting.clear()
    this.isElecting = false
    expect(await this.isHealthy(node), `${node} becomes healthy`).toBe(true)
  }
}

const three = ['cp1', 'cp2', 'cp3']

test('always keeps two of three healthy members', async () => {
  const members = new Members(three)
  await restartMembers(three, three, members)
  expect([members.restarted, members.able]).toEqual([three, [2, 2, 2]])
})

test('starts an unhealthy member first, and waits for it before restarting a healthy one', async () => {
  const members = new Members(three, ['cp3'])
  await restartMembers(three, three, members)
  expect([members.restarted, members.able]).toEqual([
    ['cp3', 'cp1', 'cp2'],
    [2, 2, 2],
  ])
})

test.each([[['cp1', 'cp2']], [three]])(
  'waits for no single member when most have expired (%j), and all are healthy at the end',
  async (unfit) => {
    const members = new Members(three, unfit)
    await restartMembers(three, three, members)
    expect(members.restarted.toSorted()).toEqual(three)
    expect(await Promise.all(three.map((node) => members.isHealthy(node)))).toEqual([true, true, true])
  },
)

test('counts a healthy member that does not restart', async () => {
  const members = new Members(three, ['cp2'])
  await restartMembers(['cp1', 'cp2'], three, members)
  expect([members.restarted, members.able]).toEqual([
    ['cp2', 'cp1'],
    [2, 2],
  ])
})

test('restarts a single member and waits for it', async () => {
  const members = new Members(['cp1'], ['cp1'])
  await restartMembers(['cp1'], ['cp1'], members)
  expect(await members.isHealthy('cp1')).toBe(true)
})
