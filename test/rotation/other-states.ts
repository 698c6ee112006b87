import { rereadInstant, rereadMs } from '../../src/rotation/convergence.ts'
import { leafFile, leafFlags } from '../../src/rotation/leaves.ts'
import { materialPaths } from '../../src/rotation/material.ts'
import {
  type ComponentName,
  type ComponentSnapshot,
  type FileSnapshot,
  fileKey,
  type Snapshot,
} from '../../src/rotation/snapshot.ts'
import { type Changes, otherTargets, type State } from './phase-states.ts'

// States for a phase far from its turn, at the very instant that it waits for, and in clusters with more or fewer parts.

const pki = '/etc/kubernetes/pki'
const [manager, cloudManager] = ['kube-controller-manager', 'cloud-controller-manager'] as const

/** Returns states other than those before and after a phase, by what they change. */
export const otherStates: Readonly<
  Record<string, (states: readonly State[], state: State, number: number) => Changes>
> = {
  'another phase': (states, state) => new Map(elsewhere(states, state)),
  'another cluster': (_, state) => new Map(clusters(state)),
  'other components': (states, state) => new Map(components(states, state)),
  'other files': (...given) => new Map(files(...given)),
  'other copies': (...given) => new Map(copies(...given)),
  'another instant': (_, state) => new Map(instants(state)),
  'other pods and kubeconfigs': (_, state) => new Map([...pods(state), ...kubeconfigs(state)]),
}

type Made = readonly (readonly [string, () => State])[]

function given(state: State, more: Partial<Snapshot>, target: Partial<State['target']> = {}): () => State {
  return () => ({ observed: { ...state.observed, ...more }, target: { ...state.target, ...target } })
}

function elsewhere(states: readonly State[], { observed, target }: State): Made {
  return states.flatMap((one, index) => [
    [`after phase ${index}`, () => one],
    [`after phase ${index}, everything waived`, otherTargets(one).get('everything waived')!],
    [
      `objects of after phase ${index}`,
      () => ({ observed: { ...observed, kubeadm: one.observed.kubeadm }, target }),
    ],
  ])
}

function clusters(state: State): Made {
  const { observed } = state
  const isLeft = ({ node }: { readonly node: string }): boolean => node !== 'cp2'
  const [node, ...others] = observed.nodes
  const limit = state.target.mostClockSkewMs
  const clock = (clockSkewMs: number) => given(state, { nodes: [{ ...node!, clockSkewMs }, ...others] })
  const none = { nodes: [], components: [], kubelets: [] }
  const [published, ...rest] = observed.published
  const { trust: _, ...absent } = published!
  const [bundle] = observed.caBundles
  const bundles = [
    { ...bundle!, version: 'other name', object: { ...bundle!.object, name: 'other' } },
    { ...bundle!, version: 'other kind', object: { ...bundle!.object, kind: 'Other' } },
    ...observed.caBundles,
  ]
  return [
    ['no nodes', given(state, none)],
    [
      'no nodes, and nothing published of client CAs',
      given(state, { ...none, extensionAuthentication: undefined }),
    ],
    ['no workers', given(state, { nodes: observed.nodes.filter(({ isControlPlane }) => isControlPlane) })],
    ['nodes in another order', given(state, { nodes: observed.nodes.toReversed() })],
    [
      'one control-plane node',
      given(state, {
        components: observed.components.filter(isLeft),
        nodes: observed.nodes.filter(({ name }) => name !== 'cp2'),
      }),
    ],
    ['a clock at the limit', clock(limit)],
    ['a clock behind the limit', clock(-limit - 1)],
    ['a clock ahead of the limit', clock(limit + 1)],
    ['no cluster-info', given(state, { clusterInfo: undefined })],
    ['a namespace without kube-root-ca.crt', given(state, { published: [absent, ...rest] })],
    ['caBundles of one name and of one kind', given(state, { caBundles: bundles })],
    [
      'extra arguments of their own',
      given(state, {
        kubeadm: observed.kubeadm && {
          ...observed.kubeadm,
          extraArgs: { controllerManager: { 'root-ca-file': '/own/ca.crt' } },
        },
      }),
    ],
  ]
}

function components(states: readonly State[], state: State): Made {
  const { observed } = state
  const edited = (edit: (one: ComponentSnapshot) => ComponentSnapshot): (() => State) =>
    given(state, { components: observed.components.map(edit) })
  const named = (name: ComponentName, edit: (one: ComponentSnapshot) => ComponentSnapshot): (() => State) =>
    edited((one) => (one.name === name ? edit(one) : one))
  const without = ({ process: _, ...one }: ComponentSnapshot): ComponentSnapshot => one
  const withFlags = (flags: Record<string, string>) => (one: ComponentSnapshot) => ({ ...one, flags })
  const model = observed.components.find(({ name }) => name === manager)!
  const cloud = (
    node: string,
    flags: Record<string, string>,
    startedAtMs = observed.atMs,
  ): ComponentSnapshot => ({
    ...model,
    id: `${node}/${cloudManager}`,
    node,
    name: cloudManager,
    definition: `/etc/kubernetes/manifests/${cloudManager}.yaml`,
    flags,
    annotations: {},
    process: { startedAtMs, flags, isHealthy: true },
  })
  const withCloud = (...more: readonly ComponentSnapshot[]) =>
    given(state, { components: [...observed.components, ...more] })
  const { bundle } = materialPaths(`${pki}/kcert`, 'cluster')
  const own = { 'root-ca-file': `${pki}/ca.crt` }
  const [firstKubelet, ...otherKubelets] = observed.kubelets
  const { process: _, ...stopped } = firstKubelet!
  const { servingCurrent: __, servingFile: ___, ...silent } = firstKubelet!
  return [
    ['API servers that do not run', named('kube-apiserver', without)],
    ['API servers without CA flags', named('kube-apiserver', withFlags({}))],
    ['components in another order', given(state, { components: observed.components.toReversed() })],
    [
      'one controller-manager led nowhere',
      edited((one) => (one.id === `cp2/${manager}` ? withFlags({})(one) : one)),
    ],
    [
      'controller-managers with a file elsewhere',
      named(manager, withFlags({ ...model.flags, 'root-ca-file': '/own/ca.crt' })),
    ],
    ['a cloud-controller-manager as it was', withCloud(cloud('cp1', own))],
    ['a cloud-controller-manager with both CAs', withCloud(cloud('cp1', { 'root-ca-file': bundle }))],
    [
      'a cloud-controller-manager that started before its bundle was written',
      withCloud(cloud('cp1', { 'root-ca-file': bundle }, 1)),
    ],
    [
      'one cloud-controller-manager with --root-ca-file, one without',
      withCloud(cloud('cp1', own), cloud('cp2', {})),
    ],
    [
      'a cloud-controller-manager, and the front-proxy CA alone',
      given(
        state,
        { components: [...observed.components, cloud('cp1', own)] },
        { changes: state.target.changes.filter(({ ca }) => ca === 'front-proxy') },
      ),
    ],
    [
      'a cloud-controller-manager at the end',
      given(state, { components: [...observed.components, cloud('cp1', own)] }, { isDropping: true }),
    ],
    [
      'an object of the old front-proxy CA, which is rotated alone',
      given(
        state,
        {
          stored: {
            ...observed.stored,
            objects: state.target.changes.flatMap(({ ca, oldCa }) =>
              ca === 'cluster'
                ? []
                : [
                    {
                      id: 'ConfigMap shop/ca',
                      authorities: [{ spki: oldCa.spki, at: 'data[ca.crt]' }],
                      signers: [],
                    },
                  ],
            ),
          },
        },
        { changes: state.target.changes.filter(({ ca }) => ca === 'front-proxy') },
      ),
    ],
    ['a kubelet that does not run', given(state, { kubelets: [stopped, ...otherKubelets] })],
    [
      'a kubelet that serves no certificate of a CA',
      given(state, {
        kubelets: [silent, ...otherKubelets],
        handshakes: observed.handshakes.filter(({ server }) => server !== silent.id),
      }),
    ],
    ...states.map(
      (one, index) =>
        [
          `components of after phase ${index}`,
          given(state, { components: one.observed.components }),
        ] as const,
    ),
  ]
}

function files(states: readonly State[], state: State, number: number): Made {
  const { observed, target } = state
  const edited = (edit: (file: FileSnapshot) => FileSnapshot | undefined): (() => State) =>
    given(state, { files: mapOf([...observed.files.values()].flatMap((file) => edit(file) ?? [])) })
  const before = states[number - 1]!.observed.files
  const change = target.changes.find(({ ca }) => ca === 'cluster')!
  const serving = new Set(
    observed.components.map((one) => one.flags[leafFlags.serving.flag]).filter((path) => path !== undefined),
  )
  const leaves = new Set(
    [...observed.files.values()].flatMap(({ path, contains }) =>
      serving.has(path) && contains.kind === 'certificates' ? contains.certificates.slice(0, 1) : [],
    ),
  )
  const ofKubelet = /\/kubelet\/pki\//
  return [
    [
      'files of before it, written just now',
      edited((file) => {
        const earlier = before.get(fileKey(file.node, file.path))
        return earlier === undefined || earlier.digest === file.digest
          ? file
          : { ...earlier, changedAtMs: observed.atMs }
      }),
    ],
    [
      'trust files with the new CA first',
      edited((file) =>
        file.contains.kind === 'certificates' && file.contains.certificates.includes(change.newCa.digest)
          ? {
              ...file,
              contains: { ...file.contains, certificates: [change.newCa.digest, change.oldCa.digest] },
            }
          : file,
      ),
    ],
    ['no keys', edited((file) => (file.contains.kind === 'key' ? undefined : file))],
    [
      'serving certificates that are not known',
      given(state, {
        certificates: new Map([...observed.certificates].filter(([digest]) => !leaves.has(digest))),
      }),
    ],
    [
      'certificates of kubelets as before phase 9',
      given(state, {
        files: mapOf([
          ...[...observed.files.values()].filter(({ path }) => !ofKubelet.test(path)),
          ...[...states[8]!.observed.files.values()].filter(({ path }) => ofKubelet.test(path)),
        ]),
      }),
    ],
    [
      'the first kubelet as after phase 9',
      given(state, {
        files: mapOf([
          ...observed.files.values(),
          ...[...states[9]!.observed.files.values()].filter(
            ({ node, path }) =>
              node === 'cp1' && (ofKubelet.test(path) || path === '/etc/kubernetes/kubelet.conf'),
          ),
        ]),
      }),
    ],
    [
      'a root CA file that is newer than controller-managers',
      edited((file) => ({ ...file, changedAtMs: file.path === `${pki}/ca.crt` ? observed.atMs : 0 })),
    ],
  ]
}

function mapOf(files: readonly FileSnapshot[]): ReadonlyMap<string, FileSnapshot> {
  return new Map(files.map((file) => [fileKey(file.node, file.path), file]))
}

function copies(states: readonly State[], state: State, number: number): Made {
  const { observed } = state
  const all = states.at(-2)!.observed.copies
  const digest = '0'.repeat(64)
  const flags = { 'root-ca-file': '/own/ca.crt', 'cluster-signing-cert-file': null }
  const object = { kind: 'ConfigMap', namespace: 'kube-system', name: 'extension-apiserver-authentication' }
  return [
    ['no copies', given(state, { copies: [] })],
    [
      'no copies, and controller-managers with flags of their own',
      given(state, {
        copies: [],
        components: observed.components.map((one) =>
          one.name === manager ? { ...one, flags: { ...one.flags, 'root-ca-file': '/own/ca.crt' } } : one,
        ),
      }),
    ],
    [
      'copies with flags of their own',
      given(state, {
        copies: all.flatMap((copy) =>
          copy.flags === undefined ? [copy] : [{ ...copy, flags: undefined } as never, { ...copy, flags }],
        ),
      }),
    ],
    [
      'no copies, components in another order',
      given(state, { copies: [], components: observed.components.toReversed() }),
    ],
    [
      'components as in the end, and a root CA file that is newer',
      given(state, {
        copies: all,
        components: states.at(-1)!.observed.components,
        files: mapOf(
          [...observed.files.values()].map((file) => ({
            ...file,
            changedAtMs: file.path === `${pki}/ca.crt` ? observed.atMs + 600_000 : 0,
          })),
        ),
      }),
    ],
    [
      'a copy of what API servers publish',
      given(state, { copies: [...observed.copies, { phase: number, node: 'cp1', of: { object }, digest }] }),
    ],
    [
      'copies of objects of one name and of one kind',
      given(state, {
        copies: [
          ...observed.copies,
          ...observed.caBundles.map((bundle) => ({
            phase: number,
            node: 'cp1',
            of: { object: bundle.object },
            digest,
          })),
        ],
        caBundles: [
          ...observed.caBundles.flatMap((bundle) => [
            { ...bundle, version: 'other name', object: { ...bundle.object, name: 'other' } },
            { ...bundle, version: 'other kind', object: { ...bundle.object, kind: 'Other' } },
          ]),
          ...observed.caBundles,
        ],
      }),
    ],
    [
      'copies of new keys elsewhere, after their certificates',
      given(state, {
        components: observed.components.map((one) =>
          one.name === 'kube-apiserver'
            ? { ...one, flags: { ...one.flags, [leafFlags.serving.key]: '/keys/serving.pem' } }
            : one,
        ),
        copies: [
          ...observed.copies,
          ...observed.components.flatMap(({ node, flags: its }) =>
            its[leafFlags.serving.flag] === undefined
              ? []
              : [its[leafFlags.serving.flag]!, '/keys/serving.pem'].map((path) => ({
                  phase: number,
                  node,
                  of: { path },
                  digest,
                })),
          ),
        ],
      }),
    ],
    [
      'copies of new keys beside their certificates',
      given(state, {
        components: observed.components.map((one) => {
          const { [leafFlags.serving.key]: _, ...its } = one.flags
          return { ...one, flags: its }
        }),
        copies: [
          ...observed.copies,
          ...observed.components.flatMap(({ node, flags: its }) =>
            its[leafFlags.serving.key] === undefined
              ? []
              : [{ phase: number, node, of: { path: its[leafFlags.serving.key]! }, digest }],
          ),
        ],
      }),
    ],
  ]
}

/** States one instant before, at and after the instant that a wait needs. */
function instants(state: State): Made {
  const { observed, target } = state
  const at = (name: string, instant: number, more: Partial<Snapshot> = {}): Made =>
    [-1, 0, 1].map((ms) => [`${ms} ms after ${name}`, given(state, { ...more, atMs: instant + ms })])
  const unbridged = target.changes.map(({ bridge: _, ...change }) => change)
  const volumes = observed.pods.flatMap(({ volume }) => volume ?? [])
  const late = {
    pods: observed.pods.map((pod) => ({
      ...pod,
      rereads: true,
      startedAtMs: 0,
      ...(pod.volume && { volume: { ...pod.volume, changedAtMs: observed.atMs } }),
    })),
  }
  const reread = rereadInstant(late.pods, target)
  const leaves = observed.components.flatMap((one) =>
    one.name === 'kube-apiserver' ? [leafFile(observed, one, 'kubelet-client')!.changedAtMs] : [],
  )
  const leaf = { changedAtMs: Math.max(...leaves) }
  const kept = (startedAtMs: number): Partial<Snapshot> => ({
    kubelets: observed.kubelets.map((one) =>
      one.process ? { ...one, process: { ...one.process, startedAtMs } } : one,
    ),
  })
  const namespaces = observed.published.map((one) => ({ ...one, changedAtMs: observed.atMs }))
  const blind = {
    published: namespaces,
    pods: observed.pods.map(({ volume: _, ...pod }) => ({ ...pod, startedAtMs: 0 })),
  }
  return [
    ...at('five minutes after the last volume', reread, late),
    [
      'no bridge, two minutes before clients have read again',
      given(state, { ...late, atMs: reread - 120_000 }, { changes: unbridged }),
    ],
    [
      'no bridge, 1 ms before clients have read again',
      given(state, { ...late, atMs: reread - 1 }, { changes: unbridged }),
    ],
    [
      'no bridge, when clients have read again',
      given(state, { ...late, atMs: reread }, { changes: unbridged }),
    ],
    ...at('two minutes after what is published changed, volumes not seen', observed.atMs + 120_000, blind),
    ...at(
      'five minutes after the leaf for kubelets',
      leaf.changedAtMs + rereadMs,
      kept(leaf.changedAtMs - 1),
    ),
    [
      'kubelets started when the leaf for them was written',
      given(state, { ...kept(leaf.changedAtMs), atMs: leaf.changedAtMs + 1_000 }),
    ],
    [
      'connections to kubelets kept longer than volumes are read',
      given(state, {
        ...kept(leaf.changedAtMs - 1),
        atMs: leaf.changedAtMs + 1_000,
        pods: late.pods.map((pod) => ({
          ...pod,
          ...(pod.volume && { volume: { ...pod.volume, changedAtMs: leaf.changedAtMs - 1 } }),
        })),
      }),
    ],
    [
      'volumes read after connections to kubelets are closed',
      given(state, {
        ...kept(leaf.changedAtMs - 1),
        atMs: leaf.changedAtMs + 1_000,
        pods: late.pods.map((pod) => ({
          ...pod,
          ...(pod.volume && { volume: { ...pod.volume, changedAtMs: leaf.changedAtMs + 1 } }),
        })),
      }),
    ],
    [
      'no bridge, clients that do not read again',
      given(
        state,
        { pods: late.pods.map((pod) => ({ ...pod, rereads: false })), atMs: reread - 1 },
        { changes: unbridged },
      ),
    ],
    [
      'volumes read when connections to kubelets are closed',
      given(state, {
        ...kept(leaf.changedAtMs - 1),
        atMs: leaf.changedAtMs + 1_000,
        pods: late.pods.map((pod) => ({
          ...pod,
          ...(pod.volume && { volume: { ...pod.volume, changedAtMs: leaf.changedAtMs } }),
        })),
      }),
    ],
    ['no volumes', given(state, { pods: volumes.length === 0 ? [] : blind.pods })],
  ]
}

function pods(state: State): Made {
  const { observed, target } = state
  const [pod] = observed.pods
  const change = target.changes.find(({ ca }) => ca === 'cluster')!
  const stale = { trust: [change.oldCa.digest], changedAtMs: 0 }
  const many = Array.from({ length: 30 }, (_, index) => ({
    ...pod!,
    id: `default/web-${index}`,
    volume: stale,
  }))
  return [['thirty pods that do not have the new CA', given(state, { pods: many })]]
}

function kubeconfigs(state: State): Made {
  const { observed, target } = state
  const { oldCa, newCa } = target.changes.find(({ ca }) => ca === 'cluster')!
  const leafOf = ({ spki }: { readonly spki: string }): string =>
    [...observed.certificates.values()].find((one) => one.signedBy === spki && !one.isCa)?.digest ??
    'not known'
  const both = [oldCa.digest, newCa.digest]
  const outside = (exported: { caData: readonly string[]; client?: string }) =>
    given(state, { kubeconfigs: [...observed.kubeconfigs, { id: 'exported', exported }] })
  return [
    ['a kubeconfig outside the nodes', outside({ caData: [] })],
    [
      'a kubeconfig outside the nodes that was not exported',
      given(state, { kubeconfigs: [...observed.kubeconfigs, { id: 'exported' }] }),
    ],
    ['a kubeconfig outside the nodes with both CAs', outside({ caData: both })],
    [
      'a kubeconfig outside the nodes with both CAs and an old certificate',
      outside({ caData: both, client: leafOf(oldCa) }),
    ],
    [
      'a kubeconfig outside the nodes with both CAs and a new certificate',
      outside({ caData: both, client: leafOf(newCa) }),
    ],
    [
      'a kubeconfig with another context of the old CA',
      given(state, {
        files: mapOf(
          [...observed.files.values()].map((file) =>
            file.contains.kind === 'kubeconfig' && file.path.endsWith('/admin.conf')
              ? { ...file, contains: { ...file.contains, besides: [oldCa.digest] } }
              : file,
          ),
        ),
      }),
    ],
  ]
}
