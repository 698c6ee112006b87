import { duplexPair } from 'node:stream'
import { expect, test } from 'vitest'
import type { ProcessFacts } from '../../src/pki/node-access.ts'
import { restartAll } from '../../src/renewal-io/renewal-restarts.ts'
import { type NeededRestart, surveySite } from '../../src/renewal-io/renewing.ts'
import type { Site } from '../../src/site/site.ts'
import { controlPlaneTree } from '../pki/kubeadm-tree.ts'
import { MemoryNode } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

// Three etcd members in memory. Each restarts as soon as its manifest changes, and responds on its metrics port.

const names = ['cp1', 'cp2', 'cp3']
const manifest = '/etc/kubernetes/manifests/etcd.yaml'
const argv = ['etcd', '--listen-metrics-urls=http://127.0.0.1:2381']
const pod = `apiVersion: v1
kind: Pod
metadata: {name: etcd}
spec:
  containers:
  - name: etcd
    command: [${argv.join(', ')}]
`

/**
 * Members in `unwell` respond with 503 until they restart. Kubelets in `stuck` read a changed manifest only when they restart.
 */
async function members(unwell: readonly string[] = [], stuck: readonly string[] = []) {
  const events: string[] = []
  const restarted = new Set<string>()
  let seconds = 0
  /** A process is not healthy immediately after its start. */
  const refusals = new Map<string, number>()
  const nodes = new Map(
    names.map((name) => {
      const node = new MemoryNode(name, controlPlaneTree({ madeAt: new Date('2026-11-01T00:00:00Z') }))
      node.files.set(manifest, { content: Buffer.from(pod), mode: 0o600 })
      const isTakenUp = (): boolean => !stuck.includes(name) || restarted.has(name)
      Object.defineProperty(node, 'processes', { get: () => [running(node, isTakenUp())] })
      const { restartUnit } = node.access
      node.access.restartUnit = (unit, call) => {
        events.push(`restart ${unit} on ${name}`)
        restarted.add(name)
        return restartUnit(unit, call)
      }
      const { writeFile } = node.access
      node.access.writeFile = (path, content, options) => {
        if (path === manifest) {
          events.push(`start ${name}`)
          refusals.set(name, 2)
        }
        return writeFile(path, content, options)
      }
      return [name, node]
    }),
  )
  const isNew = (name: string): boolean => starts(nodes.get(name)!) > 0
  const site: Site = {
    ...(await sitesOf(nodes))(),
    startedAtMs: async (_, { startTicks }) => startTicks,
    clock: () => {
      seconds += 20
      return new Date(Date.UTC(2026, 10, 3, 0, 0, seconds))
    },
    dial: (name) => {
      const left = refusals.get(name) ?? 0
      refusals.set(name, left - 1)
      const isWell = left <= 0 && (isNew(name) || !unwell.includes(name))
      const status = isWell ? '200 OK' : '503 Service Unavailable'
      events.push(`${name} says ${status.slice(0, 3)}`)
      const [ours, theirs] = duplexPair()
      theirs.once('data', () => theirs.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`))
      return ours
    },
  }
  return { site, events }
}

/** Returns how often the manifest changed, from its annotation. */
function starts({ files }: MemoryNode): number {
  const text = files.get(manifest)!.content.toString()
  return Number(/ca-rotation\W+(\d+)/.exec(text)?.[1] ?? 0)
}

function running(node: MemoryNode, isTakenUp: boolean): ProcessFacts {
  const startedAt = new Date('2026-11-02T00:00:00Z')
  return { program: 'etcd', pid: 1, startTicks: isTakenUp ? starts(node) : 0, startedAt, argv }
}

async function restart({ site, events }: Awaited<ReturnType<typeof members>>): Promise<string[]> {
  const survey = await surveySite(site, () => false)
  const restarts = names.map((node): NeededRestart => ({ node, program: 'etcd', reason: 'new-certificate' }))
  events.length = 0
  await restartAll(site, survey, restarts, new Map(), () => {})
  return events
}

test('waits for each etcd member before restarting the next one', async () => {
  const events = await restart(await members())
  const order = events.filter((event) => event.startsWith('start '))
  expect(order).toEqual(names.map((name) => `start ${name}`))
  for (const name of ['cp1', 'cp2']) {
    const begin = events.indexOf(`start ${name}`)
    const next = events.findIndex((event, index) => index > begin && event.startsWith('start '))
    expect(events.slice(begin, next).findLast((event) => event.startsWith(`${name} says`))).toBe(
      `${name} says 200`,
    )
  }
})

test('restarts, once, a kubelet that does not read the manifest of etcd', async () => {
  const events = await restart(await members([], ['cp2']))
  expect(events.filter((event) => event.startsWith('restart'))).toEqual(['restart kubelet.service on cp2'])
  expect(events.indexOf('restart kubelet.service on cp2')).toBeLessThan(events.indexOf('start cp3'))
})

test('restarts the unhealthy member first', async () => {
  const events = await restart(await members(['cp2']))
  expect(events.filter((event) => event.startsWith('start '))).toEqual([
    'start cp2',
    'start cp1',
    'start cp3',
  ])
})
