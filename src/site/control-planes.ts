import { resources } from '../cluster/kinds.ts'
import { listEach } from '../cluster/readable.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { type Flags, flagsOf } from '../pki/component-flags.ts'
import type { ComponentName, NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import { readStaticPod } from '../pki/static-pod.ts'
import { ownProcess, withOwnSettings } from './definitions.ts'
import { readIfPresent, textOf } from './node-files.ts'
import { internalAddress } from './node-objects.ts'
import type { Site } from './site.ts'

const controlPlaneLabel = 'node-role.kubernetes.io/control-plane'

// Nodes can be added during a rotation, but not between two acts.
const keptMs = 10_000

/** An API server as its command line defines it. */
export interface ApiServer {
  readonly node: string
  readonly flags: Flags
}

/** The nodes with an API server, and its flags. They are read from the nodes, because the flags contain the paths of the CAs. */
export class ControlPlanes {
  private readonly site: Site
  private readonly flags = new Map<string, Flags>()
  private listed: { readonly names: readonly string[]; readonly untilMs: number } | undefined

  constructor(site: Site) {
    this.site = site
  }

  /** Returns the node. Throws KCERT_ROTATION_REFUSED if the inventory does not define how to reach it. */
  node(name: string): NodeAccess {
    const node = this.site.node(name)
    if (node !== undefined) return node
    throw new KcertError('KCERT_ROTATION_REFUSED', `no access to node ${name} is configured`, {
      why: 'it is not in kcert.yaml, and kcert.yaml has no common access',
      next: 'kcert rotate-ca discover',
    })
  }

  /** Returns the reachable API servers, in the order of the nodes' names. Nodes that do not respond are omitted. */
  async apiServers(): Promise<readonly ApiServer[]> {
    return this.find((node) => this.flagsOn(node).catch(() => undefined))
  }

  /**
   * Returns every API server, for a proof. Throws if a control-plane node does not respond, since its API server would go
   * unproven.
   */
  everyApiServer(): Promise<readonly ApiServer[]> {
    return this.find((node) => this.flagsOn(node))
  }

  private async find(flagsOn: (node: string) => Promise<Flags | undefined>): Promise<readonly ApiServer[]> {
    const found: ApiServer[] = []
    for (const node of await this.names()) {
      const flags = await flagsOn(node)
      if (flags !== undefined) found.push({ node, flags })
    }
    return found
  }

  /** Returns the flags of a node's API server when it was last running; undefined if there is none. */
  async flagsOn(name: string): Promise<Flags | undefined> {
    const [running] = await this.node(name).processes(['kube-apiserver'])
    const flags =
      running === undefined ? await this.manifestFlags(name, 'kube-apiserver') : flagsOf(running.argv)
    if (flags !== undefined) this.flags.set(name, flags)
    return this.flags.get(name)
  }

  /** Returns the names of control-plane nodes, from the inventory and from the cluster. */
  async names(): Promise<readonly string[]> {
    const now = this.site.clock().getTime()
    if (this.listed !== undefined && now < this.listed.untilMs) return this.listed.names
    const names = new Set(
      this.site.inventory.nodes.filter(({ role }) => role === 'control-plane').map(({ name }) => name),
    )
    try {
      const selection = { labelSelector: controlPlaneLabel }
      for await (const object of listEach(this.site.objects, resources.nodes, selection)) {
        const { name } = object.metadata
        if (this.site.node(name, internalAddress(object)) !== undefined) names.add(name)
      }
    } catch (error) {
      if (!(error instanceof KcertError)) throw error
      // While no API server responds, the last list is used.
      for (const name of this.listed?.names ?? []) names.add(name)
    }
    this.listed = { names: [...names].sort(), untilMs: now + keptMs }
    return this.listed.names
  }

  /** Returns the flags in kubeadm's manifest of a program; undefined if the node has no such file. Throws if it cannot be read. */
  async manifestFlags(name: string, program: ComponentName): Promise<Flags | undefined> {
    const file = await readIfPresent(this.node(name), `/etc/kubernetes/manifests/${program}.yaml`)
    if (file === undefined) return undefined
    const pod = await readStaticPod(textOf(file))
    return pod.containers.find((one) => one.program === program)?.flags
  }

  /** Returns the process of etcd: of a static pod, and not the same program in another pod, or of a unit; undefined if it does not run. */
  async runningEtcd(name: string): Promise<ProcessFacts | undefined> {
    const node = this.node(name)
    const flags = await this.manifestFlags(name, 'etcd')
    const found = ownProcess(await node.processes(['etcd']), flags)
    return found !== undefined && flags === undefined ? withOwnSettings(node, found) : found
  }
}
