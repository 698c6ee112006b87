import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { KcertError } from '../errors/kcert-error.ts'
import { type Inventory, inventoryFileName } from '../rotation/inventory.ts'
import type { Context } from './context.ts'
import { inventoryIn } from './rotation-site.ts'

/**
 * Returns the inventory that is named, or kcert.yaml where it lies here; else this machine alone, as a control plane. Throws KCERT_USAGE
 * when a node is asked for that is not in it.
 */
export async function inventoryOrThisMachine(
  name: string | undefined,
  asked: readonly string[],
  context: Context,
): Promise<Inventory> {
  const isHere = existsSync(resolve(context.workingFolder, inventoryFileName))
  if (name === undefined && !isHere) return thisMachine(asked)
  const inventory = await inventoryIn(name ?? inventoryFileName, context)
  const unknown = asked.find((one) => !inventory.nodes.some((known) => known.name === one))
  if (unknown === undefined) return inventory
  throw new KcertError('KCERT_USAGE', `there is no node ${JSON.stringify(unknown)} in the inventory`, {
    why: `it has: ${inventory.nodes.map((known) => known.name).join(', ')}`,
  })
}

function thisMachine(asked: readonly string[]): Inventory {
  const name = hostname()
  const other = asked.find((one) => one !== name)
  if (other !== undefined) {
    throw new KcertError('KCERT_USAGE', `nothing says how node ${JSON.stringify(other)} is reached`, {
      why: `without an inventory only this machine is reached, which is called ${name}`,
      next: 'name an inventory: --inventory FILE',
    })
  }
  const access = { by: 'local' } as const
  return {
    apiVersion: 'kcert/v1',
    kind: 'Inventory',
    nodes: [{ name, role: 'control-plane', addresses: ['127.0.0.1'], layout: 'kubeadm', access }],
  }
}
