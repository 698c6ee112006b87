import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { json, text } from 'node:stream/consumers'
import { run, sleep } from './command.ts'
import type { Cluster } from './fixture.ts'
import { LabError } from './lab-error.ts'
import { folders } from './state.ts'

// The proof that etcd loses no write: the program etcd-history records what clients of each member see, and checks it at the end.

/** What etcd-history prints, see its check.go. */
export interface HistoryReport {
  readonly operations: number
  readonly reads: number
  readonly acknowledgedWrites: number
  readonly unknown: number
  readonly events: number
  readonly longestPauseMs: number
  readonly failures: Readonly<Record<string, number>>
  readonly violations: readonly string[]
}

const source = join(folders.source, 'etcd-history')

/** Runs the tests of the check, then builds the program. */
async function buildHistory(): Promise<string> {
  const program = join(folders.cache, 'etcd-history')
  await run(['go', 'test', './...'], { cwd: source })
  await run(['go', 'build', '-trimpath', '-o', program, '.'], { cwd: source })
  return program
}

/**
 * Records a history while `work` runs. Clients use the files of cp1, as a backup on that node would. `fillBytes` are written first.
 */
export async function withHistory(
  cluster: Cluster,
  fillBytes: number,
  work: () => Promise<void>,
): Promise<HistoryReport> {
  const program = await buildHistory()
  const pki = (file: string): string => cluster.hostPath('cp1', `/etc/kubernetes/pki/etcd/${file}`)
  const members = cluster.nodes().filter(({ role }) => role === 'control-plane')
  const child = spawn(
    program,
    [
      ...members.flatMap(({ address }) => ['--endpoint', `https://${address}:2379`]),
      ...[
        '--ca',
        pki('ca.crt'),
        '--cert',
        pki('healthcheck-client.crt'),
        '--key',
        pki('healthcheck-client.key'),
      ],
      ...['--fill', String(fillBytes)],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const closed = once(child, 'close') as Promise<[number | null]>
  const report = json(child.stdout) as Promise<HistoryReport>
  report.catch(() => {})
  const errors = text(child.stderr)
  const [outcome] = await Promise.allSettled([work()])
  child.kill('SIGTERM')
  const [code] = await closed
  if (outcome.status === 'rejected') throw outcome.reason
  if (code !== 0 && code !== 3) throw new LabError(`etcd-history ended with ${code}: ${await errors}`)
  return await report
}

/** Kills or stops one member after the other until the signal aborts. Returns what it did. */
export async function disturbMembers(cluster: Cluster, signal: AbortSignal): Promise<readonly string[]> {
  const names = cluster.nodes().flatMap(({ name, role }) => (role === 'control-plane' ? [name] : []))
  const did: string[] = []
  for (let turn = 0; !signal.aborted; turn++) {
    const name = names[turn % names.length]!
    const isKill = turn % 2 === 0
    const send = (kind: string) =>
      cluster.onNode(name, ['pkill', `-${kind}`, '-x', 'etcd'], { mayFail: true })
    did.push(`${new Date().toISOString()} ${isKill ? 'SIGKILL' : 'SIGSTOP for 8 s'} ${name}`)
    await send(isKill ? 'KILL' : 'STOP')
    if (!isKill) {
      await sleep(8_000)
      await send('CONT')
    }
    await sleep(25_000)
  }
  return did
}
