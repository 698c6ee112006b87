import { KcertError } from '../../errors/kcert-error.ts'
import { readDocuments } from '../../kubeconfig/documents.ts'
import { entriesOf, itemsOf, type Node, textOf, valueAt } from '../../kubeconfig/node.ts'
import { canonicalIp } from './addresses.ts'
import { type ApprovalFacts, type NodeFacts, noFacts } from './facts.ts'

const controlPlaneLabel = 'node-role.kubernetes.io/control-plane'

/**
 * Returns the Nodes of `kubectl get nodes -o yaml` or json. `source` is the name of the file, for messages.
 * Throws KCERT_MANIFEST_MALFORMED when there are none: with an empty list, every node would be unknown.
 */
export async function readNodes(text: string, source: string): Promise<NodeFacts[]> {
  const { documents, defects } = await readDocuments(text)
  const nodes = documents
    .flatMap((document) => [document, ...itemsOf(valueAt(document, 'items'))])
    .filter((object) => textOf(valueAt(object, 'kind')) === 'Node')
    .map(nodeOf)
  if (defects[0] === undefined && nodes.length > 0) return nodes
  throw new KcertError('KCERT_MANIFEST_MALFORMED', `${source} contains no Nodes`, {
    ...(defects[0] && { why: defects[0].reason }),
    next: 'kubectl get nodes -o json > nodes.json',
  })
}

function nodeOf(object: Node): NodeFacts {
  const labels = entriesOf(valueAt(object, 'metadata', 'labels'))
  return {
    name: textOf(valueAt(object, 'metadata', 'name')) ?? '',
    addresses: itemsOf(valueAt(object, 'status', 'addresses')).map((address) => ({
      type: textOf(valueAt(address, 'type')) ?? '',
      address: textOf(valueAt(address, 'address')) ?? '',
    })),
    isControlPlane: labels.some(([label]) => label === controlPlaneLabel),
  }
}

/** Returns the facts that follow from a complete list of the Nodes; all other facts are unavailable. */
export function factsOfNodes(nodes: readonly NodeFacts[]): ApprovalFacts {
  const spelled = (address: string): string => canonicalIp(address) ?? address.toLowerCase()
  const owners = Map.groupBy(
    nodes.flatMap(({ name, addresses }) =>
      addresses.map(({ address }) => ({ name, address: spelled(address) })),
    ),
    ({ address }) => address,
  )
  const byName = new Map(nodes.map((node) => [node.name, node]))
  return {
    ...noFacts,
    findNode: async (name) => byName.get(name) ?? 'absent',
    findNodesAt: async (address) => [...new Set(owners.get(spelled(address))?.map(({ name }) => name))],
  }
}
