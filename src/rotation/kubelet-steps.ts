import { datedFileName } from '../pki/kubelet.ts'
import type { Lane, Step, Task } from './action.ts'
import { capabilities, hasByDefault } from './capabilities.ts'
import { isSignedByCa } from './certificate-record.ts'
import { type CaDataOf, rewritingKubeconfig } from './kubeconfig-files.ts'
import { isOfOldCa, leafIn, reissuingFile } from './leaves.ts'
import { clusterPart, type Gap, type Part } from './phase.ts'
import { isProven } from './proof.ts'
import {
  byNode,
  clientPathOf,
  type FileSnapshot,
  fileAt,
  hasStartedSince,
  type KubeletSnapshot,
  type Seen,
  servingPathOf,
} from './snapshot.ts'
import type { CaChange, Target } from './target.ts'
import { firstAlone, probe, rewrite, wait, write } from './tasks.ts'
import { shortList } from './tested-versions.ts'

// A kubelet reads the CA data of its kubeconfig at its start, and both of its certificates: none of them is renewed because a
// CA changed. So all three are laid out, and one restart takes them together.

type Sees = 'kubelets' | 'files' | 'nodes' | 'evidence'

/** Returns the part of a phase that gives kubelets their certificates and this CA data. */
export function kubeletPart(caDataOf: CaDataOf): Part<Sees> {
  return clusterPart((seen, target, change) => {
    const lanes = seen.kubelets.map((kubelet) => ({
      name: kubelet.node,
      steps: kubeletSteps(seen, kubelet, change, target, caDataOf),
    }))
    return {
      gaps: seen.kubelets.flatMap((kubelet) => kubeletGaps(seen, kubelet, change, caDataOf)),
      steps: kubeletPass(seen, lanes, target),
    }
  })
}

/** Returns what a kubelet lacks: new certificates, the CA data, a start since, logs that come through. */
function kubeletGaps(
  seen: Seen<Sees>,
  kubelet: KubeletSnapshot,
  change: CaChange,
  caDataOf: CaDataOf,
): readonly Gap[] {
  const { id, node, process } = kubelet
  const { client, serving, kubeconfig } = filesOf(seen, kubelet)
  const holds = kubeconfig?.holds
  const lacks = holds?.kind === 'kubeconfig' && caDataOf(holds.caData, change).join() !== holds.caData.join()
  const open: string[] = [
    isOfOldCa(seen, client, change) && 'client certificate of the old CA',
    isOfOldCa(seen, serving, change) && 'serving certificate of the old CA',
    lacks && 'kubelet.conf without the wanted CAs',
    !hasReadAll(seen, kubelet) && 'started before its files changed',
    nodeNamed(seen, node)?.isReady !== true && 'node not Ready',
  ].filter((what) => what !== false)
  if (open.length === 0 && !isProven(seen, { kind: 'logs', node }, process?.startedAtMs))
    open.push('logs not proven to come through every API server')
  return open.map((what) => ({ at: id, what }))
}

/** Returns the steps of one node; none when nothing is open. */
function kubeletSteps(
  seen: Seen<Sees>,
  kubelet: KubeletSnapshot,
  change: CaChange,
  target: Target,
  caDataOf: CaDataOf,
): readonly Task[] {
  if (kubeletGaps(seen, kubelet, change, caDataOf).length === 0) return []
  const { id, node, clientCurrent, servingCurrent, servingKeyFile } = kubelet
  const { client, serving, kubeconfig } = filesOf(seen, kubelet)
  const writes = [
    ...(isOfOldCa(seen, client, change) ? requesting(seen, node, clientCurrent, 'client') : []),
    ...(isOfOldCa(seen, serving, change) ? requesting(seen, node, servingCurrent, 'serving') : []),
    // Laid out by hand, it is nobody's to ask for: signed anew here, where the CA is.
    ...(servingCurrent === undefined ? reissuingFile(seen, serving, servingKeyFile, change, target) : []),
    ...rewritingKubeconfig(seen, kubeconfig, change, target, caDataOf),
  ]
  const until = { kind: 'serves', presenter: id, signedBy: change.newCa.spki } as const
  const isServed = servingCurrent !== undefined || isOfEither(seen, serving, change)
  return [
    ...writes,
    ...(writes.length > 0 || !hasReadAll(seen, kubelet) ? [kubeletRestart(kubelet)] : []),
    awaitReady(node),
    ...(isServed ? [wait(until, `${id} serves its new certificate`, 60_000)] : []),
    provingLogs(node),
    ...awaitBackends(seen, node, target),
  ]
}

/** What a kubelet serves that another CA signed, or nobody, does not change. */
function isOfEither(
  seen: Seen<'files'>,
  file: FileSnapshot | undefined,
  { oldCa, newCa }: CaChange,
): boolean {
  const leaf = leafIn(seen, file)
  return isSignedByCa(leaf, oldCa) || isSignedByCa(leaf, newCa)
}

/** Returns how a kubelet that was restarted is waited for. */
export function restarted(seen: Seen<'nodes'>, kubelet: KubeletSnapshot, target: Target): readonly Task[] {
  const { node } = kubelet
  return [kubeletRestart(kubelet), awaitReady(node), provingLogs(node), ...awaitBackends(seen, node, target)]
}

function awaitReady(node: string): Task {
  return wait({ kind: 'node-ready', node }, `node ${node} is Ready`, 120_000)
}

/** A restarted kubelet is Ready some 10 s before it answers for its containers again. */
export function provingLogs(node: string): Task {
  return probe({ kind: 'logs', node }, 90_000)
}

/**
 * Returns the steps of all kubelets. First those whose restart leaves pods Ready: one alone, then so many at once. The others one at a time,
 * each once the pods of the one before are Ready again: together they could take every replica of a Service away.
 */
function kubeletPass(
  seen: Seen<Sees>,
  lanes: readonly Lane<Task>[],
  { atOnce }: Target,
): readonly Step<Task>[] {
  const keeps = ({ name }: Lane<Task>): boolean => keepsPodsReady(seen, name)
  const others = lanes.filter((lane) => !keeps(lane))
  return [...firstAlone(atOnce, lanes.filter(keeps)), ...others.flatMap(({ steps }) => steps)]
}

function keepsPodsReady(seen: Seen<'nodes'>, node: string): boolean {
  return hasByDefault(capabilities.kubeletKeepsPodsReady, nodeNamed(seen, node)?.kubeletVersion)
}

/** Behind the proof of its logs: by then a kubelet has reported its pods. From the plan on, as clocks may be apart. */
function awaitBackends(seen: Seen<'nodes'>, node: string, { mostClockSkewMs }: Target): readonly Task[] {
  if (keepsPodsReady(seen, node)) return []
  const until = { kind: 'backends-ready', node, sinceMs: seen.atMs - mostClockSkewMs } as const
  return [wait(until, `pods on ${node} that Services lead to are Ready again`, 300_000)]
}

/** Returns which Services have no Ready pod for a moment, in words: those whose only ones are on a node with such a kubelet. */
export function interruptions(
  seen: Seen<Sees | 'backends'>,
  change: CaChange | undefined,
  caDataOf: CaDataOf,
): readonly string[] {
  if (change === undefined) return []
  const nodesOf = new Map<string, Set<string>>()
  for (const { services, node } of seen.backends.filter(({ isReady }) => isReady))
    for (const service of services) nodesOf.set(service, (nodesOf.get(service) ?? new Set()).add(node))
  const alone = Map.groupBy(
    [...nodesOf].filter(([, nodes]) => nodes.size === 1),
    ([, [node]]) => node,
  )
  return seen.kubelets.flatMap((kubelet) => {
    const { node } = kubelet
    if (keepsPodsReady(seen, node)) return []
    const only = (alone.get(node) ?? []).map(([service]) => service)
    if (only.length === 0 || kubeletGaps(seen, kubelet, change, caDataOf).length === 0) return []
    const version = nodeNamed(seen, node)?.kubeletVersion || 'unknown version'
    return [
      `expected interruption of some seconds: the kubelet of ${node} (${version}) reports pods not Ready when it is restarted, and only there are pods of Service ${shortList(only)}`,
    ]
  })
}

function nodeNamed({ nodes }: Seen<'nodes'>, node: string) {
  return byNode(nodes, ({ name }) => name).get(node)?.[0]
}

function kubeletRestart({ id, process: running }: KubeletSnapshot): Task<'restart'> {
  const replaces = running && { replaces: running.startedAtMs }
  return { kind: 'restart', process: id, ...replaces, how: 'service' }
}

function filesOf(seen: Seen<'files'>, kubelet: KubeletSnapshot) {
  const { node, kubeconfig } = kubelet
  return {
    kubeconfig: fileAt(seen, node, kubeconfig),
    client: fileAt(seen, node, clientPathOf(kubelet)),
    serving: fileAt(seen, node, servingPathOf(kubelet)),
  }
}

function hasReadAll(seen: Seen<'files'>, kubelet: KubeletSnapshot): boolean {
  return Object.values(filesOf(seen, kubelet)).every((file) => hasStartedSince(kubelet.process, file))
}

/** The kubelet's store: a dated file with certificate and key, and a link to it that is changed at last. */
function requesting(
  seen: Seen<'files'>,
  node: string,
  current: string | undefined,
  usage: 'client' | 'serving',
): readonly Task<'write-file'>[] {
  const link = fileAt(seen, node, current)
  const leaf = leafIn(seen, link)
  if (current === undefined || link === undefined || leaf === undefined) return []
  const role = usage === 'client' ? 'kubelet-client' : 'kubelet-serving'
  const dated = `${current.slice(0, current.lastIndexOf('/'))}/${datedFileName(role, new Date(seen.atMs))}`
  return [
    write(seen, node, dated, { kind: 'requested', usage, replaces: leaf.digest }),
    { ...rewrite(link, { kind: 'link', to: dated }), mode: 0o600 },
  ]
}
