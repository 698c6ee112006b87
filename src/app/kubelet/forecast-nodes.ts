import pMap from 'p-map'
import type { Context } from '../../cli/context.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { ControllerManagerFacts, KubeletFacts } from '../../kubelet/forecast.ts'
import { readForecast } from '../../renewal-io/kubelet-forecast.ts'
import { nodeNamed, type Site } from '../../site/site.ts'
import { inventoryOrThisMachine, withNodes } from '../rotate-ca/node-inventory.ts'

// What `kcert kubelet forecast --inventory` reads on the nodes.

const nodesAtOnce = 24

/** Returns the facts of these nodes of the inventory, or of all if none is named. With a single node, throws the node's error. */
export async function factsOnNodes(
  context: Context,
  inventoryName: string,
  only: readonly string[],
): Promise<{
  kubelets: KubeletFacts[]
  controllerManagers: ControllerManagerFacts[]
  /** The number of nodes that did not respond. */
  unreachable: number
}> {
  const inventory = await inventoryOrThisMachine(inventoryName, only, context)
  const names = inventory.nodes.map(({ name }) => name)
  const wanted = only.length === 0 ? names : names.filter((name) => only.includes(name))
  const read = async (site: Site, name: string) => {
    try {
      return { ...(await readForecast(nodeNamed(site, name))), isReached: true }
    } catch (error) {
      if (wanted.length === 1 || !(error instanceof KcertError)) throw error
      return { kubelet: unreached(name, error), controllerManagers: [], isReached: false }
    }
  }
  return withNodes(
    inventory,
    context,
    async (site) => {
      const found = await pMap(wanted, (name) => read(site, name), { concurrency: nodesAtOnce })
      return {
        kubelets: found.map(({ kubelet }) => kubelet),
        controllerManagers: found.flatMap(({ controllerManagers }) => controllerManagers),
        unreachable: found.filter(({ isReached }) => !isReached).length,
      }
    },
    inventoryName,
  )
}

function unreached(name: string, { message, why }: KcertError): KubeletFacts {
  const unread = [`the node could not be read: ${why ?? message}`]
  return { name, configuration: undefined, certificates: [], pending: [], unread }
}
