import { interruptions, kubeletPart, restarted } from '../kubelet-steps.ts'
import { leafFlags } from '../leaves.ts'
import { keyPathFor } from '../material.ts'
import { definePhase, inParts } from '../phase.ts'
import { apiServers, clientPathOf, fileKey, onNode, servingPathOf } from '../snapshot.ts'
import { changeOf, withNew } from '../target.ts'
import { restoreFiles, restoreObjects } from '../undo.ts'
import { changedFiles, hasRead } from '../undo-pass.ts'
import { awaitServed, lateServing, leaves } from './present-new/api-servers.ts'
import { caBundles } from './present-new/ca-bundles.ts'
import { handlers } from './present-new/handlers.ts'
import { pods } from './present-new/pods.ts'

const sees = [
  'nodes',
  'components',
  'kubelets',
  'files',
  'published',
  'pods',
  'backends',
  'workloads',
  'caBundles',
  'extensionAuthentication',
  'handshakes',
  'evidence',
] as const

export const presentNew = definePhase('present-new', {
  sees,

  ...inParts<(typeof sees)[number]>(
    // The caBundles of webhooks and aggregated APIs get the new CA too.
    caBundles,
    // Aggregated API servers and webhook handlers restart if they started before both front-proxy CAs were published.
    handlers,
    // API servers get new client certificates. A file that is both a client and a serving certificate changes here only if a
    // bridge certificate allows it.
    leaves,
    // Kubelets get new certificates and new CA data in their kubeconfigs. Each kubelet restarts once.
    kubeletPart(withNew),
    // The other API servers get new serving certificates.
    lateServing,
    // Pods that have not read the new CA restart.
    pods,
  ),

  remarks: (observed, target) => interruptions(observed, changeOf(target, 'cluster'), withNew),

  *undo(copies, now, target) {
    const apis = apiServers(now)
    const { flag, key } = leafFlags.serving
    const leaves = new Set(apis.map(({ flags }) => flags[flag]))
    const keys = new Set(apis.map(({ flags }) => flags[key] ?? keyPathFor(flags[flag] ?? '')))
    const isServing = (path: string): boolean => leaves.has(path) || keys.has(path)
    const kubeletFiles = new Set(
      now.kubelets.flatMap((kubelet) =>
        [kubelet.kubeconfig, clientPathOf(kubelet), servingPathOf(kubelet), kubelet.servingKeyFile].map(
          (path) => fileKey(kubelet.node, path ?? ''),
        ),
      ),
    )
    const isKubelets = (node: string, path: string): boolean => kubeletFiles.has(fileKey(node, path))
    const change = changeOf(target, 'cluster')
    const changed = changedFiles(copies)
    // Restore servers first. Afterwards, clients that trust only the old CA again get no leaf certificate of the new CA. A new
    // key is replaced by the old one before its certificate: an API server loads the two together or not at all.
    const servers = restoreFiles(copies, now, (_node, path) => isServing(path))
    for (const write of servers.toSorted((a, b) => Number(keys.has(b.path)) - Number(keys.has(a.path)))) {
      yield write
      if (change !== undefined && !keys.has(write.path))
        yield awaitServed(`${write.node}/kube-apiserver`, change.oldCa.spki, false)
    }
    const others = restoreFiles(copies, now, (node, path) => !isServing(path) && !isKubelets(node, path))
    yield* others.filter(({ content }) => content.kind !== 'nothing')
    const ofKubelets = restoreFiles(copies, now, isKubelets)
    for (const kubelet of now.kubelets) {
      const { node } = kubelet
      const writes = onNode(ofKubelets, node)
      const its = [kubelet.kubeconfig, clientPathOf(kubelet), servingPathOf(kubelet)]
      const theirs = its.filter((path) => changed.has(fileKey(node, path ?? '')))
      if (writes.length === 0 && hasRead(now, kubelet.process, node, theirs)) continue
      yield* writes
      yield* restarted(now, kubelet, target)
    }
    // The kubelet's dated files are removed once no link points to them.
    yield* others.filter(({ content }) => content.kind === 'nothing')
    const bundles = now.caBundles
    yield* restoreObjects(
      copies,
      (kind, name) => bundles.find(({ object }) => object.kind === kind && object.name === name)?.version,
    )
  },
})
