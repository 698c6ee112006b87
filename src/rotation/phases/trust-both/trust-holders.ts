import type { Part } from '../../phase.ts'
import { apiServers, controlPlanes, fileAt, fileKey, hasStartedSince, type Observed } from '../../snapshot.ts'
import type { Target } from '../../target.ts'
import { inLanes, probe } from '../../tasks.ts'
import {
  addingNew,
  containsNew,
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

export const trustHolders: Part<Sees> = (observed, target) => {
  const files = trustHolderFiles(observed)
  const stepsOn = (node: string) => {
    const adding = (file: TrustFile) => addingNew(observed, file, target)
    const { writes, restarts, probes } = trustOnNode(observed, node, files, target, adding)
    return [...writes, ...restarts, ...(target.isDropping ? [] : probes)]
  }
  const first = controlPlanes(observed).flatMap(({ name }) => stepsOn(name))
  const workers = observed.nodes.filter(({ isControlPlane }) => !isControlPlane)
  const writes = first.some(({ kind }) => kind === 'write-file')
  const schedulers = unprovenSchedulers(writes ? { ...observed, evidence: new Map() } : observed, target)
  const isPublished = observed.extensionAuthentication !== undefined && !target.isDropping
  return {
    gaps: [
      ...files
        .filter((file) => !containsNew(observed, file, target))
        .map(({ process: at, path }) => ({ at, what: `${path} without the new CA` })),
      ...unreadAtStart(observed, target),
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

/** Returns the missing proofs. The steps of `trustHolders` contain the probes. */
export const proofs: Part<Sees> = (observed, target) => {
  const open = [
    ...unprovenAt(observed, trustHolderFiles(observed), target),
    ...unprovenSchedulers(observed, target),
  ]
  const gaps = open.map(({ at, generation }) => ({
    at,
    what: `client of the ${generation} CA not yet accepted in a test`,
  }))
  return { gaps: target.isDropping ? [] : gaps, steps: [] }
}

/**
 * Returns the trust files of API servers and kubelets, and of the controller-managers that read the API server's file on their
 * node.
 */
export function trustHolderFiles(observed: Observed<'components' | 'kubelets'>): readonly TrustFile[] {
  const apis = trustFilesOf(observed, ['kube-apiserver'])
  const same = new Set(apis.map(({ node, path }) => fileKey(node, path)))
  const managers = trustFilesOf(observed, ['kube-controller-manager']).filter(({ node, path }) =>
    same.has(fileKey(node, path)),
  )
  return [...apis, ...managers, ...kubeletTrustFiles(observed)]
}

function unreadAtStart(observed: Observed<'components' | 'files'>, target: Target) {
  return apiServers(observed).flatMap((api) => {
    const path = kubeletCaFileOf(observed, api, target)
    const isRead = path === undefined || hasStartedSince(api.process, fileAt(observed, api.node, path))
    return isRead ? [] : [{ at: api.id, what: `not restarted since ${path} changed` }]
  })
}
