import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { ClusterGuard } from '../../src/rotation-io/cluster-guard.ts'
import { systemRandom } from '../../src/system/random.ts'
import { fakeCluster } from '../cluster/fake-cluster.ts'

// Twenty rotations that start at once, repeatedly. The journal's lock excludes others on one machine, the Lease on twenty
// machines.

const atOnce = 20
const leaseSeconds = 30

const holding = `import { openJournal } from ${JSON.stringify(resolve('src/rotation-io/journal-file.ts'))}
try {
  using journal = await openJournal(process.argv[1])
  await journal.append('{}\\n')
  console.log('owner')
  await new Promise((done) => setTimeout(done, 600_000))
} catch (error) {
  console.log(error.code)
}`

test('one of twenty simultaneous processes owns the journal, and after it is killed, one of the next twenty does', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-twenty-'))
  const living = new Set<ChildProcess>()
  onTestFinished(() => {
    for (const child of living) child.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })
  const start = async (): Promise<{ child: ChildProcess; said: string }> => {
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', holding, join(folder, 'kcert.jsonl')],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    living.add(child)
    const [said] = (await once(child.stdout!, 'data')) as [Buffer]
    return { child, said: said.toString().trim() }
  }
  for (let round = 0; round < 2; round++) {
    // From the second round on, all of them find the lock of the killed process.
    const started = await Promise.all(Array.from({ length: atOnce }, start))
    const owners = started.filter(({ said }) => said === 'owner')
    expect([owners.length, ...started.map(({ said }) => said).filter((said) => said !== 'owner')]).toEqual([
      1,
      ...Array.from({ length: atOnce - 1 }, () => 'KCERT_LOCKED'),
    ])
    const [owner] = owners
    owner!.child.kill('SIGKILL')
    await once(owner!.child, 'exit')
  }
  const names = readdirSync(folder)
  expect(names.filter((name) => name.startsWith('.claim'))).toEqual([])
})

test('one of twenty machines has the Lease; after it is killed, another one has it once it expires, and never two', async () => {
  const { cluster } = await fakeCluster()
  const holders: ClusterGuard[] = []
  const kills: (() => Promise<void>)[] = []
  onTestFinished(async () => {
    for (const kill of kills) await kill()
  })
  const start = (round: number) =>
    Array.from({ length: atOnce }, async (_, index) => {
      // Each machine has its own clock.
      let nowMs = index * 100_000
      const begun = nowMs
      const guard = await ClusterGuard.acquire({
        objects: cluster.objects,
        clock: () => new Date(nowMs),
        random: systemRandom,
        journalPath: `/machine-${round}-${index}/kcert.jsonl`,
        sleep: async (ms) => {
          nowMs += ms
          // All of them reach the same second before one continues to the next.
          await new Promise((done) => setTimeout(done, 20))
        },
      })
      holders.push(guard)
      // Renews as its own timer does, in the time of the others.
      const won = nowMs
      const { renewing: ownTimer } = guard as unknown as { renewing: NodeJS.Timeout }
      clearInterval(ownTimer)
      let isKilled = false
      const renewing = (async () => {
        while (!isKilled) {
          nowMs += 10_000
          await (guard as unknown as { renew(): Promise<void> }).renew()
          await new Promise((done) => setTimeout(done, 100))
        }
      })()
      kills.push(() => {
        isKilled = true
        return renewing
      })
      return (won - begun) / 1000
    })
  for (let round = 0; round < 3; round++) {
    const before = holders.length
    const ended = await Promise.allSettled(start(round))
    const won = ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const lost = ended.flatMap((one) => (one.status === 'rejected' ? [one.reason as KcertError] : []))
    expect(won).toHaveLength(1)
    expect(holders).toHaveLength(before + 1)
    expect(() => holders.at(-1)!.check()).not.toThrow()
    // Kill the winner.
    await kills.at(-1)!()
    // The second and later rounds find a Lease that is not renewed.
    expect(won[0]).toBeLessThanOrEqual(round === 0 ? 0 : leaseSeconds + 1)
    expect(lost.map((error) => (error instanceof KcertError ? error.code : error))).toEqual(
      Array.from({ length: atOnce - 1 }, () => 'KCERT_LOCKED'),
    )
  }
})
