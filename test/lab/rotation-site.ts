import type { Cluster as ApiCluster } from '../../src/cluster/cluster.ts'
import type { Inventory } from '../../src/rotation/inventory.ts'
import { openSite, type Site } from '../../src/site/site.ts'
import { systemClock } from '../../src/system/clock.ts'
import { openWith } from '../contract/stage.ts'
import type { Cluster } from './fixture.ts'

/** The inventory of a cluster of the lab, its nodes reached by `nsenter`, or by ssh. */
export function labInventory(cluster: Cluster, by: 'command' | 'ssh' = 'command'): Inventory {
  return {
    apiVersion: 'kcert/v1',
    kind: 'Inventory',
    nodes: cluster.nodes().map(({ name, role, address }) => ({
      name,
      role,
      addresses: [address],
      layout: cluster.spec.flavour,
      access:
        by === 'command'
          ? { by, argv: cluster.enter(name) }
          : { by, host: name, configFile: cluster.sshConfig },
    })),
  }
}

/** A site on a cluster of the lab. Whoever opens it closes it. */
export async function labSite(
  cluster: Cluster,
  inventory: Inventory = labInventory(cluster),
): Promise<Site & { readonly api: ApiCluster }> {
  const api = await openWith(cluster.kubeconfig)
  const site = openSite({ inventory, objects: api.objects, clock: systemClock })
  return {
    ...site,
    api,
    close: async () => {
      await site.close()
      api.close()
    },
  }
}
