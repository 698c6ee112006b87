import type { Action, Step, WriteFile } from '../action.ts'
import { bundlesWithOldCa, patchingBundle } from '../ca-bundles.ts'
import { isSignedByCa } from '../certificate-record.ts'
import { convergenceOf, isWaived } from '../convergence.ts'
import {
  awaitReady,
  kubeletGaps,
  kubeletRestart,
  kubeletSteps,
  kubeletsAtOnce,
  provingLogs,
} from '../kubelet-steps.ts'
import { hasOneLeaf, isOfOldCa, type LeafRole, leafFile, leafFlags, reissuing } from '../leaves.ts'
import { keyBeside } from '../material.ts'
import { definePhase, type Gap } from '../phase.ts'
import {
  type ComponentPicture,
  clientPathOf,
  fileKey,
  onNode,
  type PodPicture,
  type Seen,
  servingPathOf,
} from '../picture.ts'
import { componentsNamed, firstAlone, together } from '../restart.ts'
import { annotationFor, rollOut } from '../roll-out.ts'
import { changeOf, type Target, withNew } from '../target.ts'
import { restoreFiles, restoreObjects } from '../undo.ts'
import { changedFiles, hasRead } from '../undo-pass.ts'

type Sees =
  | 'nodes'
  | 'components'
  | 'kubelets'
  | 'files'
  | 'published'
  | 'pods'
  | 'workloads'
  | 'caBundles'
  | 'extensionAuthentication'
  | 'handshakes'
  | 'evidence'

export const presentNew = definePhase({
  id: 'present-new',
  number: 9,
  title: 'whoever presents a certificate of the old CA presents one of the new CA',
  source: 'step 9',
  after: [4, 5, 6, 7, 8],
  risk: 'restarts',
  sees: [
    'nodes',
    'components',
    'kubelets',
    'files',
    'published',
    'pods',
    'workloads',
    'caBundles',
    'extensionAuthentication',
    'handshakes',
    'evidence',
  ],

  gaps(seen, target): readonly Gap[] {
    const change = changeOf(target, 'cluster')
    return [
      ...bundlesToPatch(seen, target).map(({ id }) => ({ at: id, what: 'verifies by the old CA alone' })),
      ...[...new Set(unawareHandlers(seen, target).map(({ id }) => id))].map((id) => ({
        at: `Pod ${id}`,
        what: 'started before API servers published both front-proxy CAs',
      })),
      ...componentsNamed(seen, 'kube-apiserver').flatMap((api) =>
        (Object.keys(leafFlags) as LeafRole[]).flatMap((role) => {
          const its = changeOf(target, leafFlags[role].ca)
          const isOld = its !== undefined && isOfOldCa(seen, leafFile(seen, api, role), its)
          return isOld ? [{ at: api.id, what: `${role} certificate of the old CA` }] : []
        }),
      ),
      ...(change === undefined
        ? []
        : seen.kubelets.flatMap((kubelet) =>
            kubeletGaps(seen, kubelet, change, (trust) =>
              trust.includes(change.newCa.digest) ? trust : withNew(trust, change),
            ),
          )),
      ...stillServing(seen, target),
    ]
  },

  plan(seen, target): readonly Step[] {
    const change = changeOf(target, 'cluster')
    const apis = componentsNamed(seen, 'kube-apiserver')
    const isEarly = (api: ComponentPicture): boolean => hasOneLeaf(api) && change?.bridge !== undefined
    return [
      ...bundlesToPatch(seen, target).flatMap((bundle) =>
        patchingBundle(9, bundle, withNew(bundle.trust, changeOf(target, 'cluster')!)),
      ),
      ...restartHandlers(seen, target),
      ...apis.flatMap((api) => [
        // Before the kubelets' restart, which cuts the connections that still carry the old one. Where the same file serves, only
        // the bridge makes that possible: without it the kubelets must have read the new CA first, and phase 11 waits longer.
        ...(isEarly(api) ? serveNew(seen, api, target) : []),
        ...(hasOneLeaf(api) ? [] : reissuing(seen, 9, api, 'kubelet-client', target)),
        ...reissuing(seen, 9, api, 'front-proxy-client', target),
      ]),
      ...(change === undefined ? [] : kubelets(seen, target)),
      ...apis.flatMap((api) => (isEarly(api) ? [] : serveNew(seen, api, target))),
      ...(change === undefined || target.isDropping
        ? []
        : rollOut(seen, 9, unconverged(seen, target), change, target)),
    ]
  },

  undo(before, now, target) {
    const apis = componentsNamed(now, 'kube-apiserver')
    const { flag, key } = leafFlags.serving
    const leaves = new Set(apis.map(({ flags }) => flags[flag]))
    const keys = new Set(apis.map(({ flags }) => flags[key] ?? keyBeside(flags[flag] ?? '')))
    const isServing = (_node: string, path: string): boolean => leaves.has(path) || keys.has(path)
    const kubeletFiles = new Set(
      now.kubelets.flatMap((kubelet) =>
        [kubelet.kubeconfig, clientPathOf(kubelet), servingPathOf(kubelet), kubelet.servingKeyFile].map(
          (path) => `${kubelet.node}:${path}`,
        ),
      ),
    )
    const isKubelets = (node: string, path: string): boolean => kubeletFiles.has(`${node}:${path}`)
    const change = changeOf(target, 'cluster')
    const changed = changedFiles(before)
    // Of a new key too the old one comes back, before its certificate: an API server takes the two together or not at all.
    const servers = restoreFiles(before, now, isServing).toSorted(
      (a, b) => Number(keys.has(b.path)) - Number(keys.has(a.path)),
    )
    const others = restoreFiles(
      before,
      now,
      (node, path) => !isServing(node, path) && !isKubelets(node, path),
    )
    const ofKubelets = restoreFiles(before, now, isKubelets)
    // The kubelet's dated files are taken away once no link leads to them.
    const isTakenAway = ({ content }: WriteFile): boolean => content.kind === 'nothing'
    return {
      kind: 'steps',
      steps: [
        // Servers first: afterwards whoever goes back to the old CA alone meets no new leaf.
        ...servers.flatMap((write): Action[] => [
          write,
          ...(change === undefined || keys.has(write.path)
            ? []
            : [awaitServed(`${write.node}/kube-apiserver`, change.oldCa.spki, false)]),
        ]),
        ...others.filter((write) => !isTakenAway(write)),
        ...now.kubelets.flatMap((kubelet): Action[] => {
          const { node } = kubelet
          const writes = onNode(ofKubelets, node)
          const its = [kubelet.kubeconfig, clientPathOf(kubelet), servingPathOf(kubelet)]
          const theirs = its.filter((path) => changed.has(fileKey(node, path ?? '')))
          if (writes.length === 0 && hasRead(now, kubelet.process, node, theirs)) return []
          return [...writes, kubeletRestart(9, kubelet), awaitReady(9, node), provingLogs(9, node)]
        }),
        ...others.filter(isTakenAway),
        ...restoreObjects(
          before,
          (kind, name) =>
            now.caBundles.find(({ object }) => object.kind === kind && object.name === name)?.version,
        ),
      ],
    }
  },
})

function bundlesToPatch(seen: Seen<'caBundles'>, target: Target) {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  return bundlesWithOldCa(seen, change).filter(({ trust }) => !trust.includes(change.newCa.digest))
}

/** Aggregated API servers and webhook handlers know the front proxy by what API servers publish; many read it once. */
function unawareHandlers(seen: Seen<Sees>, target: Target): readonly PodPicture[] {
  if (changeOf(target, 'front-proxy') === undefined || target.isDropping) return []
  // Where it is not seen, nobody is known to have read it.
  const since = seen.extensionAuthentication?.changedAtMs ?? Number.POSITIVE_INFINITY
  const handlers = new Set(seen.workloads.filter(({ serves }) => serves.length > 0).map(({ id }) => id))
  return seen.pods.filter(
    (pod) => handlers.has(pod.workload ?? '') && pod.startedAtMs < since && !isWaived(pod, target),
  )
}

function restartHandlers(seen: Seen<Sees>, target: Target): readonly Step[] {
  const change = changeOf(target, 'front-proxy')
  const sinceMs = seen.extensionAuthentication?.changedAtMs
  if (change === undefined || sinceMs === undefined) return []
  const workloads = [...new Set(unawareHandlers(seen, target).map(({ workload }) => workload!))]
  const annotation = annotationFor(9, change, sinceMs)
  return together(
    target.atOnce,
    workloads.map((workload) => ({
      name: workload,
      steps: [
        { kind: 'roll', phase: 9, workload, annotation },
        {
          kind: 'wait',
          phase: 9,
          until: { kind: 'pods-started', workload, sinceMs },
          because: `pods of ${workload} have read both front-proxy CAs`,
          deadlineMs: 600_000,
        },
      ],
    })),
  )
}

/** The first node alone, then so many at once. */
function kubelets(seen: Seen<Sees>, target: Target): readonly Step[] {
  const change = changeOf(target, 'cluster')!
  return firstAlone(
    kubeletsAtOnce(seen, target),
    seen.kubelets.map((kubelet) => ({
      name: kubelet.node,
      steps: kubeletSteps(seen, 9, kubelet, change, target, withNew),
    })),
  )
}

function serveNew(seen: Seen<Sees>, api: Parameters<typeof reissuing>[2], target: Target): readonly Action[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const { bridge, newCa } = change
  const chain = bridge === undefined || target.isDropping ? [] : [bridge.digest]
  const writes = reissuing(seen, 9, api, 'serving', target, chain)
  const isServed = stillServing(seen, target).every(({ at }) => at !== api.id)
  if (writes.length === 0 && isServed) return []
  return [...writes, awaitServed(api.id, newCa.spki, chain.length > 0)]
}

function awaitServed(presenter: string, signedBy: string, bridged: boolean): Action {
  return {
    kind: 'wait',
    phase: 9,
    until: { kind: 'serves', presenter, signedBy, bridged },
    because: `${presenter} serves what its file holds`,
    deadlineMs: 60_000,
  }
}

/** Live handshakes with API servers and kubelets in which the old CA's leaf was shown. */
function stillServing(seen: Seen<'handshakes' | 'components' | 'kubelets'>, target: Target): readonly Gap[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const ours = new Set([
    ...componentsNamed(seen, 'kube-apiserver').map(({ id }) => id),
    ...seen.kubelets.map(({ id }) => id),
  ])
  return seen.handshakes
    .filter(({ presenter, chain }) => {
      const leaf = seen.certificates.get(chain[0] ?? '')
      return ours.has(presenter) && isSignedByCa(leaf, change.oldCa)
    })
    .map(({ presenter }) => ({ at: presenter, what: 'serves a certificate of the old CA' }))
}

function unconverged(seen: Seen<Sees>, target: Target): readonly PodPicture[] {
  const change = changeOf(target, 'cluster')!
  return seen.pods.filter(
    (pod) => !isWaived(pod, target) && convergenceOf(seen, change, target, pod) === 'stale',
  )
}
