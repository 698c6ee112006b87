import type { Cluster as ApiCluster } from '../../src/cluster/cluster.ts'
import type { Inventory } from '../../src/rotation/inventory.ts'
import { openSite, type Site } from '../../src/site/site.ts'
import { systemClock } from '../../src/system/clock.ts'
import { openWith } from '../contract/stage.ts'
import type { Cluster } from './fixture.ts'

/** Returns the inventory of a lab cluster, with access to nodes by `nsenter` or by ssh. */
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

/** Returns a site on a lab cluster. The caller that opens it closes it. */
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
