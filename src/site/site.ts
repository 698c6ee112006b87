import type { Duplex } from 'node:stream'
import type { Cluster, OneApiServer } from '../cluster/cluster.ts'
import type { ApiObject } from '../cluster/malformed.ts'
import type { ObjectsApi } from '../cluster/objects.ts'
import type { Resource } from '../cluster/resource.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { commandTransport } from '../node/command.ts'
import { localTransport } from '../node/local.ts'
import { shellNode } from '../node/shell-node.ts'
import { sshConnections } from '../node/ssh.ts'
import type { Transport } from '../node/transport.ts'
import { openTunnel } from '../node/tunnel.ts'
import type { ClockReading, NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import { type Access, accessOf, type Inventory, inventoryNode } from '../rotation/inventory.ts'
import type { Clock } from '../system/clock.ts'
import { Certificates } from './certificates.ts'
import { FileReading } from './file-reading.ts'
import { listeningOf } from './listening.ts'
import type { NodeJobs } from './node-jobs.ts'

/** One cluster as this run reaches it, shared by observer and executor. The opener closes it. */
export interface Site {
  readonly inventory: Inventory
  readonly objects: ObjectsApi
  readonly clock: Clock
  readonly certificates: Certificates
  readonly reading: FileReading
  /** The Jobs through which nodes are reached; undefined if no node is. */
  readonly jobs?: NodeJobs | undefined
  /**
   * Returns the node, which connects on first use; undefined if the inventory does not define it. `address` replaces {address}.
   */
  node(name: string, address?: string): NodeAccess | undefined
  /** Returns a TCP connection that starts on the node. Errors are events of the stream. The caller destroys it. */
  dial(node: string, host: string, port: number): Duplex
  /** Returns the API server of one node. Throws KCERT_UNREACHABLE if none runs. */
  apiServerOn(node: string): Promise<OneApiServer>
  /** Lists objects at the API server of one node only. Throws as ObjectsApi does, and KCERT_UNREACHABLE if none runs. */
  listAt(node: string, resource: Resource): AsyncIterable<ApiObject>
  /** Returns the JSON of a path of that API server. Throws as `listAt` does. */
  readAt(node: string, path: string): Promise<ApiObject>
  /** Returns how many milliseconds the node's clock is ahead of kcert's; read once per run. Throws as the node does. */
  clockAheadMs(node: string): Promise<number>
  /** Returns a process's start on kcert's clock: the same number each time, so that it identifies the process. */
  startedAtMs(node: string, process: ProcessFacts): Promise<number>
  close(): Promise<void>
}

/** Returns a node of the inventory. Throws TypeError if the inventory does not define how to reach it. */
export function nodeNamed(site: Pick<Site, 'node'>, name: string): NodeAccess {
  const node = site.node(name)
  if (node === undefined) throw new TypeError(`no access to node ${name} is configured`)
  return node
}

export interface SiteOptions {
  readonly inventory: Inventory
  readonly objects: ObjectsApi
  readonly clock: Clock
  /** How to reach individual API servers; without it, none can be reached. */
  readonly through?: Cluster['through']
  /** For nodes with access by Jobs. The caller closes them, after the site. */
  readonly jobs?: NodeJobs | undefined
  /** The longest wait for the answer of a node to any request. */
  readonly mostMs?: number | undefined
}

/** Returns the site. It connects on first use. */
export function openSite({ inventory, objects, clock, through, jobs, mostMs }: SiteOptions): Site {
  const connections = sshConnections()
  const open = new Map<string, { readonly access: NodeAccess; readonly transport: Transport }>()
  const addresses = new Map<string, string>()
  const ahead = new Map<string, Promise<number>>()
  const starts = new Map<string, number>()
  const certificates = new Certificates()

  const shellsOf = (name: string, transport: Transport) => {
    return { access: shellNode({ name, transport, clock, mostMs }), transport }
  }

  const transportOf = (access: Access, name: string): Transport => {
    switch (access.by) {
      case 'local':
        return localTransport(access.become)
      case 'command':
        return commandTransport(access.argv, access.become)
      case 'ssh': {
        const { by: _, ...target } = access
        return connections.transport(target)
      }
      case 'jobs':
        return jobs?.transport(name) ?? refusedTransport(withoutJobs(name))
    }
  }

  const reach = (name: string) => {
    const known = open.get(name)
    if (known !== undefined) return known
    try {
      const nodeAccess = accessOf(inventory, name, addresses.get(name))
      if (nodeAccess === undefined) return undefined
      const opened = shellsOf(name, transportOf(nodeAccess, name))
      open.set(name, opened)
      return opened
    } catch (error) {
      // A kubelet chooses its name and addresses. A wrong one must not prevent kcert from reading the other nodes.
      if (error instanceof KcertError && error.code === 'KCERT_NODE_NAME_REFUSED')
        return shellsOf(name, refusedTransport(error))
      throw error
    }
  }

  const clockAheadMs = (name: string): Promise<number> => {
    const asked = ahead.get(name) ?? aheadOf(reach(name)?.access)
    ahead.set(name, asked)
    // A node that did not respond is tried again.
    asked.catch(() => ahead.delete(name))
    return asked
  }

  const dial = (name: string, host: string, port: number): Duplex => {
    const node = reach(name)
    if (node === undefined) throw new TypeError(`no access to node ${name} is configured`)
    return openTunnel(node.transport, host, port)
  }

  const apiServerOn = async (name: string) => {
    const [running] = (await reach(name)?.access.processes(['kube-apiserver'])) ?? []
    if (running === undefined || through === undefined)
      throw new KcertError('KCERT_UNREACHABLE', `no kube-apiserver runs on ${name}`)
    const { host, port } = listeningOf(running.argv)
    const names = [...(inventoryNode(inventory, name)?.addresses ?? []), 'kubernetes']
    return through({ dial: () => dial(name, host, port), names })
  }

  return {
    inventory,
    objects,
    clock,
    certificates,
    reading: new FileReading(certificates),
    jobs,
    node(name, address) {
      if (address !== undefined) addresses.set(name, address)
      return reach(name)?.access
    },
    dial,
    apiServerOn,
    async *listAt(name, resource) {
      yield* (await apiServerOn(name)).list(resource)
    },
    async readAt(name, path) {
      return (await apiServerOn(name)).read(path)
    },
    clockAheadMs,
    async startedAtMs(node, { program, pid, startTicks, startedAt }) {
      const key = `${node} ${program} ${pid} ${startTicks}`
      const aheadMs = starts.has(key) ? 0 : await clockAheadMs(node)
      const known = starts.get(key) ?? Math.round(startedAt.getTime() - aheadMs)
      starts.set(key, known)
      return known
    },
    async close() {
      await Promise.allSettled([...open.values()].map(({ access }) => access.close()))
      await connections.close()
    },
  }
}

async function aheadOf(node: NodeAccess | undefined): Promise<number> {
  if (node === undefined) throw new TypeError('no access to the node is configured')
  return aheadMsOf(await node.clock())
}

/** Returns how far a node's clock is ahead: the middle of the measured range. */
export function aheadMsOf({ aheadMs: { atLeast, atMost } }: ClockReading): number {
  return Math.round((atLeast + atMost) / 2)
}

function withoutJobs(node: string): KcertError {
  return new KcertError('KCERT_USAGE', `this command cannot reach node ${JSON.stringify(node)} by a Job`, {
    why: 'it must work while no API server responds: give the node access by local, ssh or command for it',
  })
}

/** Returns a transport of a node to which no command may connect. Each use throws the error. */
function refusedTransport(error: KcertError): Transport {
  return {
    title: commandLine`true`,
    start: () => Promise.reject(error),
    explain: () => error,
    close: async () => {},
  }
}
