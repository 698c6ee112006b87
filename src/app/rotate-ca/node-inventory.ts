import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { Context } from '../../cli/context.ts'
import { descriptorOf, readTrustedText } from '../../cli/input.ts'
import { tellLine } from '../../cli/tell-line.ts'
import { credentialRefusals } from '../../cluster/failures.ts'
import { onKcertError } from '../../errors/caught.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError, wordsOf } from '../../errors/kcert-error.ts'
import type { NodeAccess } from '../../pki/node-access.ts'
import { type Inventory, inventoryFileName, jobsImage, readInventory } from '../../rotation/inventory.ts'
import type { NodeJobs } from '../../site/node-jobs.ts'
import type { Site } from '../../site/site.ts'
import { isFolder } from '../../system/folders.ts'
import { openNodeJobs } from './node-jobs.ts'

/**
 * Returns the named inventory, and prints its path to stderr, because kcert runs its commands. Throws KCERT_FILE_UNTRUSTED, and
 * KCERT_FILE_NOT_FOUND with the command that creates one.
 */
export async function inventoryIn(name: string, context: Context): Promise<Inventory> {
  try {
    const inventory = await readInventory(await readTrustedText('inventory', name, context), name)
    const shown = descriptorOf(name) === 0 ? 'standard input' : resolve(context.workingFolder, name)
    tellLine(context.stderr, `inventory: ${shown}`)
    return inventory
  } catch (error) {
    if (!(error instanceof KcertError) || error.code !== 'KCERT_FILE_NOT_FOUND') throw error
    throw new KcertError('KCERT_FILE_NOT_FOUND', `inventory ${name} does not exist`, {
      why: 'the inventory tells kcert how to reach each node; create it, or pass --inventory FILE',
      next: 'kcert rotate-ca discover',
      cause: error,
    })
  }
}

/**
 * Returns the named inventory; without a name, only this machine, as a control plane. A kcert.yaml in the current folder is
 * used only with --all-nodes or --inventory, because kcert runs its commands. Throws KCERT_USAGE for a node that is not in it.
 */
export async function inventoryOrThisMachine(
  name: string | undefined,
  asked: readonly string[],
  context: Context,
): Promise<Inventory> {
  if (name === undefined) return thisMachine(asked)
  const inventory = await inventoryIn(name, context)
  const unknown = asked.find((one) => !inventory.nodes.some((known) => known.name === one))
  if (unknown === undefined) return inventory
  throw new KcertError('KCERT_USAGE', `unknown node ${JSON.stringify(unknown)}: it is not in the inventory`, {
    why: `the inventory has: ${inventory.nodes.map((known) => known.name).join(', ')}`,
  })
}

/**
 * Returns the result of `act` on the nodes of an inventory, then closes their connections. No API server is used, except to reach
 * nodes by Jobs. `name`: the file of the inventory, for messages.
 */
export async function withNodes<Result>(
  inventory: Inventory,
  context: Context,
  act: (site: Site) => Promise<Result>,
  name = inventoryFileName,
): Promise<Result> {
  const [{ openSite }, { inventoryObjects }] = await Promise.all([
    import('../../site/site.ts'),
    import('../../rotation-io/recovering.ts'),
  ])
  await using opening = new AsyncDisposableStack()
  const jobs = await jobsIn(opening, inventory, context, name)
  const { clock } = context
  const site = openSite({ inventory, objects: inventoryObjects(inventory), clock, jobs })
  opening.defer(() => site.close())
  return await act(site)
}

async function jobsIn(
  opening: AsyncDisposableStack,
  inventory: Inventory,
  context: Context,
  name: string,
): Promise<NodeJobs | undefined> {
  const image = jobsImage(inventory)
  if (image === undefined) return undefined
  const { openClusterOf } = await import('../../cli/cluster.ts')
  try {
    const cluster = await openClusterOf(context, { 'request-timeout': '30s' })
    opening.defer(() => cluster.close())
    const jobs = await openNodeJobs(context, cluster, image)
    opening.defer(() => jobs?.close())
    return jobs
  } catch (error) {
    throw onKcertError(withoutJobs(name))(error)
  }
}

/** While no API server responds, nothing but another access reaches the nodes. */
function withoutJobs(name: string) {
  return (error: KcertError): KcertError => {
    const isAway = error.code === 'KCERT_UNREACHABLE' || credentialRefusals.has(error.code)
    if (!isAway && error.code !== 'KCERT_KUBECONFIG_UNUSABLE') return error
    return new KcertError(error.code, 'no Job can reach the nodes', {
      why: `${wordsOf(error)}; Jobs need an API server that accepts your kubeconfig. Write an inventory with access by SSH, and pass it with --inventory, or run kcert on the nodes`,
      next: commandLine`sed -e ${'s/by: jobs/by: ssh/'} -e ${'s/image: .*/host: "{address}"/'} ${name} >kcert-ssh.yaml`,
      cause: error,
    })
  }
}

/** Returns the result of `act` on a folder with a node's files, which represents that node and has the folder's name. */
export async function inTree<Result>(
  root: string,
  { clock, workingFolder }: Context,
  act: (node: NodeAccess) => Promise<Result>,
): Promise<Result> {
  const [{ shellNode }, { localTransport }, { rootedNode }] = await Promise.all([
    import('../../node/shell-node.ts'),
    import('../../node/local.ts'),
    import('../../node/rooted-node.ts'),
  ])
  const folder = resolve(workingFolder, root)
  if (!isFolder(folder)) {
    throw new KcertError('KCERT_FILE_NOT_FOUND', `${root} is not a folder`, {
      why: '--root needs the folder with the files of a node',
      next: commandLine`ls -ld ${root}`,
    })
  }
  const node = rootedNode(shellNode({ name: root, transport: localTransport(), clock }), folder)
  try {
    return await act(node)
  } finally {
    await node.close()
  }
}

function thisMachine(asked: readonly string[]): Inventory {
  const name = hostname()
  const other = asked.find((one) => one !== name)
  if (other !== undefined) {
    throw new KcertError('KCERT_USAGE', `no access to node ${JSON.stringify(other)} is configured`, {
      why: `without --inventory, kcert reaches only this machine, ${name}`,
      next: '--inventory kcert.yaml',
    })
  }
  const access = { by: 'local' } as const
  return {
    apiVersion: 'kcert/v1',
    kind: 'Inventory',
    nodes: [{ name, role: 'control-plane', addresses: ['127.0.0.1'], layout: 'kubeadm', access }],
  }
}
