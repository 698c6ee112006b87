import type { GenericSchema } from 'valibot'
import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { plainValue } from '../kubeconfig/node.ts'
import { schemaFault } from '../kubeconfig/schema-fault.ts'
import { filledIn } from './argument-filling.ts'
import type { Inventory } from './inventory-schema.ts'

// kcert.yaml: the access to the nodes of a cluster, and other facts that only the operator can supply. `discover` writes it.

export type { Inventory } from './inventory-schema.ts'

export type InventoryNode = Inventory['nodes'][number]
/** A node, or a machine with a member of external etcd, which has no role. */
export type InventoryMachine = Omit<InventoryNode, 'role'> & Partial<Pick<InventoryNode, 'role'>>
export type Access = NonNullable<InventoryNode['access']>
export type WorkloadChoice = NonNullable<Inventory['workloads']>
export type WorkloadSelector = NonNullable<WorkloadChoice['exclude']>[number]

/** The default file name. The journal is in the same folder. */
export const inventoryFileName = 'kcert.yaml'

/**
 * Returns the inventory in a file. `source` is its name in messages. Throws KCERT_INVENTORY_INVALID with the line, the value and
 * the allowed values. kcert uses nothing from an invalid file.
 */
export async function readInventory(text: string, source = inventoryFileName): Promise<Inventory> {
  const { documents, defects } = await readDocuments(text)
  const [defect] = defects
  if (defect !== undefined) throw invalid(`${source} line ${defect.line ?? 1}`, defect.reason)
  const [document, second] = documents
  if (document === undefined || second !== undefined)
    throw invalid(source, `it has ${documents.length} YAML documents; an inventory has one`)
  const schemas = await import('./inventory-schema.ts')
  const ofKind: Readonly<Record<Access['by'], GenericSchema>> = {
    local: schemas.localAccessSchema,
    ssh: schemas.sshAccessSchema,
    command: schemas.commandAccessSchema,
    jobs: schemas.jobsAccessSchema,
  }
  const file = { document, text, source }
  const value = plainValue(document) as Inventory
  const check = async (schema: GenericSchema, part: unknown, at: readonly (string | number)[]) => {
    const fault = await schemaFault(file, schema, part, at)
    if (fault !== undefined) throw invalid(fault.place, fault.why)
  }
  // Each access is checked only with the schema of its kind, because the errors of all would be confusing.
  const checkAccess = async (access: Access | undefined, at: readonly (string | number)[]) => {
    if (access?.by !== undefined && Object.hasOwn(ofKind, access.by))
      await check(ofKind[access.by], access, at)
  }
  await checkAccess(value?.access, ['access'])
  for (const [list, schema] of [
    ['nodes', schemas.nodeSchema],
    ['etcd', schemas.etcdMachineSchema],
  ] as const) {
    const rows = value?.[list]
    for (const [index, row] of (Array.isArray(rows) ? rows : []).entries()) {
      await checkAccess(row?.access, [list, index, 'access'])
      await check(schema, row, [list, index])
    }
  }
  await check(schemas.inventorySchema, value, [])
  checkNodes(value, source)
  return value
}

function checkNodes(inventory: Inventory, source: string): void {
  const { nodes, access: forAll, kubeconfigs = [] } = inventory
  const machines = machinesOf(inventory)
  const names = machines.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw invalid(source, `two nodes have the name ${JSON.stringify(twice)}`)
  if (!nodes.some(({ role }) => role === 'control-plane'))
    throw invalid(source, 'no node has the role control-plane')
  const lost = machines.find(({ access }) => (access ?? forAll) === undefined)
  if (lost !== undefined) throw invalid(source, `node ${lost.name} has no access`)
  const byJobs = (inventory.etcd ?? []).find(({ access }) => (access ?? forAll)?.by === 'jobs')
  if (byJobs !== undefined)
    throw invalid(source, `${byJobs.name} has no Node object, so no Job reaches it; set its own access`)
  const images = imagesOf(inventory)
  if (images.length > 1)
    throw invalid(source, `the Jobs have two images, ${images.slice(0, 2).join(' and ')}; set one`)
  const local = machines.filter(({ access }) => access?.by === 'local').map(({ name }) => name)
  if (local.length > 1)
    throw invalid(source, `${local.join(' and ')} cannot both be this machine (access by local)`)
  const unknown = kubeconfigs.find((one) => 'node' in one && !nodes.some(({ name }) => name === one.node))
  if (unknown !== undefined && 'node' in unknown)
    throw invalid(
      source,
      `a kubeconfig is on node ${JSON.stringify(unknown.node)}, which is not listed in nodes`,
    )
}

function invalid(place: string, why: string): KcertError {
  return new KcertError('KCERT_INVENTORY_INVALID', place, {
    why: `${why}; docs/schemas/Inventory.json describes the file, and this command writes one`,
    next: 'kcert rotate-ca discover',
  })
}

/** Returns the node or machine with this name, or undefined if it joined after the file was written. */
export function inventoryNode(inventory: Inventory, name: string): InventoryMachine | undefined {
  return machinesOf(inventory).find((node) => node.name === name)
}

/** Returns the image of the Jobs through which nodes are reached; undefined if none is. */
export function jobsImage(inventory: Inventory): string | undefined {
  return imagesOf(inventory)[0]
}

function imagesOf(inventory: Inventory): readonly string[] {
  const all = [inventory.access, ...machinesOf(inventory).map(({ access }) => access)]
  return [...new Set(all.flatMap((access) => (access?.by === 'jobs' ? access.image : [])))]
}

function machinesOf({ nodes, etcd = [] }: Inventory): readonly InventoryMachine[] {
  return [...nodes, ...etcd]
}

/**
 * Returns the access to a node, with {node} and {address} filled in; undefined for a node without an entry or default. Throws
 * KCERT_NODE_NAME_REFUSED.
 */
export function accessOf(inventory: Inventory, name: string, address?: string): Access | undefined {
  const node = inventoryNode(inventory, name)
  if (node?.access !== undefined) return node.access
  const { access } = inventory
  const place = { node: name, address: node?.addresses[0] ?? address ?? name }
  const fill = (word: string): string => filledIn(word, place)
  // `local` reaches one node only.
  if (access === undefined || access.by === 'local') return undefined
  if (access.by === 'ssh') return { ...access, host: fill(access.host) }
  if (access.by === 'jobs') return access
  return { ...access, argv: access.argv.map(fill) }
}

/** Returns the command that restarts a component on a node, or undefined for systemctl restart. */
export function restartCommand(
  inventory: Inventory,
  node: string,
  component: keyof NonNullable<InventoryNode['restart']>,
): readonly string[] | undefined {
  return inventoryNode(inventory, node)?.restart?.[component]
}

/** Returns the systemd unit of a component on a node. */
export function unitOf(
  inventory: Inventory,
  node: string,
  component: keyof NonNullable<InventoryNode['units']>,
): string {
  return inventoryNode(inventory, node)?.units?.[component] ?? `${component}.service`
}

/** Returns true when the selector matches this workload. */
export function isSelected(
  { kind, namespace, name, labels = {} }: WorkloadSelector,
  workload: Readonly<
    Record<'kind' | 'namespace' | 'name', string> & { labels: Readonly<Record<string, string>> }
  >,
): boolean {
  return (
    (kind === undefined || kind === workload.kind) &&
    (namespace === undefined || namespace === workload.namespace) &&
    (name === undefined || name === workload.name) &&
    Object.entries(labels).every(([label, value]) => workload.labels[label] === value)
  )
}
