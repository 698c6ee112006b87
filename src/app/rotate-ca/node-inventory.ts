import { hostname } from 'node:os'
import type { Context } from '../../cli/context.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Inventory } from '../../rotation/inventory.ts'
import type { Site } from '../../site/site.ts'
import { inventoryIn } from './site.ts'

/**
 * Returns the inventory that is named; without a name, this machine alone, as a control plane. A kcert.yaml in the current folder
 * is not picked up: it says what kcert runs. Throws KCERT_USAGE for a node that is not in the inventory.
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

/** Returns what `act` returns on the nodes of an inventory, which are reached without an API server; the ways to them are closed then. */
export async function withNodes<Result>(
  inventory: Inventory,
  { clock }: Context,
  act: (site: Site) => Promise<Result>,
): Promise<Result> {
  const [{ openSite }, { inventoryObjects }] = await Promise.all([
    import('../../site/site.ts'),
    import('../../rotation-io/recovering.ts'),
  ])
  const site = openSite({ inventory, objects: inventoryObjects(inventory), clock })
  try {
    return await act(site)
  } finally {
    await site.close()
  }
}

function thisMachine(asked: readonly string[]): Inventory {
  const name = hostname()
  const other = asked.find((one) => one !== name)
  if (other !== undefined) {
    throw new KcertError('KCERT_USAGE', `no access to node ${JSON.stringify(other)} is configured`, {
      why: `without --inventory, kcert reaches only this machine, ${name}`,
      next: 'kcert rotate-ca discover',
    })
  }
  const access = { by: 'local' } as const
  return {
    apiVersion: 'kcert/v1',
    kind: 'Inventory',
    nodes: [{ name, role: 'control-plane', addresses: ['127.0.0.1'], layout: 'kubeadm', access }],
  }
}
