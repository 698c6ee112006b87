import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Cluster, openCluster } from '../../src/cluster/cluster.ts'
import { systemClock } from '../../src/system/clock.ts'
import {
  type FakeApiServer,
  type FakeOptions,
  type KubeconfigUser,
  startApiServer,
} from '../fakes/api-server.ts'

/** An API server and a cluster client connected to it, for one test. */
export interface FakeCluster {
  readonly server: FakeApiServer
  readonly cluster: Cluster
  readonly folder: string
  /** The pauses of the adapter in milliseconds. It does not wait for them. */
  readonly pauses: number[]
  /** Opens the cluster again with another kubeconfig. */
  open(file: string, options?: Partial<Parameters<typeof openCluster>[0]>): Promise<Cluster>
}

export async function fakeCluster(
  options: FakeOptions = {},
  { requestTimeoutMs = 20_000, user }: { requestTimeoutMs?: number; user?: KubeconfigUser } = {},
): Promise<FakeCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-cluster-'))
  const server = await startApiServer(options)
  const pauses: number[] = []
  const opened: Cluster[] = []
  const open: FakeCluster['open'] = async (file, given = {}) => {
    const cluster = await openCluster({
      files: [file],
      filesMustExist: true,
      requestTimeoutMs,
      surroundings: { env: {}, stdinIsTerminal: false },
      clock: systemClock,
      random: randomBytes,
      pause: async (milliseconds) => {
        pauses.push(milliseconds)
      },
      ...given,
    })
    opened.push(cluster)
    return cluster
  }
  const cluster = await open(server.writeKubeconfig(join(folder, 'kubeconfig'), user))
  onTestFinished(async () => {
    for (const one of opened) one.close()
    await server.close()
    rmSync(folder, { recursive: true })
  })
  return { server, cluster, folder, pauses, open }
}

/** Writes a kubeconfig with one cluster and one user. Returns its path. */
export function writeKubeconfig(path: string, cluster: object, user: object): string {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  writeFileSync(path, JSON.stringify(config))
  return path
}
