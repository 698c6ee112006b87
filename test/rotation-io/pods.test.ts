import { expect, test } from 'vitest'
import type { ObjectsApi } from '../../src/cluster/objects.ts'
import type { PodProcess, ProcessFacts } from '../../src/pki/node-access.ts'
import { readInventory } from '../../src/rotation/inventory.ts'
import type { PublishedTrust } from '../../src/rotation/snapshot.ts'
import { Certificates } from '../../src/site/certificates.ts'
import { FileReading } from '../../src/site/file-reading.ts'
import { PodWatch } from '../../src/site/pods.ts'
import type { Site } from '../../src/site/site.ts'
import { generatePrivateKey } from '../../src/x509/new-key.ts'
import { certificatePem, testCa } from '../pki/kubeadm-tree.ts'
import { MemoryNode, now } from './memory-node.ts'

// Observations of a pod's process and its volume.

const minutes = (count: number): string => new Date(now.getTime() - count * 60_000).toISOString()
const path = '/pods/uid-1/volumes/kubernetes.io~projected/token/ca.crt'

/** Returns the observation of a pod with the cluster's CA that was created 60 minutes ago. */
async function seenWith(status: object, root = '/var/lib/kubelet', argv: readonly string[] = []) {
  const [pod] = await allObservedWith({ status, root, argv })
  return pod!
}

const ownVolume = { name: 'token', projected: { sources: [{ configMap: { name: 'kube-root-ca.crt' } }] } }

/** Returns one observation for each file with a CA. */
async function allObservedWith({
  status = { containerStatuses: [{ name: 'web', state: { running: { startedAt: minutes(50) } } }] } as object,
  root = '/var/lib/kubelet',
  argv = [] as readonly string[],
  volumes = [ownVolume] as readonly { name: string }[],
  paths = [path] as readonly string[],
  published = [] as readonly PublishedTrust[],
  content = 'no CA in it, which is nothing to this test',
  image = 'web:1',
  processes = [] as readonly PodProcess[],
  searched = [] as string[],
  isObservedAgain = false,
  workloads = {},
}) {
  const inventory = await readInventory(
    JSON.stringify({
      apiVersion: 'kcert/v1',
      kind: 'Inventory',
      workloads,
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
          volumes,
          containers: [{ name: 'web', image, volumeMounts: volumes.map(({ name }) => ({ name })) }],
        },
        status,
      }
    },
  } as Pick<ObjectsApi, 'list'> as ObjectsApi
  const node = new MemoryNode('w1', { files: new Map() } as never)
  for (const one of paths) {
    await node.access.writeFile(`${root}${one}`, content, { replaces: 'absent' })
  }
  node.processes = [{ program: 'kubelet', argv: ['kubelet', ...argv] } as never as ProcessFacts]
  const certificates = new Certificates()
  const reading = new FileReading(certificates)
  const site = { inventory, objects, clock: () => now, certificates, reading, clockAheadMs: async () => 0 }
  node.podProcesses = processes
  const watch = new PodWatch(site as never as Site)
  const observe = () =>
    watch.pods(
      () => node.access,
      published,
      (names, each) => Promise.all(names.map(each)),
    )
  const pods = await observe()
  if (isObservedAgain) await observe()
  searched.push(...node.searched)
  return pods
}

test('takes the age of a process from its container in every observation', async () => {
  const running = { name: 'web', state: { running: { startedAt: minutes(50) } } }
  const pod = await seenWith({ containerStatuses: [running] })
  expect(pod.startedAtMs).toBe(Date.parse(minutes(50)))
})

test('treats a process that has never run as one that starts now at the earliest', async () => {
  const waiting = { name: 'web', state: { waiting: { reason: 'ImagePullBackOff' } } }
  const pod = await seenWith({ containerStatuses: [waiting] })
  expect(pod.startedAtMs).toBe(now.getTime())
})

test('keeps the age of a terminated process that waits for its next start', async () => {
  const ended = {
    name: 'web',
    state: { waiting: { reason: 'CrashLoopBackOff' } },
    lastState: { terminated: { startedAt: minutes(5) } },
  }
  const pod = await seenWith({ containerStatuses: [ended] })
  expect(pod.startedAtMs).toBe(Date.parse(minutes(5)))
})

test('finds a volume in the --root-dir of the kubelet', async () => {
  const running = { containerStatuses: [{ name: 'web', state: { running: { startedAt: minutes(50) } } }] }
  const pod = await seenWith(running, '/data/kubelet', ['--root-dir=/data/kubelet/'])
  expect(pod.volume?.trust).toEqual([])
  expect((await seenWith(running, '/data/kubelet')).volume).toBeUndefined()
})

const signerName = 'kubernetes.io/kube-apiserver-serving'
const bundleName = 'kubernetes.io:kube-apiserver-serving:0123456789abcdef01234567'

/** Returns a volume in the format of `kubectl apply`, with this ClusterTrustBundle. */
function bundleVolume(source: object) {
  return { name: 'cas', projected: { sources: [{ clusterTrustBundle: { path: 'api/ca.pem', ...source } }] } }
}

const bundlePath = '/pods/uid-1/volumes/kubernetes.io~projected/cas/api/ca.pem'

test.for<[string, object, object[]]>([
  ['every bundle of the signer', { signerName, labelSelector: {} }, [{}]],
  ['bundles of the signer with a label', { signerName, labelSelector: { matchLabels: { a: 'b' } } }, [{}]],
  ['one bundle of the signer, by name', { name: bundleName }, [{ name: bundleName }]],
  ['no bundle, for want of a selector', { signerName }, []],
  ['a bundle of another signer', { signerName: 'example.com/ours', labelSelector: {} }, []],
  ['a bundle of no signer', { name: 'ours' }, []],
])('a volume with %s', async ([, source, expected]) => {
  const pods = await allObservedWith({ volumes: [bundleVolume(source)], paths: [bundlePath] })
  expect(pods.map(({ trustBundle }) => trustBundle)).toEqual(expected)
  expect(pods.every(({ volume }) => volume !== undefined)).toBe(true)
})

test('returns two files for a pod with its own CA and a ClusterTrustBundle', async () => {
  const volumes = [ownVolume, bundleVolume({ signerName, labelSelector: {} })]
  const pods = await allObservedWith({ volumes, paths: [path, bundlePath] })
  expect(pods.map(({ id, trustBundle }) => [id, trustBundle])).toEqual([
    ['default/web', undefined],
    ['default/web', {}],
  ])
})

test('does not read a file outside its volume', async () => {
  const volumes = [bundleVolume({ signerName, labelSelector: {}, path: '../../../../secret.pem' })]
  const paths = ['/pods/uid-1/volumes/kubernetes.io~projected/cas/../../../../secret.pem']
  const pods = await allObservedWith({ volumes, paths })
  expect(pods.map(({ volume }) => volume)).toEqual([undefined])
})

test('a volume that was rewritten long after its bundle was published has unchanged content', async () => {
  const volumes = [bundleVolume({ signerName, labelSelector: {} })]
  const bundle = { kind: 'ClusterTrustBundle', name: bundleName, isActive: true, trust: [] } as const
  const changed = async (changedAtMs: number) => {
    const published = [{ ...bundle, changedAtMs }]
    const [pod] = await allObservedWith({ volumes, paths: [bundlePath], published })
    return pod!.volume!.changedAtMs > pod!.startedAtMs
  }
  expect(await changed(Date.parse(minutes(53)))).toBe(false)
  expect(await changed(Date.parse(minutes(51)))).toBe(true)
})

const id = 'ab'.repeat(32)
const newClientGo = ['dep\tk8s.io/client-go\tv0.36.3\th1:a=']
const oldClientGo = ['dep\tk8s.io/client-go\tv0.35.4\th1:a=']
const monorepo = ['dep\tk8s.io/client-go\tv0.0.0', '=>\t./staging/src/k8s.io/client-go\t(devel)']
const first: PodProcess = {
  podUid: 'uid-1',
  container: id,
  isFirst: true,
  ageMs: 3_000_000,
  build: newClientGo,
  settings: [],
}
const proxy = (minor: number) => `registry.k8s.io/kube-proxy:v1.${minor}.2`
const ca = (name: string) =>
  certificatePem(testCa(name, generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' }), now).certificate)
const oneCa = ca('old')
const bothCas = `${oneCa}${ca('new')}`

/** Returns the observation of a pod that started before its volume contained both CAs. */
async function behind(given: Partial<Parameters<typeof allObservedWith>[0]>) {
  const state = { running: { startedAt: minutes(50) } }
  const searched: string[] = []
  const [pod] = await allObservedWith({
    status: { containerStatuses: [{ name: 'web', containerID: `containerd://${id}`, state }] },
    published: [
      {
        kind: 'ConfigMap',
        name: 'default/kube-root-ca.crt',
        isActive: true,
        trust: [],
        changedAtMs: Date.parse(minutes(10)),
      },
    ],
    content: bothCas,
    searched,
    ...given,
  })
  return { rereads: pod!.rereads, readsOnce: pod!.readsOnce, searched }
}

const unread = 'its program cannot be read on its node'

test.for<[string, Partial<Parameters<typeof allObservedWith>[0]>, string | undefined]>([
  ['whose client-go reads a CA file again', { processes: [first] }, undefined],
  ['of an older client-go', { processes: [{ ...first, build: oldClientGo }] }, 'its client-go is v0.35.4'],
  ['without client-go', { processes: [{ ...first, build: [] }] }, 'its program does not use client-go'],
  [
    'that turns it off',
    { processes: [{ ...first, settings: ['KUBE_FEATURE_ClientsAllowCARotation=false'] }] },
    'ClientsAllowCARotation is turned off',
  ],
  ['without visible processes', {}, unread],
  ['whose program could not be searched', { processes: [(({ build: _, ...rest }) => rest)(first)] }, unread],
  ['whose settings could not be read', { processes: [(({ settings: _, ...rest }) => rest)(first)] }, unread],
  [
    'with a visible process of another container',
    { processes: [{ ...first, container: 'cd'.repeat(32) }] },
    unread,
  ],
  [
    'with a lasting process of another program',
    { processes: [first, { ...first, isFirst: false, ageMs: 60_000, build: [] }] },
    'its program does not use client-go',
  ],
  [
    'that has just started another program',
    { processes: [first, { ...first, isFirst: false, ageMs: 59_999, build: [] }] },
    undefined,
  ],
  [
    'with only a process that just started',
    { processes: [{ ...first, isFirst: false, ageMs: 59_999 }] },
    unread,
  ],
  ['of kube-proxy 1.36 that cannot be read', { image: proxy(36) }, undefined],
  ['of kube-proxy 1.35 that cannot be read', { image: proxy(35) }, unread],
  [
    'of kube-proxy 1.36 by its image, and 1.35 by its program',
    { image: proxy(36), processes: [{ ...first, build: oldClientGo }] },
    'its client-go is v0.35.4',
  ],
  [
    "of Kubernetes' own kube-proxy 1.36",
    { image: proxy(36), processes: [{ ...first, build: monorepo }] },
    undefined,
  ],
  [
    "of Kubernetes' own kube-proxy 1.35",
    { image: proxy(35), processes: [{ ...first, build: monorepo }] },
    'its client-go is v0.0.0',
  ],
])('a pod %s', async ([, given, readsOnce]) => {
  const pod = await behind(given)
  expect([pod.rereads, pod.readsOnce]).toEqual([readsOnce === undefined, readsOnce])
})

test('cannot read a pod whose container is missing in the API server', async () => {
  const status = { containerStatuses: [{ name: 'web', state: { running: { startedAt: minutes(50) } } }] }
  expect((await behind({ status, processes: [first] })).readsOnce).toBe(unread)
})

test('prefers the setting of the operator to the facts of a program', async () => {
  const workloads = { reloadingCa: [{ namespace: 'default', name: 'web' }] }
  const pod = await behind({ workloads, processes: [{ ...first, build: oldClientGo }] })
  expect(pod).toEqual({ rereads: true, readsOnce: undefined, searched: [] })
})

test('searches a program once, and only if its pod would otherwise restart', async () => {
  expect((await behind({ processes: [first], isObservedAgain: true })).searched).toEqual(['uid-1'])
  expect((await behind({ isObservedAgain: true })).searched).toEqual(['uid-1'])
  expect((await behind({ processes: [first], content: oneCa })).searched).toEqual([])
  expect((await behind({ processes: [first], published: [] })).searched).toEqual([])
})
