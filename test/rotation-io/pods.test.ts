import { expect, test } from 'vitest'
import type { ObjectsApi } from '../../src/cluster/objects.ts'
import type { ProcessFacts } from '../../src/pki/node-access.ts'
import { readInventory } from '../../src/rotation/inventory.ts'
import { Certificates } from '../../src/rotation-io/certificates.ts'
import { FileReading } from '../../src/rotation-io/file-reading.ts'
import { PodWatch } from '../../src/rotation-io/pods.ts'
import type { Site } from '../../src/rotation-io/site.ts'
import { MemoryNode, now } from './memory-node.ts'

// What is seen of a pod's process and its volume.

const minutes = (count: number): string => new Date(now.getTime() - count * 60_000).toISOString()
const path = '/pods/uid-1/volumes/kubernetes.io~projected/token/ca.crt'

/** A pod with the cluster's CA, made 60 minutes ago, as the watch sees it. */
async function seenWith(status: object, root = '/var/lib/kubelet', argv: readonly string[] = []) {
  const inventory = await readInventory(
    JSON.stringify({
      apiVersion: 'kcert/v1',
      kind: 'Inventory',
      nodes: [
        {
          name: 'w1',
          role: 'control-plane',
          addresses: ['192.0.2.1'],
          layout: 'kubeadm',
          access: { by: 'local' },
        },
      ],
    }),
  )
  const objects = {
    async *list() {
      yield {
        metadata: { name: 'web', namespace: 'default', uid: 'uid-1', creationTimestamp: minutes(60) },
        spec: {
          nodeName: 'w1',
          volumes: [{ name: 'token', projected: { sources: [{ configMap: { name: 'kube-root-ca.crt' } }] } }],
          containers: [{ name: 'web', image: 'web:1', volumeMounts: [{ name: 'token' }] }],
        },
        status,
      }
    },
  } as Pick<ObjectsApi, 'list'> as ObjectsApi
  const node = new MemoryNode('w1', { files: new Map() } as never)
  await node.access.writeFile(`${root}${path}`, 'no CA in it, which is nothing to this test', {
    replaces: 'absent',
  })
  node.processes = [{ program: 'kubelet', argv: ['kubelet', ...argv] } as never as ProcessFacts]
  const certificates = new Certificates()
  const reading = new FileReading(certificates)
  const site = { inventory, objects, clock: () => now, certificates, reading, clockAheadMs: async () => 0 }
  const [pod] = await new PodWatch(site as never as Site).pods(
    () => node.access,
    [],
    (names, look) => Promise.all(names.map(look)),
  )
  return pod!
}

test('a process is as old as its container, however often the pod was looked at', async () => {
  const running = { name: 'web', state: { running: { startedAt: minutes(50) } } }
  const pod = await seenWith({ containerStatuses: [running] })
  expect(pod.startedAtMs).toBe(Date.parse(minutes(50)))
})

test('one that has never run has read nothing of its volume, and begins now at the earliest', async () => {
  const waiting = { name: 'web', state: { waiting: { reason: 'ImagePullBackOff' } } }
  const pod = await seenWith({ containerStatuses: [waiting] })
  expect(pod.startedAtMs).toBe(now.getTime())
})

test('one that ended and waits for its next start is as old as it was', async () => {
  const ended = {
    name: 'web',
    state: { waiting: { reason: 'CrashLoopBackOff' } },
    lastState: { terminated: { startedAt: minutes(5) } },
  }
  const pod = await seenWith({ containerStatuses: [ended] })
  expect(pod.startedAtMs).toBe(Date.parse(minutes(5)))
})

test("a volume is found below the kubelet's own --root-dir", async () => {
  const running = { containerStatuses: [{ name: 'web', state: { running: { startedAt: minutes(50) } } }] }
  const pod = await seenWith(running, '/data/kubelet', ['--root-dir=/data/kubelet/'])
  expect(pod.volume?.trust).toEqual([])
  expect((await seenWith(running, '/data/kubelet')).volume).toBeUndefined()
})
