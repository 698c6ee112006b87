import type { NodeObject } from '../cluster/kinds.ts'
import { remoteAddresses } from '../pki/node-address.ts'

const controlPlaneLabels = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master']

/** Returns true for a node with kubeadm's control-plane label. */
export function isControlPlane({ metadata }: NodeObject): boolean {
  return controlPlaneLabels.some((label) => metadata.labels?.[label] !== undefined)
}

/** Returns the nodes with control planes first, then by name: every run and every report uses this order. */
export function inOrder(
  nodes: readonly NodeObject[],
  isFirst: (node: NodeObject) => boolean = isControlPlane,
): NodeObject[] {
  return nodes.toSorted(
    (a, b) => Number(isFirst(b)) - Number(isFirst(a)) || (a.metadata.name < b.metadata.name ? -1 : 1),
  )
}

const managedLabels = [
  'eks.amazonaws.com/nodegroup',
  'cloud.google.com/gke-nodepool',
  'kubernetes.azure.com/cluster',
  'node.openshift.io/os_id',
]

/** Returns the layout of a node: the one derived from its Node object if kcert does not support it, otherwise the inventory's. */
export function layoutOf({ metadata, status }: NodeObject, said: string | undefined): string {
  const version = status?.nodeInfo?.kubeletVersion ?? ''
  if (version.includes('+k3s')) return 'k3s'
  if (version.includes('+rke2')) return 'rke2'
  const isManaged =
    /-(?:eks|gke)\b|-eks-|-gke\./.test(version) ||
    managedLabels.some((label) => metadata.labels?.[label] !== undefined)
  return isManaged ? 'managed' : (said ?? 'kubeadm')
}

/** Returns the InternalIP of a node, for a node without a configured address. */
export function internalAddress({ status }: NodeObject): string | undefined {
  return remoteAddresses(status?.addresses, ['InternalIP'])[0]
}
