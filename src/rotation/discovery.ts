import { argumentVector, commandLine } from '../errors/command-line.ts'
import { isLoopback, withoutBrackets } from '../errors/host-port.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { otherEndpoints } from './etcd/endpoints.ts'
import { imageReference } from './image-reference.ts'
import type { Access, Inventory, InventoryNode } from './inventory.ts'
import { apiServers, type Observed } from './snapshot.ts'

// How `kcert rotate-ca discover` turns its findings into an inventory.

/** A node, from the cluster and its own files. */
export interface FoundNode extends Readonly<Omit<InventoryNode, 'layout'>> {
  readonly layout: string
}

/** A machine of external etcd. */
export type FoundMachine = NonNullable<Inventory['etcd']>[number]

/** Returns the hosts of etcd in the flags of API servers that are not nodes: each once, in their order. */
export function etcdHosts(
  observed: Observed<'components'>,
  nodes: readonly Pick<FoundNode, 'name' | 'addresses'>[],
): readonly string[] {
  const known = new Set(nodes.flatMap(({ name, addresses }) => [name, ...addresses]))
  const hosts = apiServers(observed).flatMap((api) =>
    otherEndpoints(api, []).flatMap(({ url }) => (url === null ? [] : withoutBrackets(url.hostname))),
  )
  return [...new Set(hosts)].filter((host) => host !== '' && !isLoopback(host) && !known.has(host))
}

/** Returns the inventory of these nodes. An unsupported layout is written as plain, because kcert refuses to rotate it anyway. */
export function inventoryOf(
  nodes: readonly FoundNode[],
  access: Access,
  etcd: readonly FoundMachine[] = [],
): Inventory {
  return {
    apiVersion: 'kcert/v1',
    kind: 'Inventory',
    access,
    nodes: nodes.map((node) => ({ ...node, layout: node.layout === 'kubeadm' ? 'kubeadm' : 'plain' })),
    ...(etcd.length > 0 && { etcd: [...etcd] }),
  }
}

/** The values of --access. */
export const accessForms = 'ssh, ssh:HOST, jobs:IMAGE or command:WORDS'

/** The access flags. */
export interface AccessChoice {
  /** For example "ssh" or "command:docker exec -i {node}". */
  readonly access?: string
  readonly sshUser?: string
  readonly sshConfig?: string
  readonly become?: 'sudo'
}

/** Returns the access to all nodes (default OpenSSH with the node's name). Throws KCERT_USAGE. */
export function accessFor({ access = 'ssh', sshUser, sshConfig, become }: AccessChoice): Access {
  const rooted = become && { become }
  const next = "--access 'command:docker exec -i {node}'"
  if (access === 'ssh' || access.startsWith('ssh:')) {
    const user = sshUser !== undefined && { user: sshUser }
    const configFile = sshConfig !== undefined && { configFile: sshConfig }
    return { by: 'ssh', host: access.slice('ssh:'.length) || '{node}', ...user, ...configFile, ...rooted }
  }
  if (access.startsWith('jobs')) return accessByJobs(access, sshUser ?? sshConfig ?? become)
  const command = /^command:([\s\S]+)$/.exec(access)?.[1]
  if (command === undefined) {
    const why = `the value is ${accessForms}, with {node} or {address} in it`
    throw new KcertError('KCERT_USAGE', `invalid --access ${JSON.stringify(access)}`, {
      why,
      next,
    })
  }
  if (!/\{(?:node|address)\}/.test(command)) {
    const what = 'the command of --access reaches the same node each time'
    throw new KcertError('KCERT_USAGE', what, { why: 'it contains neither {node} nor {address}', next })
  }
  return { by: 'command', argv: wordsOf(command), ...rooted }
}

/** Whether the image can be pulled is checked on the nodes. */
function accessByJobs(access: string, other: string | undefined): Access {
  const image = access.slice('jobs:'.length)
  if (!access.startsWith('jobs:') || !imageReference.test(image)) {
    throw new KcertError('KCERT_USAGE', `invalid --access ${JSON.stringify(access)}`, {
      why: 'the form is jobs:IMAGE, with an image that the nodes have or can pull',
      next: '--access jobs:registry.example.com/kcert@sha256:DIGEST',
    })
  }
  if (other === undefined) return { by: 'jobs', image }
  throw new KcertError('KCERT_USAGE', '--ssh-user, --ssh-config and --become are not for access by Jobs', {
    why: 'a shell behind a Job is root on its node without a login',
  })
}

/** Splits a command into words as a shell does, and removes quotes. Expands nothing. */
function wordsOf(command: string): string[] {
  const words = command.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? []
  return words.map((word) =>
    word.replace(/"([^"]*)"|'([^']*)'/g, (_, a?: string, b?: string) => a ?? b ?? ''),
  )
}

/** Returns a description of an access. */
export function accessText(access: Access | undefined): string {
  switch (access?.by) {
    case undefined:
      return 'not configured'
    case 'local':
      return 'this machine'
    case 'ssh':
      return commandLine`ssh ${access.user === undefined ? access.host : `${access.user}@${access.host}`}`
    case 'command':
      return commandLine`${argumentVector(access.argv)}`
    case 'jobs':
      return `Job with ${access.image}`
  }
}
