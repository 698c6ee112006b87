import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Cluster } from '../../src/cluster/cluster.ts'
import type { ObjectsApi } from '../../src/cluster/objects.ts'
import { shellNode } from '../../src/node/shell-node.ts'
import { NodeJobs } from '../../src/site/node-jobs.ts'
import { systemClock } from '../../src/system/clock.ts'
import { processIdentity } from '../../src/system/process-identity.ts'
import { openWith } from '../contract/stage.ts'
import { bindings, type JobsCluster, namespaces, policies, startJobsCluster } from '../fakes/jobs-cluster.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'

// A kcert that is killed before or after any of its calls, and the next one on the same machine.

const folder = temporaryFolder('jobs-killed')
let cluster: JobsCluster
let connection: Cluster
let told: string[]

beforeEach(async () => {
  cluster = await startJobsCluster(['cp1'])
  connection = await openWith(cluster.server.writeKubeconfig(join(folder, 'admin.conf')))
  told = []
})

afterEach(async () => {
  connection.close()
  await cluster.server.close()
})

class Killed extends Error {}

interface Kill {
  /** The number of the call, from 1. */
  readonly at: number
  /** True: the API server receives the call, and kcert never learns its result. */
  readonly isAfter: boolean
}

/** Returns the cluster for a process that is killed at this call. After that it sends nothing. */
function killedAt(kill: Kill): { readonly cluster: Cluster; isDead: () => boolean } {
  let count = 0
  const call = async <Result>(act: () => Promise<Result>): Promise<Result> => {
    count++
    if (count > kill.at || (count === kill.at && !kill.isAfter)) throw new Killed()
    const result = await act()
    if (count >= kill.at) throw new Killed()
    return result
  }
  const { objects, podExec } = connection
  const dying: ObjectsApi = {
    ...objects,
    get: (...asked) => call(() => objects.get(...asked)),
    create: (...asked) => call(() => objects.create(...asked)),
    delete: (...asked) => call(() => objects.delete(...asked)),
  }
  const exec = { start: (...asked: Parameters<typeof podExec.start>) => call(() => podExec.start(...asked)) }
  return {
    cluster: { ...connection, objects: dying, podExec: exec },
    isDead: () => count >= kill.at,
  }
}

/** The whole life of a run: objects, Job, a script on the node, removal. */
async function work(over: Cluster, owner?: string): Promise<void> {
  const tell = (note: string): void => void told.push(note)
  const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 2))
  const run = await NodeJobs.open({
    cluster: over,
    image: 'kcert:1',
    random: randomBytes,
    tell,
    pause,
    ...(owner && { owner }),
  })
  const node = shellNode({ name: 'cp1', transport: run.transport('cp1'), clock: systemClock })
  try {
    expect(await node.statFiles(['/'])).toMatchObject([{ found: 'folder' }])
  } finally {
    await node.close()
    await run.close()
  }
}

/** The identity of a process of this machine that has ended. */
const ended = processIdentity()?.replace(/-\d+-\d+$/, `-${process.pid}-1`)

const left = (): unknown[] =>
  [namespaces, policies, bindings].flatMap((kind) =>
    cluster.server.all(kind).map(({ metadata }) => metadata.name),
  )

test.each([false, true])(
  'leaves nothing after the next run, wherever it is killed (the call arrives: %s)',
  async (isAfter) => {
    const leftBehind = new Set<string>()
    let at = 1
    for (; ; at++) {
      const killed = killedAt({ at, isAfter })
      await work(killed.cluster, ended).catch((error: unknown) => {
        if (!(error instanceof Killed)) throw error
      })
      const kinds = [namespaces, policies, bindings].map((kind) => cluster.server.all(kind).length)
      leftBehind.add(kinds.join())
      await work(connection)
      expect(left(), `killed at call ${at}`).toEqual([])
      if (!killed.isDead()) break
    }
    // Permissions, objects, dry runs, Job, exec, removal: kills between all of them.
    expect(at).toBeGreaterThan(25)
    expect([...leftBehind]).toEqual(['0,0,0', '1,0,0', '1,1,0', '1,1,1', '0,1,1', '0,1,0'])
  },
)

test('does not remove the Jobs of a process that runs', async () => {
  const tell = (note: string): void => void told.push(note)
  const run = await NodeJobs.open({ cluster: connection, image: 'kcert:1', random: randomBytes, tell })
  const name = left()
  await work(connection)
  expect(left()).toEqual(name)
  await run.close()
  expect(left()).toEqual([])
})

test('does not remove the Jobs of a process that runs, whatever the labels of its objects are', async () => {
  const tell = (note: string): void => void told.push(note)
  const run = await NodeJobs.open({ cluster: connection, image: 'kcert:1', random: randomBytes, tell })
  const name = left()
  for (const kind of [namespaces, policies, bindings])
    for (const object of cluster.server.all(kind))
      cluster.server.put(kind, {
        ...object,
        metadata: { ...object.metadata, labels: { ...object.metadata.labels, 'kcert.io/owner': ended } },
      })
  await work(connection)
  expect(left()).toEqual(name)
  await run.close()
})

test('names what a killed run left and cannot be removed, and reaches the nodes nevertheless', async () => {
  await work(killedAt({ at: 30, isAfter: true }).cluster, ended).catch(() => {})
  const [name] = left()
  expect(name).toMatch(/^kcert-nodes-/)
  cluster.server.faults.add({ kind: 'internal', verb: 'delete', name: String(name), times: 99 })
  await work(connection)
  expect(told[0]).toMatch(`could not remove namespace ${name}: `)
  expect(told[0]).toContain(
    `kubectl delete namespace,validatingadmissionpolicybinding,validatingadmissionpolicy ${name}`,
  )
})
