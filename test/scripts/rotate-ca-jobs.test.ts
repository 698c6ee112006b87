import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readInventory } from '../../src/rotation/inventory.ts'
import { type JobsCluster, namespaces, policies, startJobsCluster } from '../fakes/jobs-cluster.ts'
import { operatorOf } from './cluster-session.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Every node of this cluster is this machine, which is no node, and whose /etc/kubernetes is as it may be.

const folder = temporaryFolder('rotate-ca-jobs')
const image = 'registry.example.com/kcert:1'
let cluster: JobsCluster
let run: ReturnType<typeof operatorOf>

beforeAll(async () => {
  cluster = await startJobsCluster(['w1'])
  const key = { group: '', version: 'v1', resource: 'nodes' }
  const control = { 'node-role.kubernetes.io/control-plane': '' }
  const node = cluster.server.peek(key, 'w1')
  const status = { ...Object(node?.status), nodeInfo: { kubeletVersion: 'v1.36.3' } }
  cluster.server.put(key, { ...node, metadata: { name: 'w1', labels: control }, status })
  run = operatorOf(cluster.server, folder)
})

afterAll(() => cluster.server.close())

test('discover reaches nodes through Jobs, removes them, and writes the access', async () => {
  const { stdout, stderr } = await run([
    ...['rotate-ca', 'discover', '--access', `jobs:${image}`, '--read-only', '-o', 'json'],
  ])
  const report = JSON.parse(stdout)
  expect(violations('Discovery', report)).toEqual([])
  expect(report.nodes).toMatchObject([
    { name: 'w1', access: `Job with ${image}`, check: { reachable: true } },
  ])
  expect(stderr).toMatch(
    /^removed namespace kcert-nodes-[0-9a-f-]{8,51} with its Jobs and pods, and its admission policy$/m,
  )
  expect([cluster.server.all(namespaces), cluster.server.all(policies)]).toEqual([[], []])
  expect(readFileSync(join(folder, 'kcert.yaml'), 'utf8')).toContain(
    `access:\n  by: jobs\n  image: "${image}"\n`,
  )
})

test.each([
  ['jobs', 'the form is jobs:IMAGE'],
  ['jobs:', 'the form is jobs:IMAGE'],
  ['jobs:a b', 'the form is jobs:IMAGE'],
  ['jobs:-x', 'the form is jobs:IMAGE'],
])('refuses --access %j', async (access, why) => {
  const { exit, stderr } = await run(['rotate-ca', 'discover', '--access', access])
  expect(exit).toBe(2)
  expect(stderr).toContain(why)
})

test('refuses flags of SSH for access by Jobs', async () => {
  const { exit, stderr } = await run([
    ...['rotate-ca', 'discover', '--access', `jobs:${image}`, '--become', 'sudo'],
  ])
  expect(exit).toBe(2)
  expect(stderr).toContain('--ssh-user, --ssh-config and --become are not for access by Jobs')
})

test.each([[['rotate-ca', 'recover', '--dry-run']], [['kubelet', 'forecast', '--all-nodes']]])(
  '%j reaches nodes by Jobs while an API server responds',
  async (args) => {
    const { stderr } = await run(args)
    expect(stderr).toMatch(/^removed namespace kcert-nodes-[0-9a-f-]{8,51} with its Jobs and pods/m)
    expect(stderr).not.toContain('by a Job')
    expect(cluster.server.all(namespaces)).toEqual([])
  },
)

test.each([[['rotate-ca', 'recover', '--dry-run']], [['renew', '--all-nodes']]])(
  '%j names another access while no API server accepts the kubeconfig',
  async (args) => {
    cluster.server.refusedUsers.add('kubernetes-admin')
    const { exit, stderr } = await run(args)
    cluster.server.refusedUsers.clear()
    expect(exit).toBe(6)
    expect(stderr).toContain('no Job can reach the nodes')
    expect(stderr).toContain('Jobs need an API server that accepts your kubeconfig')
    const next = /^.*(sed -e .*)$/m.exec(stderr)?.[1] ?? ''
    execFileSync('sh', ['-c', next], { cwd: folder })
    const { access } = await readInventory(readFileSync(join(folder, 'kcert-ssh.yaml'), 'utf8'))
    expect(access).toEqual({ by: 'ssh', host: '{address}' })
  },
)
