import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { machineId } from '../../src/system/process-identity.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { operatorOf } from './cluster-session.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

const folder = temporaryFolder('discover')
const nodes = { group: '', version: 'v1', resource: 'nodes' } as const
const nowhere = ['rotate-ca', 'discover', '--access', 'command:false {node}'] as const

let server: FakeApiServer
let run: ReturnType<typeof operatorOf>

beforeAll(async () => {
  server = await startApiServer()
  run = operatorOf(server, folder)
})

afterAll(() => server.close())

beforeEach(() => {
  for (const { metadata } of server.all(nodes)) server.remove(nodes, String(metadata.name))
})

function putNode(name: string, kubeletVersion: string, role = 'control-plane', status: object = {}): void {
  server.put(nodes, {
    metadata: { name, labels: role === 'worker' ? {} : { [`node-role.kubernetes.io/${role}`]: '' } },
    status: {
      addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
      nodeInfo: { kubeletVersion },
      ...status,
    },
  })
}

test('names nodes that cannot be reached, and writes the file for completion', async () => {
  putNode('cp-a', 'v1.36.3')
  putNode('w-a', 'v1.36.3', 'worker')
  const { exit, stdout } = await run([...nowhere, '--out', 'a.yaml', '-o', 'json'])
  expect(exit).toBe(4)
  const report = JSON.parse(stdout)
  expect(violations('Discovery', report)).toEqual([])
  expect(report.nodes).toMatchObject([
    { name: 'cp-a', role: 'control-plane', layout: 'unknown', check: { reachable: false } },
    {
      name: 'w-a',
      role: 'worker',
      check: { reachable: false, error: expect.stringContaining('status was 1') },
    },
  ])
  const text = readFileSync(join(folder, 'a.yaml'), 'utf8')
  expect(text).toContain('name: cp-a')
  expect(text).toContain('by: command')
  const again = await run([...nowhere, '--out', 'a.yaml'])
  expect(again.exit).toBe(5)
  expect(again.stderr).toContain('KCERT_FILE_EXISTS')
  const other = await run([...nowhere, '--dry-run'])
  expect(other.stdout).toMatch(/w-a +worker +unknown .*UNREACHABLE/)
})

test.each([
  ['k3s', 'v1.36.1+k3s1', 'kcert does not rotate k3s clusters'],
  ['rke2', 'v1.36.1+rke2r1', 'kcert does not rotate rke2 clusters'],
  ['managed', 'v1.36.1-eks-1a2b3c', 'kcert does not rotate managed clusters'],
])('refuses a cluster of %s and writes no file', async (layout, version, message) => {
  putNode('a', version)
  const { stdout } = await run([...nowhere, '--out', `${layout}.yaml`, '-o', 'json'])
  const report = JSON.parse(stdout)
  expect(report.blockers[0].what).toContain(message)
  expect(report).not.toHaveProperty('written')
  expect(existsSync(join(folder, `${layout}.yaml`))).toBe(false)
})

test('reports a node whose name is refused, and examines the others', async () => {
  putNode('cp-a', 'v1.36.3')
  putNode('127.1', 'v1.36.3', 'worker')
  putNode('w-b', 'v1.36.3', 'worker', { addresses: [{ type: 'InternalIP', address: '127.0.0.1' }] })
  putNode('worker.1', 'v1.36.3', 'worker')
  const access = ['--access', 'command:false {node} {address}']
  const { exit, stdout } = await run(['rotate-ca', 'discover', ...access, '--dry-run', '-o', 'json'])
  expect(exit).toBe(4)
  const report = JSON.parse(stdout)
  expect(violations('Discovery', report)).toEqual([])
  const unreached = { reachable: false, error: expect.stringContaining('status was 1') }
  expect(report.nodes).toMatchObject([
    { name: 'cp-a', access: 'false cp-a 192.0.2.1', check: unreached },
    {
      name: '127.1',
      access: 'refused',
      check: {
        reachable: false,
        error: expect.stringMatching(/^invalid node name "127\.1": .* this machine instead/),
      },
    },
    { name: 'w-b', addresses: ['w-b'], access: 'false w-b w-b', check: unreached },
    { name: 'worker.1', access: 'false worker.1 192.0.2.1', check: unreached },
  ])
})

test('refuses a version on which no rotation was tested', async () => {
  putNode('a', 'v1.29.4')
  const { stdout } = await run([...nowhere, '--dry-run', '-o', 'json'])
  const whats = JSON.parse(stdout).blockers.map(({ what }: { what: string }) => what)
  expect(whats).toContain('Kubernetes 1.29 is untested: a')
})

test('limits each request to a node, and repeats the access in the advice', async () => {
  putNode('cp-a', 'v1.36.3')
  const access = ['--access', 'command:sh -c "exec sleep 99" {node}', '--read-only']
  const { exit, stdout } = await run(['rotate-ca', 'discover', '--dry-run', ...access])
  expect(exit).toBe(4)
  expect(stdout).toContain('node "cp-a" did not respond within 20 s')
  expect(stdout).toContain(`--access 'command:sh -c "exec sleep 99" {node}' --read-only`)
}, 120_000)

test('reaches a node whose session opens more slowly than --request-timeout', async () => {
  putNode('cp-a', 'v1.36.3')
  const access = ['--access', 'command:sh -c "sleep 3; exec sh" {node}', '--read-only']
  const { stdout } = await run([
    ...['rotate-ca', 'discover', '--dry-run', ...access, '--request-timeout', '2s', '-o', 'json'],
  ])
  expect(JSON.parse(stdout).nodes).toMatchObject([{ name: 'cp-a', check: { reachable: true } }])
}, 120_000)

test.each([
  ['--access', 'telnet', 'invalid --access "telnet"'],
  ['--access', 'command:docker exec -i cp1', 'reaches the same node each time'],
  ['--local', 'z', 'unknown node "z"'],
])('%s %s is wrong usage', async (flag, value, message) => {
  putNode('a', 'v1.36.3')
  const { exit, stderr } = await run(['rotate-ca', 'discover', '--dry-run', flag, value])
  expect(exit).toBe(2)
  expect(stderr).toContain(message)
})

test('an address from a kubelet cannot become an option of the command that connects to its node', async () => {
  const mark = join(folder, 'ran')
  const option = `-oProxyCommand=touch ${mark}`
  putNode('cp-a', 'v1.36.3', 'control-plane', {
    addresses: [
      { type: 'InternalIP', address: option },
      { type: 'ExternalIP', address: '127.1' },
    ],
  })
  // Prints its arguments, and connects to nothing.
  const access = ['--access', `command:sh -c 'echo "$@" >> ${mark}.args; exit 1' x {address}`]
  const { stdout } = await run(['rotate-ca', 'discover', '--dry-run', ...access, '-o', 'json'])
  expect(JSON.parse(stdout).nodes).toMatchObject([{ name: 'cp-a', addresses: ['cp-a'] }])
  expect(readFileSync(`${mark}.args`, 'utf8')).toMatch(/^cp-a sh -c /)
  expect(readFileSync(`${mark}.args`, 'utf8')).not.toContain('Proxy')
  expect(existsSync(mark)).toBe(false)
})

test('identifies a node with the name of this machine as this machine only when its machine-id matches', async () => {
  const accessWith = async (machineID: string | undefined) => {
    putNode(hostname(), 'v1.36.3', 'control-plane', { nodeInfo: { kubeletVersion: 'v1.36.3', machineID } })
    const { stdout } = await run([...nowhere, '--dry-run', '--read-only', '-o', 'json'])
    return JSON.parse(stdout).nodes[0].access
  }
  const elsewhere = `false ${hostname()}`
  expect(await accessWith(undefined)).toBe(elsewhere)
  expect(await accessWith('')).toBe(elsewhere)
  expect(await accessWith('0123456789abcdef0123456789abcdef')).toBe(elsewhere)
  const own = machineId()
  if (own !== undefined) expect(await accessWith(own)).toBe('this machine')
})
