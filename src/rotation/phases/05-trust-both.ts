import type { Action, Step } from '../action.ts'
import { isSignedByCa } from '../certificate-record.ts'
import { clusterInfoObject, publishing, unsignedTokens } from '../cluster-info.ts'
import { leafIn } from '../leaves.ts'
import { definePhase, type Gap, type Refusal } from '../phase.ts'
import { fileAt, fileKey, hasStartedSince, type ProcessId, type Seen } from '../picture.ts'
import { probe } from '../proof.ts'
import { componentsNamed, restartWith, together } from '../restart.ts'
import { changeOf, type Target, withNew } from '../target.ts'
import {
  addingNew,
  holdsNew,
  kubeletCaFileOf,
  kubeletTrustFiles,
  type TrustFile,
  trustFilesOf,
} from '../trust-files.ts'
import { trustOnNode } from '../trust-on-node.ts'
import { restoreFiles, restoreObjects } from '../undo.ts'
import { backToDefinitions, changedFiles, readersToRestart } from '../undo-pass.ts'
import { awaitExtension, forgetting, publishes, unprovenAt, unprovenSchedulers } from '../verifying.ts'

const sees = [
  'nodes',
  'components',
  'kubelets',
  'files',
  'leases',
  'extensionAuthentication',
  'clusterInfo',
  'evidence',
] as const

type Sees = (typeof sees)[number]

export const trustBoth = definePhase('trust-both', {
  sees,

  gaps: gapsOf,

  plan(seen, target): readonly Step[] {
    const files = verifiersOf(seen)
    const cluster = changeOf(target, 'cluster')
    const { extensionAuthentication: extension, clusterInfo } = seen
    const onNode = (node: string): readonly Action[] => stepsOn(seen, node, files, target)
    const controlPlanes = seen.nodes.filter((node) => node.isControlPlane)
    const workers = seen.nodes.filter((node) => !node.isControlPlane)
    const writes = controlPlanes.some(({ name }) => onNode(name).some(({ kind }) => kind === 'write-file'))
    const schedulers = unprovenSchedulers(writes ? { ...seen, evidence: new Map() } : seen, target)
    return [
      ...controlPlanes.flatMap(({ name }) => onNode(name)),
      ...together(
        target.atOnce,
        workers.map(({ name }) => ({ name, steps: onNode(name) })),
      ),
      ...(extension === undefined || target.isDropping || (!writes && schedulers.length === 0)
        ? []
        : [awaitExtension(5, target, ['oldCa', 'newCa']), ...schedulers.map((subject) => probe(5, subject))]),
      ...(cluster && clusterInfo ? publishing(seen, 5, withNew(clusterInfo.trust, cluster)) : []),
    ]
  },

  refusals(seen, target): readonly Refusal[] {
    const [api, ...others] = componentsNamed(seen, 'kube-apiserver')
    const restarts = api !== undefined && kubeletCaFileOf(seen, api, target) !== undefined
    if (!restarts || others.length > 0 || target.acceptsOutage || gapsOf(seen, target).length === 0) return []
    return [
      {
        what: 'the only API server must be restarted',
        why: '--kubelet-certificate-authority is set and read once; the cluster has no API for about 40 s',
        next: 'kcert rotate-ca --phase 5 --accept-outage',
      },
    ]
  },

  remarks(seen) {
    const isSet = componentsNamed(seen, 'kube-apiserver').some(
      (api) => api.flags['kubelet-certificate-authority'] !== undefined,
    )
    return isSet ? [] : ['--kubelet-certificate-authority: not configured, so no API server restarts']
  },

  undo(before, now, target) {
    const issued = issuedMeanwhile(now, target)
    if (issued.length > 0) {
      return {
        kind: 'impossible',
        refusal: {
          what: `${issued.length} certificates of the new CA are in use: ${issued.slice(0, 5).join(', ')}`,
          why: 'no verifier would accept them after phase 5 is undone',
          next: 'roll phase 9 back first, or name them with --waive',
        },
      }
    }
    const definitions = new Set(now.components.map(({ node, definition }) => fileKey(node, definition)))
    const isDefinition = (node: string, path: string): boolean => definitions.has(fileKey(node, path))
    const restored = restoreFiles(before, now, (node, path) => !isDefinition(node, path))
    const changed = changedFiles(before)
    const manifests = backToDefinitions(before, now)
    const extension = now.extensionAuthentication
    const written = new Set(restored.map(({ node, path }) => fileKey(node, path)))
    const apis = componentsNamed(now, 'kube-apiserver')
    const readers = readersToRestart(before, now, apis, restored, manifests, 'kubelet-certificate-authority')
    // It was stopped between the files and this: they are as they were, and what API servers published of them is not.
    const news = target.changes.map(({ newCa }) => newCa.digest)
    const isStale = extension !== undefined && publishes(extension, news)
    return {
      kind: 'steps',
      steps: [
        ...restoreObjects(before, (_kind, name) =>
          name === clusterInfoObject.name ? now.clusterInfo?.version : undefined,
        ),
        ...restored,
        ...manifests,
        ...readers.flatMap((api) => restartWith(now, 5, api, { isAboutToChange: true })),
        // An API server that still holds the new CA would publish it again.
        ...verifiersOf(now)
          .filter(({ node, path, reload }) => {
            const key = fileKey(node, path)
            return reload === 'hot' && (written.has(key) || (isStale && changed.has(key)))
          })
          .map(({ process, ca }) =>
            probe(5, { kind: 'client', at: process, ca, generation: 'new', expects: 'refused' }),
          ),
        ...(extension === undefined || (restored.length === 0 && !isStale)
          ? []
          : [forgetting(5, extension.version), awaitExtension(5, target, ['oldCa'])]),
      ],
    }
  },
})

function gapsOf(seen: Seen<Sees>, target: Target): readonly Gap[] {
  const files = verifiersOf(seen)
  const without = files.filter((file) => !holdsNew(seen, file, target))
  const change = changeOf(target, 'cluster')
  const joiners =
    change !== undefined && seen.clusterInfo && !seen.clusterInfo.trust.includes(change.newCa.digest)
      ? [{ at: 'ConfigMap kube-public/cluster-info', what: 'without the new CA' }]
      : []
  const unproven = target.isDropping
    ? []
    : [...unprovenAt(seen, files, target), ...unprovenSchedulers(seen, target)]
  return [
    ...without.map(({ process, path }) => ({ at: process, what: `${path} without the new CA` })),
    ...unreadAtStart(seen, target).map(({ process, path }) => ({
      at: process,
      what: `started before ${path} changed`,
    })),
    ...joiners,
    ...unsignedTokens(seen),
    ...unproven.map((subject) => ({
      at: 'at' in subject ? subject.at : '',
      what: `client of the ${'generation' in subject ? subject.generation : ''} CA not proven to be accepted`,
    })),
  ]
}

/** Controller-managers read the API servers' files on their nodes: they are written here and proven here. */
function verifiersOf(seen: Seen<'components' | 'kubelets'>): readonly TrustFile[] {
  const apis = trustFilesOf(seen, ['kube-apiserver'])
  const same = new Set(apis.map(({ node, path }) => fileKey(node, path)))
  const managers = trustFilesOf(seen, ['kube-controller-manager']).filter(({ node, path }) =>
    same.has(fileKey(node, path)),
  )
  return [...apis, ...managers, ...kubeletTrustFiles(seen)]
}

function unreadAtStart(
  seen: Seen<'components' | 'files'>,
  target: Target,
): readonly { readonly process: ProcessId; readonly path: string }[] {
  return componentsNamed(seen, 'kube-apiserver').flatMap((api) => {
    const path = kubeletCaFileOf(seen, api, target)
    const isRead = path === undefined || hasStartedSince(api.process, fileAt(seen, api.node, path))
    return isRead ? [] : [{ process: api.id, path }]
  })
}

function stepsOn(
  seen: Seen<Sees>,
  node: string,
  files: readonly TrustFile[],
  target: Target,
): readonly Action[] {
  const { writes, restarts, probes } = trustOnNode(seen, 5, node, files, target, (file) =>
    addingNew(seen, 5, file, target),
  )
  return [...writes, ...restarts, ...(target.isDropping ? [] : probes)]
}

/** Leaves of the new CA that are in use on nodes. */
function issuedMeanwhile(now: Seen<Sees>, target: Target): readonly string[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  return [...now.files.values()]
    .filter((file) => {
      const leaf = leafIn(now, file)
      return leaf?.isCa === false && isSignedByCa(leaf, change.newCa)
    })
    .map(({ node, path }) => fileKey(node, path))
    .filter((key) => !target.waivers.has(key))
}
