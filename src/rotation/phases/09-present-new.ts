import type { Action, WriteFile } from '../action.ts'
import {
  awaitBackends,
  awaitReady,
  interruptions,
  kubeletPart,
  kubeletRestart,
  provingLogs,
} from '../kubelet-steps.ts'
import { leafFlags } from '../leaves.ts'
import { keyBeside } from '../material.ts'
import { definePhase, inParts } from '../phase.ts'
import { clientPathOf, fileKey, onNode, servingPathOf } from '../picture.ts'
import { componentsNamed } from '../restart.ts'
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

type Sees = (typeof sees)[number]

export const presentNew = definePhase('present-new', {
  sees,

  ...inParts<Sees>([
    // caBundles of webhooks and aggregated APIs get the new CA as well.
    caBundles,
    // Aggregated API servers and webhook handlers that started before both front-proxy CAs were published restart.
    handlers,
    // API servers' certificates, as clients and, where one file is both and a bridge certificate allows it, as servers.
    leaves,
    // All certificates of kubelets and the CA data of their kubeconfigs; one restart of each.
    kubeletPart(9, withNew),
    // The other API servers' serving certificates.
    lateServing,
    // Pods that did not read the new CA restart.
    pods,
  ]),

  remarks: (seen, target) => interruptions(seen, changeOf(target, 'cluster'), withNew),

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
          return [
            ...writes,
            kubeletRestart(9, kubelet),
            awaitReady(9, node),
            provingLogs(9, node),
            ...awaitBackends(now, 9, node, target),
          ]
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
