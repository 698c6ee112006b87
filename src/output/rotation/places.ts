import { someOf } from './cas.ts'

// Where something is, as actions, gaps and proofs name it: "cp1", "cp1/kubelet", "cp1:/etc/kubernetes/admin.conf", or an object.

/** Returns the node of a place and the rest of it; no node for an object, a workload or the cluster. */
export function splitPlace(at: string): { readonly node?: string; readonly what?: string } {
  const [, node, process, path] = /^([a-z0-9][-a-z0-9.]*)(?:\/([-a-z0-9.]+)|:(\/.*))?$/.exec(at) ?? []
  return node === undefined ? {} : { node, what: process ?? path ?? '' }
}

/** Returns names, each once, so many of them. */
export function placesText(names: readonly string[], most: number): string {
  return someOf([...new Set(names)], most)
}
