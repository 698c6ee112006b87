import { readDocuments } from '../kubeconfig/documents.ts'
import { isTrue, itemsOf, type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import { type Flags, flagsOf, programOf } from '../pki/component-flags.ts'
import { etcdConfigurationFlags } from '../pki/etcd-configuration.ts'
import type { NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import { readStaticPod } from '../pki/static-pod.ts'
import { environmentFiles, type UnitFile, unitCommands, unitVariables } from '../pki/systemd-unit.ts'
import type { ComponentName, ComponentSnapshot, KubeadmSnapshot } from '../rotation/snapshot.ts'
import { changedAtMs, textOf as fileText, type NodeFile, readIfPresent } from './node-files.ts'

export const componentNames: readonly ComponentName[] = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'cloud-controller-manager',
  'kube-proxy',
]

/** A component on a node, as its definition starts it. */
export interface Definition {
  readonly name: ComponentName | 'kubelet' | 'etcd'
  readonly runsAs: ComponentSnapshot['runsAs']
  readonly path: string
  readonly argv: readonly string[]
  /** The image of a static pod's container. */
  readonly image?: string
  readonly annotations: Readonly<Record<string, string>>
}

/** Returns the components that static pods define. Files that are not pods are skipped, as by the kubelet. */
export async function staticPodDefinitions(
  files: readonly { readonly snapshot: { readonly path: string }; readonly text?: string }[],
): Promise<Definition[]> {
  const found = await Promise.all(
    files.map(async ({ snapshot, text }) => {
      const pod = await readStaticPod(text ?? '').catch(() => undefined)
      return (pod?.containers ?? []).flatMap(({ program, argv, image }): Definition[] => {
        const name = componentNames.find((known) => known === program)
        if (name === undefined || pod === undefined) return []
        return [
          { name, runsAs: 'static-pod', path: snapshot.path, argv, image, annotations: pod.annotations },
        ]
      })
    }),
  )
  return found.flat()
}

/** Returns the flags of the static pod that runs this program; undefined if none of the files defines one. */
export async function staticPodFlags(
  files: readonly { readonly text?: string }[],
  program: string,
): Promise<Flags | undefined> {
  for (const { text } of files) {
    const pod = await readStaticPod(text ?? '').catch(() => undefined)
    const found = pod?.containers.find((one) => one.program === program)
    if (found !== undefined) return found.flags
  }
  return undefined
}

/** Returns what a unit starts if it is that component; `files` are its own file and its drop-ins. */
export function unitDefinition(
  name: Definition['name'],
  files: readonly UnitFile[],
  environment: ReadonlyMap<string, string>,
): Definition | undefined {
  const command = unitCommands(files, environment).findLast(({ argv }) => programOf(argv) === name)
  if (command === undefined) return undefined
  const argv = name === 'etcd' ? withVariables(command.argv, unitVariables(files, environment)) : command.argv
  return { name, runsAs: 'unit', path: command.path, argv, annotations: {} }
}

/** Returns etcd's command line with its variables as flags: ETCD_CERT_FILE is --cert-file. Flags take precedence over variables, and etcd ignores empty ones. */
function withVariables(
  [program = '', ...words]: readonly string[],
  variables: Iterable<readonly [name: string, value: string]>,
): string[] {
  const flags = Array.from(variables).flatMap(([name, value]) => {
    const [, flag] = /^ETCD_([A-Z0-9_]+)$/.exec(name) ?? []
    return flag === undefined || value === '' ? [] : [`--${flag.toLowerCase().replaceAll('_', '-')}=${value}`]
  })
  return [program, ...flags, ...words]
}

/**
 * Returns etcd's command line with the settings of its configuration file as flags: etcd then ignores all other flags and variables
 * (server/etcdmain/config.go). Returns it unchanged, with --config-file, if there is no content at the path, or it cannot be used.
 */
export async function withConfiguration(
  argv: readonly string[],
  contentAt: (path: string) => string | undefined | Promise<string | undefined>,
): Promise<readonly string[]> {
  const { 'config-file': path = '' } = flagsOf(argv)
  const text = path.startsWith('/') ? await contentAt(path) : undefined
  const flags = text === undefined ? undefined : await etcdConfigurationFlags(text)
  if (flags === undefined) return argv
  return [...argv.slice(0, 1), ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)]
}

/**
 * Returns a process of etcd that a unit started, with its variables or its configuration file as flags; undefined if it is gone. A file
 * that changed after the start of the process is not used. Throws KCERT_NODE_REFUSED if its variables or its file cannot be read, and as
 * the node does.
 */
export async function withOwnSettings(
  node: Pick<NodeAccess, 'name' | 'readFiles'>,
  running: ProcessFacts,
): Promise<ProcessFacts | undefined> {
  const file = await readIfPresent(node, `/proc/${running.pid}/environ`)
  if (file === undefined) return undefined
  const variables = fileText(file)
    .split('\0')
    .map((word) => {
      const equals = word.indexOf('=')
      return [word.slice(0, equals), word.slice(equals + 1)] as const
    })
  const argv = await withConfiguration(withVariables(running.argv, variables), async (path) => {
    const configuration = await readIfPresent(node, path)
    const isRead = configuration && changedAtMs(configuration) < running.startedAt.getTime()
    return isRead ? fileText(configuration) : undefined
  })
  return { ...running, argv }
}

/** Returns the environment files that a unit names, without patterns. */
export function environmentPaths(files: readonly UnitFile[]): string[] {
  return environmentFiles(files).filter((path) => !/[*?[]/.test(path))
}

/** Returns the process that a definition started: of several, the most similar one, then the youngest. */
export function processOf(
  { name, argv }: Pick<Definition, 'name' | 'argv'>,
  processes: readonly ProcessFacts[],
): ProcessFacts | undefined {
  const words = new Set(argv)
  const likeness = (one: ProcessFacts): number => one.argv.filter((word) => words.has(word)).length
  return processes
    .filter(({ program }) => program === name)
    .toSorted((a, b) => likeness(b) - likeness(a) || b.startTicks - a.startTicks)[0]
}

/** Flags that differ between a node's own static pod and the same program in another pod on the node. */
const ownFlags: Readonly<Partial<Record<ProcessFacts['program'], readonly string[]>>> = {
  etcd: ['name', 'data-dir'],
  'kube-apiserver': ['advertise-address', 'etcd-servers', 'secure-port'],
}

/**
 * Returns the process that a static pod with these flags started, of several the youngest; undefined if it does not run. Other pods may
 * run the same program: etcd for a CNI plugin, or the control plane of a virtual cluster. Without flags, the only process is the one.
 */
export function ownProcess(
  processes: readonly ProcessFacts[],
  flags: Flags | undefined,
): ProcessFacts | undefined {
  if (flags === undefined) return processes.length === 1 ? processes[0] : undefined
  return processes
    .filter(({ program, argv }) => {
      const its = flagsOf(argv)
      return (ownFlags[program] ?? []).every((flag) => its[flag] === flags[flag])
    })
    .toSorted((a, b) => b.startTicks - a.startTicks)[0]
}

/**
 * Returns the flags of a command line, with the kubeconfig that a configuration file sets instead of a flag (kube-proxy,
 * kube-scheduler: clientConnection.kubeconfig).
 */
export async function flagsWith(argv: readonly string[], configuration: string | undefined): Promise<Flags> {
  const flags = flagsOf(argv)
  if (flags.kubeconfig !== undefined || configuration === undefined) return flags
  const [root] = (await readDocuments(configuration)).documents
  const kubeconfig = textOf(valueAt(root, 'clientConnection', 'kubeconfig'))
  return kubeconfig === undefined ? flags : { ...flags, kubeconfig }
}

/** Returns the version in kubeadm's ClusterConfiguration; undefined if it has none. */
export async function kubernetesVersionOf(text: string): Promise<string | undefined> {
  return textOf(valueAt(await clusterConfiguration(text), 'kubernetesVersion')) || undefined
}

/** Returns encryptionAlgorithm in kubeadm's ClusterConfiguration; undefined if it is not set. */
export async function encryptionAlgorithmOf(text: string): Promise<string | undefined> {
  return textOf(valueAt(await clusterConfiguration(text), 'encryptionAlgorithm'))
}

/**
 * Returns why kubeadm ignores or rejects encryptionAlgorithm in this ClusterConfiguration, and the type of the keys that it creates
 * instead. kubeadm up to 1.36 lets the feature gate take precedence (cmd/kubeadm/app/apis/kubeadm/types.go).
 */
export async function withoutAlgorithm(text: string): Promise<KubeadmSnapshot['noAlgorithm']> {
  const root = await clusterConfiguration(text)
  const gate = valueAt(root, 'featureGates', 'PublicKeysECDSA')
  const why = 'its feature gate PublicKeysECDSA takes precedence over encryptionAlgorithm'
  if (gate !== undefined) return { why, creates: isTrue(gate) ? 'ECDSA-P256' : 'RSA-2048' }
  const version = textOf(valueAt(root, 'apiVersion')) ?? ''
  if (!/\/v1beta[1-3]$/.test(version)) return undefined
  return { why: `${version} has no encryptionAlgorithm`, creates: 'RSA-2048' }
}

async function clusterConfiguration(text: string): Promise<Node | undefined> {
  return (await readDocuments(text)).documents.find(
    (document) => textOf(valueAt(document, 'kind')) === 'ClusterConfiguration',
  )
}

/** Returns the extra arguments in kubeadm's ClusterConfiguration by component, in either of its two formats. */
export async function extraArgsOf(text: string): Promise<Record<string, Record<string, string>>> {
  const root = await clusterConfiguration(text)
  const found: Record<string, Record<string, string>> = {}
  for (const component of ['apiServer', 'controllerManager', 'scheduler']) {
    const args = valueAt(root, component, 'extraArgs')
    const pairs =
      args?.kind === 'map'
        ? [...args.entries].map(([name, { value }]) => [name, textOf(value) ?? ''] as const)
        : itemsOf(args).map(
            (item) => [textOf(valueAt(item, 'name')) ?? '', textOf(valueAt(item, 'value')) ?? ''] as const,
          )
    if (pairs.length > 0) found[component] = Object.fromEntries(pairs)
  }
  return found
}

/** Returns the text of each readable file, by path. */
export function textsOf(
  files: ReadonlyMap<string, NodeFile>,
  paths: readonly string[],
): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  for (const path of paths) {
    const text = files.get(path)?.text
    if (text !== undefined) texts.set(path, text)
  }
  return texts
}
