import { expect, test } from 'vitest'
import { type EtcdMembers, restartMembers } from '../../src/renewal-io/etcd-restarts.ts'

// Members of etcd that count their quorum: one is well when it runs with a certificate in date and most of all are so.

class Members implements EtcdMembers {
  readonly restarted: string[] = []
  /** How many could do their work, after each step. */
  readonly able: number[] = []
  private readonly fit: Set<string>
  private readonly starting = new Set<string>()
  /** Its leader may have been the one that was restarted: for a second or two nobody is well. */
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

  /** Time passes: all that have been started are there. */
  async awaitHealthy(node: string): Promise<void> {
    this.starting.clear()
    this.isElecting = false
    expect(await this.isHealthy(node), `${node} becomes healthy`).toBe(true)
  }
}

const three = ['cp1', 'cp2', 'cp3']

test('of three healthy members two are always left', async () => {
  const members = new Members(three)
  await restartMembers(three, three, members)
  expect([members.restarted, members.able]).toEqual([three, [2, 2, 2]])
})

test('who is not well starts first, and is waited for before a healthy one is taken away', async () => {
  const members = new Members(three, ['cp3'])
  await restartMembers(three, three, members)
  expect([members.restarted, members.able]).toEqual([
    ['cp3', 'cp1', 'cp2'],
    [2, 2, 2],
  ])
})

test.each([[['cp1', 'cp2']], [three]])(
  'where most have expired (%j) it waits for no single member, and all are healthy at the end',
  async (unfit) => {
    const members = new Members(three, unfit)
    await restartMembers(three, three, members)
    expect(members.restarted.toSorted()).toEqual(three)
    expect(await Promise.all(three.map((node) => members.isHealthy(node)))).toEqual([true, true, true])
  },
)

test('a healthy member that is not to be restarted counts', async () => {
  const members = new Members(three, ['cp2'])
  await restartMembers(['cp1', 'cp2'], three, members)
  expect([members.restarted, members.able]).toEqual([
    ['cp2', 'cp1'],
    [2, 2],
  ])
})

test('a single member is restarted and waited for', async () => {
  const members = new Members(['cp1'], ['cp1'])
  await restartMembers(['cp1'], ['cp1'], members)
  expect(await members.isHealthy('cp1')).toBe(true)
})
