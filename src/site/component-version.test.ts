import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { certificatePem, keyPem, testCa, testKey } from '../../test/pki/kubeadm-tree.ts'
import type { NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import { componentVersion, imageVersion } from './component-version.ts'
import type { Definition } from './definitions.ts'
import type { Site } from './site.ts'

const servers: Server[] = []
afterAll(() => {
  for (const server of servers) server.close()
})

/** Starts an API server that answers GET /version this way, and everything else with 404. */
async function apiServer(status: number, body: string): Promise<ProcessFacts> {
  const key = testKey('component version')
  const { certificate } = testCa('kubernetes', key, new Date('2026-01-01T00:00:00Z'))
  const server = createServer(
    { cert: certificatePem(certificate), key: keyPem(key) },
    (request, response) => {
      response.statusCode = request.url === '/version' ? status : 404
      response.end(body)
    },
  )
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { argv: ['kube-apiserver', `--secure-port=${port}`] } as unknown as ProcessFacts
}

const site = { dial: (_node, host, port) => connect(port, host) } as Pick<Site, 'dial'> as Site

const api: Pick<Definition, 'name' | 'runsAs' | 'argv' | 'image'> = {
  name: 'kube-apiserver',
  runsAs: 'static-pod',
  argv: ['kube-apiserver'],
  image: 'registry.k8s.io/kube-apiserver:v1.37.2',
}
const scheduler = { ...api, name: 'kube-scheduler', image: 'registry.k8s.io/kube-scheduler:v1.36.3' } as const

/** A node whose files and programs are never read. */
const silent = { name: 'cp1' } as NodeAccess

test('returns the version that a running API server reports, even if its manifest has another', async () => {
  const running = await apiServer(200, '{"major":"1","minor":"36","gitVersion":"v1.36.3"}')
  expect(await componentVersion(site, silent, api, running)).toBe('v1.36.3')
})

test.each([
  [401, '{"gitVersion":"v1.36.3"}'],
  [200, '{"gitVersion":36}'],
  [200, '{"gitVersion":"v1.36.3\\u001b[31m"}'],
  [200, 'null'],
  [200, 'v1.36.3'],
])('returns the image tag for an API server that responds %i %s', async (status, body) => {
  expect(await componentVersion(site, silent, api, await apiServer(status, body))).toBe('v1.37.2')
})

test('returns the image tag for a stopped API server and for other components', async () => {
  const running = await apiServer(200, '{"gitVersion":"v1.35.4"}')
  expect(await componentVersion(site, silent, api, undefined)).toBe('v1.37.2')
  expect(await componentVersion(site, silent, scheduler, running)).toBe('v1.36.3')
})

test.each([
  ['registry.k8s.io/kube-apiserver:v1.36.3', 'v1.36.3'],
  ['localhost:5000/kube-apiserver:v1.36.3-vendor.1', 'v1.36.3-vendor.1'],
  [`kube-apiserver:v1.36.3@sha256:${'0'.repeat(64)}`, 'v1.36.3'],
  [`registry.k8s.io/kube-apiserver@sha256:${'0'.repeat(64)}`, undefined],
  ['localhost:5000/kube-apiserver', undefined],
  ['registry.k8s.io/kube-apiserver:latest', undefined],
  ['registry.k8s.io/kube-apiserver:v1.36', undefined],
  ['', undefined],
])('reads from the image %s the version %s', (image, version) => {
  expect(imageVersion(image)).toBe(version)
})

const program = '/usr/local/bin/kube-scheduler'
const unit = { name: 'kube-scheduler', runsAs: 'unit', argv: [program, '--config=/x'] } as const

function nodeWith(facts: Record<string, object> = {}, said = 'Kubernetes v1.36.3\n') {
  const ran: string[] = []
  const node = {
    name: 'cp1',
    statFiles: async (paths: readonly string[]) =>
      paths.map((path) => ({
        path,
        found: path === program ? 'file' : 'folder',
        uid: 0,
        gid: 0,
        mode: 0o755,
        ...facts[path],
      })),
    run: async (argv: readonly string[]) => {
      ran.push(argv.join(' '))
      return { status: 0, stdout: Buffer.from(said), stderr: '' }
    },
  } as unknown as NodeAccess
  return { node, ran }
}

test("returns the version that a unit's program prints", async () => {
  const { node, ran } = nodeWith()
  expect(await componentVersion(site, node, unit, undefined)).toBe('v1.36.3')
  expect(ran).toEqual([`${program} --version`])
})

test.each([
  ['belongs to another user', { [program]: { uid: 1000 } }],
  ['can be written by others', { [program]: { mode: 0o757 } }],
  ['is in a folder of another user', { '/usr/local/bin': { uid: 1000 } }],
  ['is below a folder that another group can write', { '/usr/local': { mode: 0o775, gid: 50 } }],
  ['is below a folder that everyone can write', { '/usr/local': { mode: 0o1777 } }],
  ['does not exist', { [program]: { found: 'absent', uid: undefined } }],
  ['is a folder', { [program]: { found: 'folder' } }],
])('does not run a program that %s, and returns no version', async (_, facts) => {
  const { node, ran } = nodeWith(facts)
  expect(await componentVersion(site, node, unit, undefined)).toBeUndefined()
  expect(ran).toEqual([])
})

test.each([
  ['kube-scheduler', 'Kubernetes v1.36.3\n'],
  [program, 'v1.36.3\n'],
  [program, 'Kubernetes v1.36.3\nKubernetes v1.37.0\n'],
  [program, ''],
])('returns no version for a unit that starts %s, which prints %j', async (path, said) => {
  const { node } = nodeWith({}, said)
  expect(await componentVersion(site, node, { ...unit, argv: [path] }, undefined)).toBeUndefined()
})
