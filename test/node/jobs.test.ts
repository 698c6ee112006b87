import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Cluster } from '../../src/cluster/cluster.ts'
import { shellNode } from '../../src/node/shell-node.ts'
import type { NodeAccess } from '../../src/pki/node-access.ts'
import { NodeJobs, type NodeJobsOptions } from '../../src/site/node-jobs.ts'
import { policyObject } from '../../src/site/node-jobs-objects.ts'
import { systemClock } from '../../src/system/clock.ts'
import { openWith } from '../contract/stage.ts'
import { Refused } from '../fakes/api-server-store.ts'
import {
  bindings,
  type JobsCluster,
  jobs,
  namespaces,
  pods,
  policies,
  runs,
  startJobsCluster,
} from '../fakes/jobs-cluster.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'

const folder = temporaryFolder('node-jobs')
const image = 'registry.example.com/kcert@sha256:abc'
let now: Date
let cluster: JobsCluster
let connection: Cluster
let told: string[]
let opened: NodeJobs[]
let accesses: NodeAccess[]

beforeEach(async () => {
  now = new Date()
  cluster = await startJobsCluster(['cp1', 'w1'], { now: () => now })
  connection = await openWith(cluster.server.writeKubeconfig(join(folder, 'admin.conf')))
  told = []
  opened = []
  accesses = []
})

afterEach(async () => {
  for (const access of accesses) await access.close()
  for (const one of opened) await one.close()
  connection.close()
  await cluster.server.close()
})

/** Opens Jobs whose waits take no time. */
async function open(options: Partial<NodeJobsOptions> = {}): Promise<NodeJobs> {
  let ms = 0
  const pause = async (milliseconds: number): Promise<void> => {
    ms += milliseconds
    // The watch of pods needs a moment.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const random = randomBytes
  const tell = (note: string): void => void told.push(note)
  const one = await NodeJobs.open({
    ...{ cluster: connection, image, random, tell, pause, now: () => ms },
    ...options,
  })
  opened.push(one)
  return one
}

function nodeOf(from: NodeJobs, name = 'cp1'): NodeAccess {
  const access = shellNode({ name, transport: from.transport(name), clock: systemClock })
  accesses.push(access)
  return access
}

const runNames = (): string[] => cluster.server.all(namespaces).map(({ metadata }) => metadata.name)
const createdKinds = (): string[] =>
  cluster.server.calls.filter(({ verb }) => verb === 'create').map(({ resource }) => resource)

describe('before any Job', () => {
  test('names each missing permission, and creates nothing', async () => {
    cluster.server.rules = [
      { user: 'jane', verbs: ['*'], groups: ['', 'batch'], resources: ['namespaces', 'jobs', 'nodes'] },
      { user: 'jane', verbs: ['get'], groups: [''], resources: ['pods/exec'] },
    ]
    const file = cluster.server.writeKubeconfig(join(folder, 'jane.conf'), { username: 'jane' })
    const jane = await openWith(file)
    const error = await open({ cluster: jane }).catch((reason: unknown) => reason)
    expect(error).toMatchObject({
      code: 'KCERT_API_FORBIDDEN',
      message: 'not allowed to reach nodes by Jobs',
    })
    const { why, fix } = error as { why: string; fix: string }
    expect(why).toContain('create validatingadmissionpolicies.admissionregistration.k8s.io')
    expect(why).toContain('create pods/exec')
    expect(why).not.toContain('get pods/exec')
    expect(fix).toContain('--user=jane')
    expect(new Set(createdKinds())).toEqual(new Set(['selfsubjectreviews', 'selfsubjectaccessreviews']))
    jane.close()
  })

  test('refuses an API server whose certificate is not verified, and sends it nothing', async () => {
    const unverified = { 'insecure-skip-tls-verify': true, 'certificate-authority-data': undefined }
    const file = cluster.server.writeKubeconfig(join(folder, 'insecure.conf'), undefined, unverified)
    const insecure = await openWith(file)
    await expect(open({ cluster: insecure })).rejects.toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      message: expect.stringContaining('is not verified, so no node is reached through it'),
    })
    expect(cluster.server.calls).toEqual([])
    insecure.close()
  })

  test('refuses a cluster where the admission policy has no effect, and removes everything', async () => {
    cluster.hasPolicies = false
    await expect(open()).rejects.toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      message: expect.stringMatching(/^the admission policy kcert-nodes-[0-9a-f-]{8,51} has no effect$/),
    })
    expect(runNames()).toEqual([])
    expect(cluster.server.all(policies)).toEqual([])
    expect(told).toEqual([expect.stringMatching(/^removed namespace kcert-nodes-/)])
  })

  test.each(['jobs', 'pods'])(
    "reports the API server's words when another policy rejects the %s",
    async (kind) => {
      const { admit } = cluster.server
      cluster.server.admit = (key, object, username) => {
        admit?.(key, object, username)
        const words = 'admission webhook "deny.example.com" denied the request: hostPath is forbidden'
        if (key.resource === kind) throw new Refused(403, 'Forbidden', words)
      }
      await expect(open()).rejects.toMatchObject({
        code: 'KCERT_ROTATION_REFUSED',
        message: `the cluster does not admit the ${kind} that reach nodes`,
        why: expect.stringContaining('hostPath is forbidden'),
      })
      expect(runNames()).toEqual([])
    },
  )

  test('removes what a killed run left, and neither a run with active Jobs nor a young one', async () => {
    const leave = (name: string, hoursAgo: number, isActive: boolean): void => {
      const metadata = {
        name,
        labels: { 'app.kubernetes.io/name': 'kcert-nodes' },
      }
      now = new Date(Date.now() - hoursAgo * 3_600_000)
      cluster.server.put(namespaces, { kind: 'Namespace', apiVersion: 'v1', metadata })
      now = new Date()
      const status = { conditions: isActive ? [] : [{ type: 'Failed', status: 'True' }] }
      const spec = { template: { metadata: {}, spec: { nodeName: 'w1', containers: [] } } }
      cluster.server.put(jobs(name), {
        kind: 'Job',
        apiVersion: 'batch/v1',
        metadata: { name: 'w1' },
        spec,
        status,
      })
    }
    leave('kcert-nodes-00000001', 3, false)
    leave('kcert-nodes-00000002', 3, true)
    leave('kcert-nodes-00000003', 0, false)
    leave('payments', 3, false)
    await open()
    expect(runNames().slice(0, 2)).toEqual(['kcert-nodes-00000002', 'kcert-nodes-00000003'])
    expect(runNames()).toContain('payments')
    expect(told).toEqual(['removed namespace kcert-nodes-00000001 of an interrupted kcert'])
  })
})

describe('a node', () => {
  test.each([
    ['ErrImageNeverPull', 'ErrImageNeverPull: image is not present'],
    ['InvalidImageName', 'InvalidImageName: image is not present'],
    ['ErrImagePull', 'ErrImagePull: image is not present'],
    ['ImagePullBackOff', 'ImagePullBackOff: image is not present'],
    ['CreateContainerConfigError', 'CreateContainerConfigError: image is not present'],
    ['CreateContainerError', 'CreateContainerError: image is not present'],
    ['RunContainerError', 'RunContainerError: image is not present'],
  ])('cannot get or run the image: the error names both (%s)', async (reason, words) => {
    const waiting = { reason, message: 'image is not present' }
    cluster.status = () => ({ phase: 'Pending', containerStatuses: [{ name: 'node', state: { waiting } }] })
    await expect(nodeOf(await open(), 'w1').identity()).rejects.toMatchObject({
      code: 'KCERT_NODE_UNFIT',
      message: `node "w1" cannot start a container of image "${image}"`,
      why: expect.stringContaining(words),
    })
  })

  test('whose image has no sleep: the error has the words of the last attempt', async () => {
    const state = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } }
    const lastState = { terminated: { reason: 'StartError', message: 'exec: "sleep": not found' } }
    cluster.status = () => ({ phase: 'Running', containerStatuses: [{ name: 'node', state, lastState }] })
    await expect(nodeOf(await open(), 'w1').identity()).rejects.toMatchObject({
      code: 'KCERT_NODE_UNFIT',
      why: expect.stringContaining('CrashLoopBackOff: back-off 10s: exec: "sleep": not found'),
    })
  })

  test('pulls the image at the second attempt', async () => {
    const waiting = { reason: 'ErrImagePull', message: 'timeout' }
    cluster.status = (spec) => {
      setTimeout(() => {
        const [name = ''] = runNames()
        for (const pod of cluster.server.all(pods(name)))
          cluster.server.put(pods(name), { ...pod, status: runs })
      }, 20)
      return spec.nodeName === 'w1'
        ? { phase: 'Pending', containerStatuses: [{ name: 'node', state: { waiting } }] }
        : runs
    }
    const slow = await open({ pause: () => new Promise((resolve) => setTimeout(resolve, 10)), now: () => 0 })
    expect(await nodeOf(slow, 'w1').identity()).toHaveProperty('hostname')
  })

  test('is reached only by a pod on it, whatever the labels of another pod are', async () => {
    const node = nodeOf(await open())
    await nodeOf(opened[0]!, 'w1').identity()
    const [run = ''] = runNames()
    const [onW1] = cluster.server.all(pods(run))
    await node.identity()
    const onCp1 = cluster.server.all(pods(run)).find(({ metadata }) => metadata.name !== onW1!.metadata.name)
    await node.close()
    cluster.server.put(pods(run), {
      ...onW1!,
      metadata: { ...onW1!.metadata, labels: onCp1!.metadata.labels },
    })
    cluster.evict(onCp1!.metadata.name, run)
    const again = nodeOf(opened[0]!)
    await expect.poll(() => again.statFiles(['/']).catch(() => [])).toMatchObject([{ found: 'folder' }])
    const execs = cluster.server.calls.filter(({ subresource }) => subresource === 'exec')
    expect(execs.at(-1)!.name).toMatch(/^cp1-/)
  })

  test('is NotReady: the error names it, with the words of its condition', async () => {
    const status = {
      conditions: [{ type: 'Ready', status: 'Unknown', message: 'Kubelet stopped posting node status.' }],
    }
    const key = { group: '', version: 'v1', resource: 'nodes' }
    cluster.server.put(key, { kind: 'Node', apiVersion: 'v1', metadata: { name: 'w1' }, status })
    cluster.status = () => ({ phase: 'Pending' })
    await expect(nodeOf(await open(), 'w1').identity()).rejects.toMatchObject({
      code: 'KCERT_NODE_UNREACHABLE',
      message: 'node "w1" is NotReady: its kubelet starts no pod',
      why: 'Kubelet stopped posting node status.',
    })
  })

  test.each(['e1', '../../nodes', 'a b', `${'x'.repeat(253)}`])(
    'without a Node object is named: %j',
    async (name) => {
      await expect(nodeOf(await open(), name).identity()).rejects.toMatchObject({
        code: 'KCERT_NODE_UNREACHABLE',
        message: `there is no Node object ${JSON.stringify(name)}`,
      })
      expect(createdKinds().filter((kind) => kind === 'pods')).toHaveLength(1)
    },
  )

  test('whose pod was evicted gets another Job', async () => {
    const node = nodeOf(await open())
    await node.identity()
    const [run = ''] = runNames()
    const [pod] = cluster.server.all(pods(run))
    cluster.evict(pod!.metadata.name, run)
    await expect.poll(() => node.statFiles(['/']).catch(() => [])).toMatchObject([{ found: 'folder' }])
    expect(cluster.server.all(jobs(run)).map(({ metadata }) => metadata.name)).toEqual([
      expect.stringMatching(/^cp1-[0-9a-f]{10}-1$/),
      expect.stringMatching(/^cp1-[0-9a-f]{10}-2$/),
    ])
  })
})

describe('a connection', () => {
  test('that is lost between two requests is opened again', async () => {
    const node = nodeOf(await open())
    await node.identity()
    cluster.server.dropConnections()
    expect(await node.statFiles(['/'])).toMatchObject([{ found: 'folder' }])
  })

  test('waits for a kubelet that restarts', async () => {
    cluster.server.faults.add({ kind: 'unavailable', verb: 'get', resource: 'pods', times: 9 })
    expect(await nodeOf(await open()).identity()).toHaveProperty('hostname')
  })

  test('uses v4 of the protocol where the API server has no v5', async () => {
    cluster.server.execProtocols = ['v4.channel.k8s.io']
    const node = nodeOf(await open())
    const { stdout, status } = await node.run(['sh', '-c', 'cat; exit 7'], { stdin: 'bytes' })
    expect([Buffer.from(stdout).toString(), status]).toEqual(['bytes', 7])
    await node.close()
  })

  test('that may not be opened reports the right that is missing', async () => {
    const jobsOfRun = await open()
    cluster.server.exec = () => {
      throw new Refused(
        403,
        'Forbidden',
        'pods "x" is forbidden: User "jane" cannot create resource "pods/exec" in API group ""',
      )
    }
    await expect(nodeOf(jobsOfRun).identity()).rejects.toMatchObject({
      code: 'KCERT_NODE_UNREACHABLE',
      message: 'cannot connect to node "cp1" through its Job',
      why: expect.stringContaining('cannot create resource "pods/exec"'),
    })
  })

  test("uses kcert's own certificate once the API servers no longer accept the user's", async () => {
    const { server } = cluster
    const file = join(folder, 'soon.conf')
    const user = { username: 'jane', groups: ['system:masters'] }
    const jane = await openWith(server.writeKubeconfig(file, user))
    const run = await open({ cluster: jane })
    const { certificate, key } = server.issue('kcert-rotation', ['system:masters'], { usage: 'clientAuth' })
    run.lend({
      keep: async () => true,
      client: async () => ({ certificate, key }),
      trust: async () => server.caPem,
    })
    const node = nodeOf(run)
    await node.identity()
    server.refusedUsers.add('jane')
    server.dropConnections()
    expect(await node.identity()).toHaveProperty('hostname')
    expect(server.calls.at(-1)).toMatchObject({ subresource: 'exec', username: 'kcert-rotation' })
    await node.close()
    await run.close()
    expect(runNames()).toEqual([])
    jane.close()
  })
})

describe('an API server that fails', () => {
  test('starts the watch again after 410, and pods are still found', async () => {
    cluster.server.faults.add({ kind: 'expired', verb: 'watch', resource: 'pods', times: 2 })
    expect(await nodeOf(await open()).identity()).toHaveProperty('hostname')
  })

  test('that sends something else than events: no pod counts as running', async () => {
    const answer = (response: ServerResponse): void => void response.end('{"type":"ADDED","object":{}}\n')
    cluster.server.faults.add({ kind: 'hostile', verb: 'watch', resource: 'pods', times: 999, answer })
    const list = (response: ServerResponse): void => void response.end('{"items":[{}]}')
    cluster.server.faults.add({ kind: 'hostile', verb: 'list', resource: 'pods', times: 999, answer: list })
    await expect(nodeOf(await open()).identity()).rejects.toMatchObject({
      code: 'KCERT_NODE_UNREACHABLE',
      message: 'cannot connect to node "cp1" through its Job',
    })
    expect(cluster.shells).toEqual([])
  })

  test('is given the time of Retry-After', async () => {
    const run = await open()
    cluster.server.faults.add({
      ...({ kind: 'too-many-requests', verb: 'create', resource: 'jobs' } as const),
      ...{ times: 2, retryAfterSeconds: 1 },
    })
    const begun = performance.now()
    expect(await nodeOf(run).identity()).toHaveProperty('hostname')
    expect(performance.now() - begun).toBeGreaterThan(1_900)
  })

  test('ends the connection of a running program: the program has failed', async () => {
    const node = nodeOf(await open())
    await node.identity()
    const running = node.run(['sleep', '20'])
    setTimeout(() => cluster.server.dropConnections(), 300)
    await expect(running).rejects.toMatchObject({ code: 'KCERT_NODE_UNREACHABLE' })
  })

  test('sends one watch and two requests for each of many nodes', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `n${index}`)
    for (const name of names)
      cluster.server.put(
        { group: '', version: 'v1', resource: 'nodes' },
        { kind: 'Node', apiVersion: 'v1', metadata: { name } },
      )
    const run = await open()
    const begun = cluster.server.calls.length
    await Promise.all(names.map((name) => nodeOf(run, name).identity()))
    const counts: Record<string, number> = {}
    for (const { verb, resource, subresource } of cluster.server.calls.slice(begun)) {
      const what = `${verb} ${resource}${subresource ? `/${subresource}` : ''}`
      counts[what] = (counts[what] ?? 0) + 1
    }
    const each = names.length
    expect(counts).toEqual({
      ...{ 'list pods': 1, 'watch pods': 1 },
      ...{ 'get nodes': each, 'create jobs': each, 'get pods/exec': each },
    })
  })
})

describe('afterwards', () => {
  test('no namespace, policy and Job is left, and kcert says so', async () => {
    const run = await open()
    const [name = ''] = runNames()
    await nodeOf(run).identity()
    expect(cluster.server.all(jobs(name))).toHaveLength(1)
    await run.close()
    expect([runNames(), cluster.server.all(policies), cluster.server.all(bindings)]).toEqual([[], [], []])
    expect(cluster.server.all(jobs(name))).toEqual([])
    expect(told).toEqual([`removed namespace ${name} with its Jobs and pods, and its admission policy`])
  })

  test('what cannot be removed is named, with the command that removes it', async () => {
    const run = await open()
    const [name] = runNames()
    cluster.server.faults.add({ kind: 'internal', verb: 'delete', resource: 'namespaces', times: 99 })
    await run.close()
    expect(told).toEqual([
      expect.stringMatching(
        `^could not remove namespace ${name}: .*kubectl delete namespace,validatingadmissionpolicybinding,validatingadmissionpolicy ${name}$`,
      ),
    ])
    opened.length = 0
  })

  test('no object and no URL has contained a key', async () => {
    const here = join(folder, 'canary')
    mkdirSync(here)
    const canary = `canary${randomBytes(12).toString('hex')}`
    const seen: string[] = []
    cluster.server.onChange(({ object }) => void seen.push(JSON.stringify(object)))
    const { exec } = cluster.server
    cluster.server.exec = (asked) => {
      seen.push(JSON.stringify(asked))
      return exec!(asked)
    }
    const run = await open()
    await nodeOf(run).writeFile(join(here, 'ca.key'), canary, { replaces: 'absent', mode: 0o600 })
    await run.close()
    expect(readFileSync(join(here, 'ca.key'), 'utf8')).toBe(canary)
    expect(seen.length).toBeGreaterThan(5)
    for (const text of [canary, Buffer.from(canary).toString('base64').slice(0, 30)])
      expect(seen.filter((object) => object.includes(text))).toEqual([])
  })
})

test('a user name and an image are only literals in the policy', () => {
  const users = ['a" || true || "', "o'brien\\"]
  const { spec } = policyObject({ name: 'kcert-nodes-1', image, users }) as {
    spec: { validations: { expression: string }[] }
  }
  expect(spec.validations[0]?.expression).toContain(
    String.raw`request.userInfo.username in ["a\" || true || \"","o'brien\\"]`,
  )
})
