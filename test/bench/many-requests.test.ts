import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../src/system/clock.ts'
import { type FakeApiServer, type FakeOptions, startApiServer } from '../fakes/api-server.ts'
import { manyRequestsTable } from './fleet-table.ts'
import { manyRequests } from './many-requests.ts'
import { openBenchCluster } from './on-cluster.ts'

// The benchmark on a small scale with the fake API server, so that it is known to work before it runs on the lab.

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kcert-many-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const requests = { group: 'certificates.k8s.io', version: 'v1', resource: 'certificatesigningrequests' }

async function onFake(
  options: FakeOptions,
  work: (run: () => ReturnType<typeof manyRequests>, server: FakeApiServer) => Promise<void>,
): Promise<void> {
  const server = await startApiServer(options)
  const kubeconfig = server.writeKubeconfig(join(folder, 'admin.conf'))
  const cluster = await openBenchCluster(kubeconfig)
  const ports = { tell: () => {}, now: systemClock() }
  try {
    await work(() => manyRequests({ kubeconfig, cluster, count: 40, folder, ...ports }), server)
  } finally {
    cluster.close()
    await server.close()
  }
}

test('completes and counts a fleet of requests, and leaves nothing on the API server', async () => {
  await onFake({ signer: 'controller' }, async (run, server) => {
    const done = await run()
    expect(done.steps.map(({ count }) => count)).toEqual([40, 40, 20, 20, 40])
    for (const { name, mostAtOnce, peakMiB } of done.steps.filter(
      ({ connections }) => connections !== undefined,
    )) {
      expect(mostAtOnce, name).toBeGreaterThanOrEqual(1)
      expect(mostAtOnce, name).toBeLessThanOrEqual(64)
      expect(peakMiB, name).toBeGreaterThan(20)
    }
    expect(server.all(requests)).toEqual([])
    expect(manyRequestsTable(done, 'Here.')).toContain('Target: at most 64 connections at a time: met')
  })
})

test('gives no figures for a fleet that is not completely signed, and still removes it', async () => {
  await onFake({ signer: 'controller' }, async (run, server) => {
    const sign = server.signer!
    server.signer = (request) => {
      const answer = sign(request)
      return answer && request.metadata.name?.endsWith('7') ? { failed: 'as the test wants' } : answer
    }
    await expect(run()).rejects.toThrow('4 of 40 are not issued: fleet-')
    expect(server.all(requests)).toEqual([])
  })
})
