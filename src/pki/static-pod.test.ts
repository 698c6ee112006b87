import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { kubeadmManifests } from '../../test/node/kubeadm-files.ts'
import { flagsOf, flagWords } from './component-flags.ts'
import { editStaticPod, readStaticPod } from './static-pod.ts'
import '../../test/seeded.ts'

const manifests = kubeadmManifests()
const controllerManager = manifests['kube-controller-manager']!
const K = '/etc/kubernetes/pki/kcert'

/** As kubeadm 1.33 writes it: every flag sorted, probes with port numbers. */
const manifest133 = `apiVersion: v1
kind: Pod
metadata:
  labels:
    component: kube-controller-manager
    tier: control-plane
  name: kube-controller-manager
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-controller-manager
    - --bind-address=127.0.0.1
    - --cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt
    - --cluster-signing-key-file=/etc/kubernetes/pki/ca.key
    - --root-ca-file=/etc/kubernetes/pki/ca.crt
    - --use-service-account-credentials=true
    - --v=2
    image: registry.k8s.io/kube-controller-manager:v1.33.13
    livenessProbe:
      failureThreshold: 8
      httpGet:
        host: 127.0.0.1
        path: /healthz
        port: 10257
        scheme: HTTPS
    name: kube-controller-manager
  hostNetwork: true
status: {}
`

/** As kubeadm 1.37 writes it: a named port, and extraArgs after the defaults in their order, one name twice. */
const manifest137 = manifest133
  .replace('v1.33.13', 'v1.37.2')
  .replace('    - --v=2\n', '    - --v=2\n    - --allocate-node-cidrs=true\n    - --v=4\n')
  .replace('port: 10257', 'port: probe-port')
  .replace(
    '    name: kube-controller-manager\n  hostNetwork',
    '    name: kube-controller-manager\n    ports:\n    - containerPort: 10257\n      name: probe-port\n      protocol: TCP\n  hostNetwork',
  )

test.each([
  ['1.33', manifest133, 'v1.33.13', '2'],
  ['1.37', manifest137, 'v1.37.2', '4'],
])('reads and edits a manifest of kubeadm %s, and keeps everything else', async (_, text, version, v) => {
  const [container] = (await readStaticPod(text)).containers
  expect(container).toMatchObject({
    image: `registry.k8s.io/kube-controller-manager:${version}`,
    flags: { v },
  })
  const program = 'kube-controller-manager'
  const edited = await editStaticPod(text, program, {
    flags: { 'root-ca-file': `${K}/bundle.crt`, v: '5' },
    annotations: { 'ca-rotation': '1' },
  })
  expect((await readStaticPod(edited)).containers[0]!.flags).toEqual({
    ...container!.flags,
    'root-ca-file': `${K}/bundle.crt`,
    v: '5',
  })
  const back = await editStaticPod(edited, program, {
    flags: { 'root-ca-file': '/etc/kubernetes/pki/ca.crt', v },
    annotations: { 'ca-rotation': null },
  })
  expect(back).toBe(text)
  const without = await editStaticPod(text, program, { flags: { v: null } })
  expect((await readStaticPod(without)).containers[0]!.flags).not.toHaveProperty('v')
})

describe("kubeadm's own manifests", () => {
  test('have the flags of their components', async () => {
    const pod = await readStaticPod(controllerManager)
    expect(pod.name).toBe('kube-controller-manager')
    expect(pod.containers[0]).toMatchObject({
      program: 'kube-controller-manager',
      flags: {
        'root-ca-file': '/etc/kubernetes/pki/ca.crt',
        'cluster-signing-cert-file': '/etc/kubernetes/pki/ca.crt',
        'cluster-signing-key-file': '/etc/kubernetes/pki/ca.key',
        'leader-elect': 'true',
      },
    })
  })

  test('change in three lines of the controller-manager in phase 2, and in no other', async () => {
    const edited = await editStaticPod(controllerManager, 'kube-controller-manager', {
      flags: {
        'root-ca-file': `${K}/bundle.crt`,
        'cluster-signing-cert-file': `${K}/old/ca.crt`,
        'cluster-signing-key-file': `${K}/old/ca.key`,
      },
    })
    const lines = (text: string): string[] => text.split('\n')
    const changed = lines(edited).filter((line, index) => line !== lines(controllerManager)[index])
    expect(lines(edited)).toHaveLength(lines(controllerManager).length)
    expect(changed).toEqual([
      `    - --cluster-signing-cert-file=${K}/old/ca.crt`,
      `    - --cluster-signing-key-file=${K}/old/ca.key`,
      `    - --root-ca-file=${K}/bundle.crt`,
    ])
  })

  test.each(Object.keys(manifests))(
    '%s: adding flags and removing them restores every byte',
    async (name) => {
      const text = manifests[name]!
      const there = await editStaticPod(text, name, {
        flags: { 'shutdown-delay-duration': '10s' },
        annotations: { 'ca-rotation': '1' },
      })
      expect(there).not.toBe(text)
      const back = await editStaticPod(there, name, {
        flags: { 'shutdown-delay-duration': null },
        annotations: { 'ca-rotation': null },
      })
      expect(back).toBe(text)
    },
  )

  test('get a new annotations map when there is none', async () => {
    const edited = await editStaticPod(manifests['kube-scheduler']!, 'kube-scheduler', {
      annotations: { 'ca-rotation': '1' },
    })
    expect(edited).toContain('\n  annotations:\n    ca-rotation: "1"\n')
    expect((await readStaticPod(edited)).annotations).toEqual({ 'ca-rotation': '1' })
  })

  test('rejects a program that no container runs, or that a shell starts', async () => {
    await expect(editStaticPod(controllerManager, 'kube-scheduler', {})).rejects.toMatchObject({
      code: 'KCERT_EDIT_REFUSED',
      why: expect.stringContaining('it runs: kube-controller-manager'),
    })
    const shell = 'kind: Pod\nspec:\n  containers:\n  - command: [/bin/sh, -c, exec kube-scheduler]\n'
    await expect(editStaticPod(shell, 'kube-scheduler', {})).rejects.toMatchObject({
      why: expect.stringContaining('it runs: sh'),
    })
    await expect(editStaticPod('kind: Service\n', 'etcd', {})).rejects.toMatchObject({
      code: 'KCERT_MANIFEST_MALFORMED',
    })
  })

  test('sets and removes any flags and keeps all others', async () => {
    const name = fc.constantFrom(
      'root-ca-file',
      'leader-elect',
      'v',
      'new-flag',
      'controllers',
      'tls-min-version',
    )
    const value = fc.option(fc.oneof(fc.constantFrom('true', '/a b', '*,-x', 'a: b', ''), fc.string()), {
      nil: null,
    })
    await fc.assert(
      fc.asyncProperty(fc.dictionary(name, value, { noNullPrototype: true }), async (flags) => {
        const before = (await readStaticPod(controllerManager)).containers[0]!
        const edited = await editStaticPod(controllerManager, 'kube-controller-manager', { flags })
        const after = (await readStaticPod(edited)).containers[0]!
        const wanted = Object.entries({ ...before.flags, ...flags }).filter(([, to]) => to !== null)
        expect(after.flags).toEqual(Object.fromEntries(wanted))
        expect({ ...after, argv: [], flags: {} }).toEqual({ ...before, argv: [], flags: {} })
      }),
      { numRuns: 200 },
    )
  })
})

describe('a hand-written manifest', () => {
  const byHand = `kind: Pod
spec:
  containers:
    - image: x
      command: ["/usr/local/bin/kube-apiserver"]
      args: # of the site
        - --client_ca_file
        - /ca.crt   # both
        - '--v=2'
        - --profiling
        - --anonymous-auth=false
        - --v=4
`

  test('is read as the component reads it: separate values, underscores, quotes, repeated flags', async () => {
    const [container] = (await readStaticPod(byHand)).containers
    expect(container!.flags).toEqual({
      'client-ca-file': '/ca.crt',
      v: '4',
      profiling: 'true',
      'anonymous-auth': 'false',
    })
  })

  test('is edited in its own form', async () => {
    const flags = {
      'client-ca-file': '/bundle.crt',
      v: '6',
      profiling: 'false',
      'anonymous-auth': null,
      'x-y': 'z',
    }
    expect(await editStaticPod(byHand, 'kube-apiserver', { flags })).toBe(
      byHand
        .replace('/ca.crt ', '/bundle.crt ')
        .replace('--v=4', '--v=6')
        .replace('--profiling', '--profiling=false')
        .replace('        - --anonymous-auth=false\n', '')
        .replace('--v=6\n', '--v=6\n        - --x-y=z\n'),
    )
    expect(
      await editStaticPod(byHand, 'kube-apiserver', { flags: { 'client-ca-file': null, v: null } }),
    ).toBe(
      byHand
        .replace('        - --client_ca_file\n        - /ca.crt   # both\n', '')
        .replace("        - '--v=2'\n", '')
        .replace('        - --v=4\n', ''),
    )
  })
})

test('reads the command line of a process like that of a manifest', () => {
  expect(flagsOf(['/usr/bin/kubelet', '--a=b=c', '--bool', '--n', '1', '-v=2', '--', '--not=one'])).toEqual({
    a: 'b=c',
    bool: 'true',
    n: '1',
    v: '2',
  })
  // The API server appends the values of these flags (pflag StringSlice).
  const twice = ['a', 'b'].flatMap((one) => [`--etcd-servers=${one}`, `--etcd-servers-overrides=${one}`])
  expect(flagsOf(['kube-apiserver', ...twice, '--v=1', '--v=2'])).toEqual({
    'etcd-servers': 'a,b',
    'etcd-servers-overrides': 'a,b',
    v: '2',
  })
  expect(flagWords(['--n', '1', '--b']).map(({ form }) => form)).toEqual(['apart', 'alone'])
})
