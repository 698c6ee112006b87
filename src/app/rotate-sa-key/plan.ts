import pMap from 'p-map'
import { openClusterOf } from '../../cli/cluster.ts'
import type { Context } from '../../cli/context.ts'
import { resources } from '../../cluster/kinds.ts'
import { getOne, listAll } from '../../cluster/readable.ts'
import type { ServiceAccountKeys } from '../../rotation/service-account-key/observed.ts'
import { type RotationReason, serviceAccountKeyPlan } from '../../rotation/service-account-key/plan.ts'
import type { ServiceAccountKeyPlan } from '../../rotation/service-account-key/report.ts'
import { storedTokens } from '../../rotation-io/stored-tokens.ts'
import { ControlPlanes, controlPlaneLabel } from '../../site/control-planes.ts'
import { internalAddress } from '../../site/node-objects.ts'
import { controlPlaneKeys, reading, tokensOn } from '../../site/service-account-keys.ts'
import { nodeNamed, openSite, type Site } from '../../site/site.ts'
import { inventoryIn } from '../rotate-ca/node-inventory.ts'
import type { RotationPlaceFlags } from '../rotate-ca/site.ts'

// As many as openssh's default for new connections (MaxStartups).
const nodesAtOnce = 10

/** Returns the plan for the cluster of an inventory. Writes nothing. Throws errors of inventory and cluster. */
export async function planServiceAccountKey(
  context: Context,
  flags: Omit<RotationPlaceFlags, 'journal'>,
  reason: RotationReason,
): Promise<ServiceAccountKeyPlan> {
  const inventory = await inventoryIn(flags.inventory, context)
  await using opening = new AsyncDisposableStack()
  const cluster = await openClusterOf(context, flags)
  opening.defer(() => cluster.close())
  const { objects, through } = cluster
  const site = openSite({ inventory, objects, clock: context.clock, through })
  opening.defer(() => site.close())
  return serviceAccountKeyPlan(await observeServiceAccountKeys(site), reason)
}

/** Returns the keys and tokens of a cluster. What cannot be read is `unread`. Throws if the cluster does not answer. */
export async function observeServiceAccountKeys(site: Site): Promise<ServiceAccountKeys> {
  const { inventory, objects } = site
  const nodes = await listAll(objects, resources.nodes)
  // A node that joined after kcert.yaml was written is reached at its own address.
  for (const node of nodes) site.node(node.metadata.name, internalAddress(node))
  const listed = [...inventory.nodes.map(({ name }) => name), ...nodes.map(({ metadata }) => metadata.name)]
  const names = [...new Set(listed)].sort()
  const labeled = nodes.filter(({ metadata: { labels = {} } }) => Object.hasOwn(labels, controlPlaneLabel))
  const planes = [...(await new ControlPlanes(site).names()), ...labeled.map(({ metadata }) => metadata.name)]
  const kubeconfigs = inventory.kubeconfigs ?? []
  const onNode = (name: string) =>
    kubeconfigs.flatMap((one) => ('node' in one && one.node === name ? [one.path] : []))
  const each = <Item>(from: readonly string[], read: (node: string) => Promise<Item>) =>
    pMap(from, read, { concurrency: nodesAtOnce })
  const uploaded = { ...resources.secrets, namespace: 'kube-system', name: 'kubeadm-certs' }
  return {
    atMs: site.clock().getTime(),
    controlPlanes: await each([...new Set(planes)].sort(), async (node) => ({
      node,
      keys: await reading(() => controlPlaneKeys(site, node)),
    })),
    nodes: await each(names, async (node) => ({
      node,
      tokens: await reading(() => tokensOn(nodeNamed(site, node), onNode(node))),
    })),
    objects: await storedTokens(site),
    otherKubeconfigs: kubeconfigs.flatMap((one) => ('name' in one ? [one.name] : [])),
    hasUploadedCerts: await reading(async () => (await getOne(objects, uploaded)) !== undefined),
  }
}
