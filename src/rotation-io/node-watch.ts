import { onKcertError } from '../errors/caught.ts'
import { given } from '../errors/given.ts'
import { type Flags, flagsOf, flagWords } from '../pki/component-flags.ts'
import { kubeadmFolders } from '../pki/kubeadm.ts'
import { type DropIn, readKubeletConfiguration, withKubeletFlags } from '../pki/kubelet-configuration.ts'
import type { NodeAccess, ComponentName as NodeComponent, ProcessFacts } from '../pki/node-access.ts'
import type { UnitFile } from '../pki/systemd-unit.ts'
import { healthcheckPath, servingFlags, trustFlags } from '../rotation/etcd/members.ts'
import { inventoryNode, unitOf } from '../rotation/inventory.ts'
import { caFileOf, folderOn, keyPathFor } from '../rotation/material.ts'
import type { PhaseTable } from '../rotation/phase-table.ts'
import { keyPaths } from '../rotation/service-account-key/keys.ts'
import type {
  ComponentSnapshot,
  EtcdMemberSnapshot,
  FileSnapshot,
  KubeconfigSnapshot,
  KubeletSnapshot,
  ProcessSnapshot,
} from '../rotation/snapshot.ts'
import { caNames } from '../rotation/target.ts'
import { versioned } from '../rotation/tested-versions.ts'
import { linkedFrom } from '../site/certificate-files.ts'
import { componentVersion } from '../site/component-version.ts'
import {
  componentNames,
  type Definition,
  environmentPaths,
  flagsWith,
  processOf,
  staticPodDefinitions,
  staticPodFlags,
  textsOf,
  unitDefinition,
  withConfiguration,
} from '../site/definitions.ts'
import { isHealthy } from '../site/health.ts'
import { dropInsOn } from '../site/kubelet-drop-ins.ts'
import type { ListeningConfiguration } from '../site/listening.ts'
import { type NodeFile, NodeFiles } from '../site/node-files.ts'
import type { Site } from '../site/site.ts'

export interface EtcdDefinition extends Pick<EtcdMemberSnapshot, 'runsAs' | 'flags'> {
  /** The path of its configuration file. */
  readonly configuration?: string | undefined
}

/** The observed state of one node. */
export interface NodeObservation {
  readonly components: readonly ComponentSnapshot[]
  readonly kubelet?: KubeletSnapshot
  /** The definition of its etcd member; absent if there is none, or if it was not asked for. */
  readonly etcd?: EtcdDefinition
  readonly files: readonly FileSnapshot[]
  readonly kubeconfigs: readonly KubeconfigSnapshot[]
}

/** What was read in one observation so far. */
interface Found {
  readonly read: ReadonlyMap<string, NodeFile>
  readonly matched: readonly string[]
  /** Reads the drop-ins of each --config-dir once. */
  readonly dropInsFor: (flags: Flags) => Promise<readonly DropIn[]>
}

const call = { timeoutMs: 15_000 }

const programs: readonly NodeComponent[] = [...componentNames, 'kubelet']

const kubeconfigPatterns = [
  `${kubeadmFolders.kubernetes}/*.conf`,
  `${kubeadmFolders.kubernetes}/*.kubeconfig`,
  '/etc/cni/net.d/*kubeconfig*',
]

/** Flags with files that a rotation reads or writes. Others, such as service account keys and etcd's own, are skipped. */
const fileFlag =
  /^(?:(?:etcd-cafile|root-ca-file|kubelet-certificate-authority|kubelet-client-(?:certificate|key)|proxy-client-(?:cert|key)-file)|(?:requestheader-)?client-ca-file|tls-(?:cert|private-key)-file|cluster-signing-(?:cert|key)-file|kubeconfig)$/

/** Each round of reading shows which files to read next: manifests refer to certificates, kubeconfigs to others. */
const mostRounds = 6

/** Observes one node repeatedly, and remembers the paths of its files. */
export class NodeWatch {
  readonly name: string
  private readonly node: NodeAccess
  private readonly site: Site
  private readonly files: NodeFiles
  private readonly reads: PhaseTable['reads']
  private paths: readonly string[] = []
  private patterns: readonly string[] = []
  private readonly units = new Map<string, readonly string[] | undefined>()
  private readonly versions = new Map<string, string | undefined>()

  constructor(node: NodeAccess, site: Site, reads?: PhaseTable['reads']) {
    this.name = node.name
    this.node = node
    this.site = site
    this.files = new NodeFiles(node, site.reading)
    this.reads = reads
  }

  /** Returns the current state of the node. Throws the node's errors. */
  async observe(): Promise<NodeObservation> {
    const aheadMs = await this.site.clockAheadMs(this.name)
    const nodeNowMs = this.site.clock().getTime() + aheadMs
    const read = new Map<string, NodeFile>()
    const asked = new Set<string>()
    const tried = new Set<string>()
    const matched: string[] = []
    const dropIns = new Map<string, Promise<readonly DropIn[]>>()
    const dropInsFor = (flags: Flags): Promise<readonly DropIn[]> => {
      const { 'config-dir': folder = '' } = flags
      const reading = dropIns.get(folder) ?? dropInsOn(this.node, flags, call)
      dropIns.set(folder, reading)
      return reading
    }
    const readMore = async (paths: readonly string[]): Promise<void> => {
      const more = [...new Set(paths)].filter((path) => !asked.has(path))
      for (const path of more) asked.add(path)
      for (const [path, file] of await this.files.read(more, { nodeNowMs, aheadMs }, call))
        read.set(path, file)
    }
    const matchMore = async (patterns: readonly string[]): Promise<void> => {
      const more = patterns.filter((pattern) => !tried.has(pattern))
      if (more.length === 0) return
      for (const pattern of more) tried.add(pattern)
      matched.push(...(await this.node.matchPaths(more, call)))
    }
    const [processes] = await Promise.all([
      this.node.processes(programs, call),
      readMore(this.paths),
      matchMore(this.patterns),
    ])
    for (let round = 1; ; round++) {
      const found = await this.interpret(processes, { read, matched, dropInsFor })
      const before = asked.size + tried.size
      await Promise.all([readMore(found.paths), matchMore(found.patterns)])
      if (asked.size + tried.size > before && round < mostRounds) continue
      this.paths = found.paths
      this.patterns = found.patterns
      return this.snapshot(found, read)
    }
  }

  /** Returns the findings so far, and the files to read next. */
  private async interpret(processes: readonly ProcessFacts[], { read, matched, dropInsFor }: Found) {
    const paths: string[] = []
    const units: Definition[] = []
    for (const name of await this.unitNames(processes)) {
      const files = (await this.unitFiles(name)) ?? []
      const unit = files.flatMap((path): UnitFile[] => {
        const text = read.get(path)?.text
        return text === undefined ? [] : [{ path, text }]
      })
      const environment = environmentPaths(unit)
      paths.push(...files, ...environment)
      const definition = unitDefinition(name, unit, textsOf(read, environment))
      if (definition !== undefined) units.push(definition)
    }
    const kubelet = await this.kubeletOf(processes, units, { read, dropInsFor })
    paths.push(...kubelet.paths)
    const manifests = matched.filter((path) => path.startsWith(`${kubelet.manifests}/`))
    const manifestFiles = manifests.flatMap((path) => read.get(path) ?? [])
    const static_ = await staticPodDefinitions(manifestFiles)
    const etcd = this.reads === 'etcd' ? await etcdIn(manifestFiles, units, read) : undefined
    const definitions = [...static_, ...units.filter(({ name }) => name !== 'kubelet' && name !== 'etcd')]
    const components = await Promise.all(
      definitions.map((definition) => this.componentOf(definition, processes, read)),
    )
    paths.push(...matched, ...components.flatMap(({ paths: its }) => its))
    const kubeconfigs = [...read.values()].filter(({ snapshot }) => snapshot.contains.kind === 'kubeconfig')
    for (const { snapshot, refersTo } of kubeconfigs)
      for (const file of [refersTo?.ca, refersTo?.client])
        if (file !== undefined) paths.push(linkedFrom(snapshot.path, file))
    for (const one of this.site.inventory.kubeconfigs ?? [])
      if ('node' in one && one.node === this.name) paths.push(one.path)
    const snapshots = components.flatMap(({ snapshot }) => snapshot ?? [])
    const observed = { components: snapshots, atMs: 0, certificates: new Map() }
    const hasApiServer = snapshots.some(({ name }) => name === 'kube-apiserver')
    const folders = (this.reads === 'etcd' ? (['cluster', 'etcd'] as const) : (['cluster'] as const)).map(
      (ca) => folderOn(observed, this.name, ca),
    )
    if (this.reads === 'etcd') paths.push(...etcdPaths(etcd ?? {}, snapshots))
    if (this.reads === 'service-account-keys') {
      paths.push(...snapshots.flatMap(keyPaths).filter((path) => path.startsWith('/')))
    }
    const patterns = [
      `${kubelet.manifests}/*`,
      ...kubeconfigPatterns,
      `${kubelet.folder}/kubelet-client-*.pem`,
      `${kubelet.folder}/kubelet-server-*.pem`,
      ...(hasApiServer
        ? folders.flatMap((folder) => [`${folder}/*`, `${folder}/old/*`, `${folder}/new/*`])
        : []),
    ]
    return {
      paths: [...new Set(paths)],
      patterns,
      components: snapshots,
      kubelet: kubelet.snapshot,
      etcd,
    }
  }

  private async componentOf(
    one: Definition,
    processes: readonly ProcessFacts[],
    read: ReadonlyMap<string, NodeFile>,
  ): Promise<{ readonly snapshot?: ComponentSnapshot; readonly paths: readonly string[] }> {
    const { name, runsAs, path, argv, annotations } = one
    const configuration = flagsOf(argv).config
    const configured = configuration === undefined ? undefined : read.get(configuration)?.text
    const flags = await flagsWith(argv, configured)
    const running = processOf({ name, argv }, processes)
    const paths = Object.entries(flags).flatMap(([flag, value]) =>
      fileFlag.test(flag) && value.startsWith('/') ? [value] : [],
    )
    for (const ca of name === 'kube-apiserver' ? caNames : []) {
      const file = caFileOf({ flags } as ComponentSnapshot, ca)
      if (file !== undefined) paths.push(keyPathFor(file))
    }
    if (configuration !== undefined) paths.push(configuration)
    const definition = read.get(path)
    if (definition === undefined || name === 'kubelet' || name === 'etcd') return { paths }
    const version = await this.versionOf(one, running)
    const snapshot: ComponentSnapshot = {
      id: `${this.name}/${name}`,
      node: this.name,
      name,
      runsAs,
      definition: path,
      definitionDigest: definition.snapshot.digest,
      flags,
      annotations,
      ...(this.reads === 'service-account-keys' && { repeated: repeatedIn(argv) }),
      ...(version && { version }),
      ...(running && {
        process: await this.processSnapshot(running, await flagsWith(running.argv, configured)),
      }),
    }
    return { snapshot, paths }
  }

  /** A process keeps its version, so kcert reads it once: a wait observes twice a second. */
  private async versionOf(one: Definition, running: ProcessFacts | undefined): Promise<string | undefined> {
    if (!versioned.some((name) => name === one.name)) return undefined
    const key = [one.name, one.image, running?.pid, running?.startTicks].join(' ')
    if (this.versions.has(key)) return this.versions.get(key)
    const version = await componentVersion(this.site, this.node, one, running)
    // An API server that is starting reports its version later.
    if (version !== undefined || one.name !== 'kube-apiserver') this.versions.set(key, version)
    return version
  }

  private async kubeletOf(
    processes: readonly ProcessFacts[],
    units: readonly Definition[],
    { read, dropInsFor }: Pick<Found, 'read' | 'dropInsFor'>,
  ) {
    const running = processOf({ name: 'kubelet', argv: [] }, processes)
    const argv = running?.argv ?? units.find(({ name }) => name === 'kubelet')?.argv ?? []
    const flags = flagsOf(argv)
    const configPath = flags.config ?? '/var/lib/kubelet/config.yaml'
    const text = read.get(configPath)?.text
    const dropIns = await dropInsFor(flags)
    const configuration = withKubeletFlags(await readKubeletConfiguration(text, configPath, dropIns), flags)
    const kubeconfig = flags.kubeconfig ?? `${kubeadmFolders.kubernetes}/kubelet.conf`
    const folder = flags['cert-dir'] ?? kubeadmFolders.kubeletPki
    const clientCaFile = configuration.clientCaFile ?? `${kubeadmFolders.pki}/ca.crt`
    const referred = read.get(kubeconfig)?.refersTo?.client
    const clientCurrent = referred?.endsWith('-current.pem') ? linkedFrom(kubeconfig, referred) : undefined
    const asksForServing = configuration.serverTlsBootstrap === true
    const servingCurrent = asksForServing ? `${folder}/kubelet-server-current.pem` : undefined
    const servingFile = asksForServing ? undefined : configuration.tlsCertFile
    const servingKeyFile = servingFile === undefined ? undefined : configuration.tlsPrivateKeyFile
    const isConfigRead = text !== undefined || flags.config === undefined
    const gates =
      argv.length > 0 && isConfigRead
        ? [
            ...Object.entries(configuration.featureGates).map(([name, isOn]) => `${name}=${isOn}`),
            flags['feature-gates'] ?? '',
          ].join()
        : undefined
    const { tlsCipherSuites, tlsMinVersion } = configuration
    const tls = given({ 'tls-cipher-suites': tlsCipherSuites, 'tls-min-version': tlsMinVersion })
    const snapshot: KubeletSnapshot = {
      id: `${this.name}/kubelet`,
      node: this.name,
      clientCaFile,
      kubeconfig,
      ...given({ clientCurrent, servingCurrent, servingFile, servingKeyFile, gates }),
      ...(Object.keys(tls).length > 0 && { tls, configuration: configPath }),
      ...(running && { process: await this.processSnapshot(running, flags, configuration) }),
    }
    const paths = [configPath, clientCaFile, kubeconfig, clientCurrent, servingCurrent, servingFile]
    return {
      snapshot,
      folder,
      manifests:
        configuration.staticPodPath ?? flags['pod-manifest-path'] ?? `${kubeadmFolders.kubernetes}/manifests`,
      paths: paths.filter((path) => path !== undefined),
    }
  }

  private async processSnapshot(
    running: ProcessFacts,
    flags: Readonly<Record<string, string>>,
    configuration: ListeningConfiguration = {},
  ): Promise<ProcessSnapshot> {
    const [startedAtMs, healthy] = await Promise.all([
      this.site.startedAtMs(this.name, running),
      isHealthy(this.site, this.name, running, configuration),
    ])
    return { startedAtMs, flags, isHealthy: healthy }
  }

  /** Returns the units to read: the kubelet's while it does not run, and every component's if there are no static pods. */
  private async unitNames(processes: readonly ProcessFacts[]): Promise<Definition['name'][]> {
    const node = inventoryNode(this.site.inventory, this.name)
    const runsKubelet = processes.some(({ program }) => program === 'kubelet')
    const kubelet = runsKubelet ? [] : (['kubelet'] as const)
    const names = [...componentNames, ...(this.reads === 'etcd' ? (['etcd'] as const) : [])]
    if (node?.layout === 'plain') return [...names, ...kubelet]
    return [...names.filter((name) => node?.units?.[name] !== undefined), ...kubelet]
  }

  /** Returns the paths of a unit file and its drop-ins; undefined if there is no such unit. Reads them once. */
  private async unitFiles(name: Definition['name']): Promise<readonly string[] | undefined> {
    if (this.units.has(name)) return this.units.get(name)
    const unitName = unitOf(this.site.inventory, this.name, name)
    const unit = await this.node.unit(unitName, call).catch(
      onKcertError((error) => {
        // A node without systemd has no units. Other code checks whether the node can be reached.
        if (error.code !== 'KCERT_NODE_COMMAND_FAILED') throw error
      }),
    )
    const files =
      unit?.loadState === 'loaded' && unit.fragmentPath !== undefined
        ? [unit.fragmentPath, ...unit.dropInPaths]
        : undefined
    this.units.set(name, files)
    return files
  }

  private snapshot(
    { components, kubelet, etcd }: Awaited<ReturnType<NodeWatch['interpret']>>,
    read: ReadonlyMap<string, NodeFile>,
  ): NodeObservation {
    const files = [...read.values()].map((file) => withReferences(file, read))
    const isKubelets = (path: string): boolean =>
      path === kubelet.kubeconfig || path.endsWith('/bootstrap-kubelet.conf')
    const kubeconfigs = files.flatMap(({ path, contains }): KubeconfigSnapshot[] => {
      if (contains.kind !== 'kubeconfig' || contains.caData.length === 0 || isKubelets(path)) return []
      const usedBy = components.find(({ flags }) => flags.kubeconfig === path)?.id
      return [{ id: `${this.name}:${path}`, at: { node: this.name, path }, ...(usedBy && { usedBy }) }]
    })
    return { components, kubelet, ...(etcd && { etcd }), files, kubeconfigs }
  }
}

/** Returns the values of each flag that is given several times. */
function repeatedIn(argv: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const byName = Map.groupBy(flagWords(argv.slice(1)), ({ name }) => name)
  return Object.fromEntries(
    [...byName].flatMap(([name, words]) =>
      words.length > 1 ? [[name, words.map(({ value }) => value)]] : [],
    ),
  )
}

/** Returns the definition of the member: a static pod, or a unit. */
async function etcdIn(
  manifests: Parameters<typeof staticPodFlags>[0],
  units: readonly Definition[],
  read: ReadonlyMap<string, NodeFile>,
): Promise<EtcdDefinition | undefined> {
  const pod = await staticPodFlags(manifests, 'etcd')
  if (pod !== undefined) return { runsAs: 'static-pod', flags: pod }
  const unit = units.find(({ name }) => name === 'etcd')
  if (unit === undefined) return undefined
  const argv = await withConfiguration(unit.argv, (path) => read.get(path)?.text)
  return { runsAs: 'unit', flags: flagsOf(argv), configuration: flagsOf(unit.argv)['config-file'] }
}

/** Returns the paths of the files that a rotation of etcd's CA reads: those of the member, and those of the API server as its client. */
function etcdPaths(
  { flags = {}, configuration }: Partial<EtcdDefinition>,
  components: readonly ComponentSnapshot[],
): readonly string[] {
  const apis = components.filter(({ name }) => name === 'kube-apiserver')
  const trust = [
    ...trustFlags.map((flag) => flags[flag]),
    ...apis.map((api) => caFileOf(api, 'etcd')),
  ].filter((path) => path !== undefined)
  const leaves = [
    ...Object.values(servingFlags).map((flag) => flags[flag]),
    healthcheckPath(flags),
    configuration,
    ...apis.map((api) => api.flags['etcd-certfile']),
  ].filter((path) => path !== undefined)
  return [...trust, ...trust.map(keyPathFor), ...leaves].filter((path) => path.startsWith('/'))
}

/** Returns the kubeconfig with the content of the files that it references. */
function withReferences({ snapshot, refersTo }: NodeFile, read: ReadonlyMap<string, NodeFile>): FileSnapshot {
  const { contains, path } = snapshot
  if (contains.kind !== 'kubeconfig' || refersTo === undefined) return snapshot
  const certificates = (file: string | undefined): readonly string[] => {
    const its = file === undefined ? undefined : read.get(linkedFrom(path, file))?.snapshot.contains
    return its?.kind === 'certificates' || its?.kind === 'pair' ? its.certificates : []
  }
  const client = contains.client ?? certificates(refersTo.client)[0]
  const caData = contains.caData.length > 0 ? contains.caData : certificates(refersTo.ca)
  return { ...snapshot, contains: { ...contains, caData, ...given({ client }) } }
}
