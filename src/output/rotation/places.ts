import { someOf } from './cas.ts'

// Locations as actions, gaps and proofs name them: "cp1", "cp1/kubelet", "cp1:/etc/kubernetes/admin.conf", or an object.

/** Returns the node of a location and the rest of it. An object, a workload or the cluster has no node. */
export function splitPlace(at: string): { readonly node?: string; readonly what?: string } {
  const [, node, process, path] = /^([a-z0-9][-a-z0-9.]*)(?:\/([-a-z0-9.]+)|:(\/.*))?$/.exec(at) ?? []
  return node === undefined ? {} : { node, what: process ?? path ?? '' }
}

/** Returns at most `most` names, each once. */
export function placesText(names: readonly string[], most: number): string {
  return someOf([...new Set(names)], most)
}

/** Returns what is done or checked on these nodes: "restart kubelet on cp1, w1". Names at most `most` nodes. */
export function onNodes(what: string, nodes: readonly string[], most: number): string {
  return `${what.replace(/(^| )on$/, '')} on ${placesText(nodes, most)}`.trim()
}
