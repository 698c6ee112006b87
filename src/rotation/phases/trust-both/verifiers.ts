import type { Part } from '../../phase.ts'
import { apiServers, fileAt, fileKey, hasStartedSince, type Seen } from '../../snapshot.ts'
import type { Target } from '../../target.ts'
import { inLanes, probe } from '../../tasks.ts'
import {
  addingNew,
  holdsNew,
  kubeletCaFileOf,
  kubeletTrustFiles,
  type TrustFile,
  trustFilesOf,
} from '../../trust-files.ts'
import { trustOnNode } from '../../trust-on-node.ts'
import { awaitExtension, unprovenAt, unprovenSchedulers } from '../../verifying.ts'

export type Sees =
  | 'nodes'
  | 'components'
  | 'kubelets'
  | 'files'
  | 'leases'
  | 'extensionAuthentication'
  | 'evidence'

export const verifiers: Part<Sees> = (seen, target) => {
  const files = verifiersOf(seen)
  const stepsOn = (node: string) => {
    const adding = (file: TrustFile) => addingNew(seen, file, target)
    const { writes, restarts, probes } = trustOnNode(seen, node, files, target, adding)
    return [...writes, ...restarts, ...(target.isDropping ? [] : probes)]
  }
  const first = seen.nodes.filter(({ isControlPlane }) => isControlPlane).flatMap(({ name }) => stepsOn(name))
  const workers = seen.nodes.filter(({ isControlPlane }) => !isControlPlane)
  const writes = first.some(({ kind }) => kind === 'write-file')
  const schedulers = unprovenSchedulers(writes ? { ...seen, evidence: new Map() } : seen, target)
  const isPublished = seen.extensionAuthentication !== undefined && !target.isDropping
  return {
    gaps: [
      ...files
        .filter((file) => !holdsNew(seen, file, target))
        .map(({ process: at, path }) => ({ at, what: `${path} without the new CA` })),
      ...unreadAtStart(seen, target),
    ],
    steps: [
      ...first,
      ...inLanes(target.atOnce, workers, ({ name }) => stepsOn(name)),
      ...(isPublished && (writes || schedulers.length > 0)
        ? [awaitExtension(target, 'oldCa', 'newCa'), ...schedulers.map((subject) => probe(subject))]
        : []),
    ],
  }
}

/** The steps of `verifiers` have them. */
export const proofs: Part<Sees> = (seen, target) => {
  const open = [...unprovenAt(seen, verifiersOf(seen), target), ...unprovenSchedulers(seen, target)]
  const gaps = open.map(({ at, generation }) => ({
    at,
    what: `client of the ${generation} CA not proven to be accepted`,
  }))
  return { gaps: target.isDropping ? [] : gaps, steps: [] }
}

/** Controller-managers read the API servers' files on their nodes: they are written here and proven here. */
export function verifiersOf(seen: Seen<'components' | 'kubelets'>): readonly TrustFile[] {
  const apis = trustFilesOf(seen, ['kube-apiserver'])
  const same = new Set(apis.map(({ node, path }) => fileKey(node, path)))
  const managers = trustFilesOf(seen, ['kube-controller-manager']).filter(({ node, path }) =>
    same.has(fileKey(node, path)),
  )
  return [...apis, ...managers, ...kubeletTrustFiles(seen)]
}

function unreadAtStart(seen: Seen<'components' | 'files'>, target: Target) {
  return apiServers(seen).flatMap((api) => {
    const path = kubeletCaFileOf(seen, api, target)
    const isRead = path === undefined || hasStartedSince(api.process, fileAt(seen, api.node, path))
    return isRead ? [] : [{ at: api.id, what: `started before ${path} changed` }]
  })
}
