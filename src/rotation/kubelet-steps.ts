import { shortList } from '../errors/short-list.ts'
import { datedFileName } from '../pki/kubelet.ts'
import type { Step, Task } from './action.ts'
import { capabilities, whyEarlier } from './capabilities.ts'
import { isSignedByCa } from './certificate-record.ts'
import { type CaDataOf, rewritingKubeconfig } from './kubeconfig-files.ts'
import { isOfOldCa, leafIn, reissuingFile } from './leaves.ts'
import { clusterPart, type Part, type PendingItem } from './phase.ts'
import { isProven } from './proof.ts'
import {
  byNode,
  clientPathOf,
  fileAt,
  hasStartedSince,
  type KubeletSnapshot,
  type Observed,
  servingPathOf,
} from './snapshot.ts'
import type { CaChange, Target } from './target.ts'
import { firstAlone, probe, restart, rewrite, wait, write } from './tasks.ts'

// A kubelet reads the CA data of its kubeconfig and both of its certificates at startup. A change of the CA does not renew any of
// them. kcert therefore writes all three, and one restart loads them together.

type Sees = 'kubelets' | 'files' | 'nodes' | 'evidence'

/**
 * Returns the part of a phase that gives kubelets new certificates and this CA data. Kubelets that keep pods Ready during a restart
 * come first: one alone, then several in parallel. The others restart one at a time, each after the pods of the previous node are
 * Ready again: together they could stop every replica of a Service.
 */
export function kubeletPart(caDataOf: CaDataOf): Part<Sees> {
  return clusterPart((observed, target, change) => ({
    gaps: observed.kubelets.flatMap((kubelet) => kubeletGaps(observed, kubelet, change, caDataOf)),
    steps: inBatches(observed, target, (kubelet) =>
      kubeletSteps(observed, kubelet, change, target, caDataOf),
    ),
  }))
}

/** Returns steps with restarts of kubelets in the order of `kubeletPart`. */
export function inBatches(
  observed: Observed<'kubelets' | 'nodes'>,
  { atOnce }: Target,
  stepsOf: (kubelet: KubeletSnapshot) => readonly Task[],
): readonly Step<Task>[] {
  const { keeping = [], others = [] } = Object.groupBy(observed.kubelets, (kubelet) =>
    whyUnready(observed, kubelet) === undefined ? 'keeping' : 'others',
  )
  const lanes = keeping.map((kubelet) => ({ name: kubelet.node, steps: stepsOf(kubelet) }))
  return [...firstAlone(atOnce, lanes), ...others.flatMap(stepsOf)]
}

/** Returns what a kubelet lacks: new certificates, the CA data, a restart since then, or logs that can be read. */
function kubeletGaps(
  observed: Observed<Sees>,
  kubelet: KubeletSnapshot,
  change: CaChange,
  caDataOf: CaDataOf,
): readonly PendingItem[] {
  const { id, node, process } = kubelet
  const { client, serving, kubeconfig } = filesOf(observed, kubelet)
  const contains = kubeconfig?.contains
  const lacks =
    contains?.kind === 'kubeconfig' && caDataOf(contains.caData, change).join() !== contains.caData.join()
  const open: string[] = [
    isOfOldCa(observed, client, change) && 'client certificate of the old CA',
    isOfOldCa(observed, serving, change) && 'serving certificate of the old CA',
    lacks && 'kubelet.conf without the required CAs',
    !hasReadAll(observed, kubelet) && 'not restarted since its files changed',
    nodeNamed(observed, node)?.isReady !== true && 'node not Ready',
  ].filter((what) => what !== false)
  if (open.length === 0 && !isProven(observed, { kind: 'logs', node }, process?.startedAtMs))
    open.push('kubelet logs not yet read through every API server')
  return open.map((what) => ({ at: id, what }))
}

/** Returns the steps of one node; empty when nothing is pending. */
function kubeletSteps(
  observed: Observed<Sees>,
  kubelet: KubeletSnapshot,
  change: CaChange,
  target: Target,
  caDataOf: CaDataOf,
): readonly Task[] {
  if (kubeletGaps(observed, kubelet, change, caDataOf).length === 0) return []
  const { id, node, clientCurrent, servingCurrent, servingKeyFile } = kubelet
  const { client, serving, kubeconfig } = filesOf(observed, kubelet)
  const writes = [
    ...(isOfOldCa(observed, client, change) ? requesting(observed, node, clientCurrent, 'client') : []),
    ...(isOfOldCa(observed, serving, change) ? requesting(observed, node, servingCurrent, 'serving') : []),
    // A certificate created by hand has no CSR flow, so kcert reissues it with the CA key.
    ...(servingCurrent === undefined ? reissuingFile(observed, serving, servingKeyFile, change, target) : []),
    ...rewritingKubeconfig(observed, kubeconfig, change, target, caDataOf),
  ]
  const until = { kind: 'serves', server: id, signedBy: change.newCa.spki } as const
  // A serving certificate of another CA or a self-signed one does not change.
  const ofEither = [change.oldCa, change.newCa].some((ca) => isSignedByCa(leafIn(observed, serving), ca))
  const isServed = servingCurrent !== undefined || ofEither
  return [
    ...writes,
    ...(writes.length > 0 || !hasReadAll(observed, kubelet) ? [kubeletRestart(kubelet)] : []),
    awaitReady(node),
    ...(isServed ? [wait(until, `${id} serves its new certificate`, 60_000)] : []),
    provingLogs(node),
    ...awaitBackends(observed, kubelet, target),
  ]
}

/** Returns the restart of a kubelet and the waits that follow, with the proof that API servers reach it. */
export function restarted(
  observed: Observed<'nodes'>,
  kubelet: KubeletSnapshot,
  target: Target,
): readonly Task[] {
  return restartedKubelet(observed, kubelet, target, [provingLogs(kubelet.node)])
}

/** Returns the restart of a kubelet, the waits that follow, and these proofs in between. */
export function restartedKubelet(
  observed: Observed<'nodes'>,
  kubelet: KubeletSnapshot,
  target: Target,
  proofs: readonly Task[] = [],
): readonly Task[] {
  return [
    kubeletRestart(kubelet),
    awaitReady(kubelet.node),
    ...proofs,
    ...awaitBackends(observed, kubelet, target),
  ]
}

function awaitReady(node: string): Task {
  return wait({ kind: 'node-ready', node }, `node ${node} is Ready`, 120_000)
}

/** Returns the log probe. A restarted kubelet is Ready about 10 s before it reports its containers again. */
export function provingLogs(node: string): Task {
  return probe({ kind: 'logs', node }, 90_000)
}

/** Returns why a kubelet reports its pods as not Ready after a restart; undefined if it keeps them Ready. */
export function whyUnready(
  observed: Observed<'nodes'>,
  { node, gates }: KubeletSnapshot,
): string | undefined {
  return whyEarlier(capabilities.kubeletKeepsPodsReady, nodeNamed(observed, node)?.kubeletVersion, gates)
}

/**
 * Returns the wait for pods after the log probe, because the kubelet has reported its pods by then. It counts from the time of
 * the plan, because clocks may differ.
 */
function awaitBackends(
  observed: Observed<'nodes'>,
  kubelet: KubeletSnapshot,
  { mostClockSkewMs }: Target,
): readonly Task[] {
  const { node } = kubelet
  if (whyUnready(observed, kubelet) === undefined) return []
  const until = { kind: 'backends-ready', node, sinceMs: observed.atMs - mostClockSkewMs } as const
  return [wait(until, `pods on ${node} that Services select are Ready again`, 300_000)]
}

/** Returns remarks on Services that briefly have no Ready pod: their only pods are on a node with such a kubelet. */
export function interruptions(
  observed: Observed<Sees | 'backends'>,
  change: CaChange | undefined,
  caDataOf: CaDataOf,
): readonly string[] {
  if (change === undefined) return []
  const nodesOf = new Map<string, Set<string>>()
  for (const { services, node } of observed.backends.filter(({ isReady }) => isReady))
    for (const service of services) nodesOf.set(service, (nodesOf.get(service) ?? new Set()).add(node))
  const alone = Map.groupBy(
    [...nodesOf].filter(([, nodes]) => nodes.size === 1),
    ([, [node]]) => node,
  )
  return observed.kubelets.flatMap((kubelet) => {
    const { node } = kubelet
    const why = whyUnready(observed, kubelet)
    if (why === undefined) return []
    const only = (alone.get(node) ?? []).map(([service]) => service)
    if (only.length === 0 || kubeletGaps(observed, kubelet, change, caDataOf).length === 0) return []
    return [
      `expect an interruption of some seconds: the kubelet of ${node} (${why}) reports its pods as not Ready after a restart, and all pods of Service ${shortList(only)} are on this node`,
    ]
  })
}

export function nodeNamed({ nodes }: Observed<'nodes'>, node: string) {
  return byNode(nodes, ({ name }) => name).get(node)?.[0]
}

function kubeletRestart({ id, process: running }: KubeletSnapshot): Task<'restart'> {
  return restart(id, running, 'service')
}

function filesOf(observed: Observed<'files'>, kubelet: KubeletSnapshot) {
  const { node, kubeconfig } = kubelet
  return {
    kubeconfig: fileAt(observed, node, kubeconfig),
    client: fileAt(observed, node, clientPathOf(kubelet)),
    serving: fileAt(observed, node, servingPathOf(kubelet)),
  }
}

function hasReadAll(observed: Observed<'files'>, kubelet: KubeletSnapshot): boolean {
  return Object.values(filesOf(observed, kubelet)).every((file) => hasStartedSince(kubelet.process, file))
}

/** The kubelet's store: a dated file with certificate and key, and a link to it that changes last. */
function requesting(
  observed: Observed<'files'>,
  node: string,
  current: string | undefined,
  usage: 'client' | 'serving',
): readonly Task<'write-file'>[] {
  const link = fileAt(observed, node, current)
  const leaf = leafIn(observed, link)
  if (current === undefined || link === undefined || leaf === undefined) return []
  const role = usage === 'client' ? 'kubelet-client' : 'kubelet-serving'
  const dated = `${current.slice(0, current.lastIndexOf('/'))}/${datedFileName(role, new Date(observed.atMs))}`
  return [
    write(observed, node, dated, { kind: 'requested', usage, replaces: leaf.digest }),
    { ...rewrite(link, { kind: 'link', to: dated }), mode: 0o600 },
  ]
}
