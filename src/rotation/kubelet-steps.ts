import { datedFileName } from '../pki/kubelet.ts'
import type { Action, RestartComponent, Step } from './action.ts'
import { capabilities, hasByDefault } from './capabilities.ts'
import { type Digest, isSignedByCa } from './certificate-record.ts'
import { rewritingKubeconfig } from './kubeconfig-files.ts'
import { isOfOldCa, leafIn, reissuingFile } from './leaves.ts'
import { clusterPart, type Gap, type Part } from './phase.ts'
import {
  byNode,
  clientPathOf,
  type FilePicture,
  fileAt,
  hasStartedSince,
  type KubeletPicture,
  type Seen,
  servingPathOf,
} from './picture.ts'
import { isProven, probe } from './proof.ts'
import { firstAlone } from './restart.ts'
import type { CaChange, Target } from './target.ts'
import { shortList } from './tested-versions.ts'

// A kubelet reads the CA data of its kubeconfig at its start, and both of its certificates: none of them is renewed because a
// CA changed. So all three are laid out, and one restart takes them together.

type Sees = 'kubelets' | 'files' | 'nodes' | 'evidence'

type CaDataOf = (trust: readonly Digest[], change: CaChange) => readonly Digest[]

/** Returns the part of a phase that gives kubelets their certificates and this CA data. */
export function kubeletPart(phase: number, caDataOf: CaDataOf): Part<Sees> {
  return clusterPart((seen, target, change) => ({
    gaps: seen.kubelets.flatMap((kubelet) => kubeletGaps(seen, kubelet, change, caDataOf)),
    steps: kubeletPass(seen, phase, change, target, caDataOf),
  }))
}

/** Returns what a kubelet lacks: new certificates, the CA data, a start since, logs that come through. */
function kubeletGaps(
  seen: Seen<Sees>,
  kubelet: KubeletPicture,
  change: CaChange,
  caDataOf: CaDataOf,
): readonly Gap[] {
  const { id, node, process } = kubelet
  const files = filesOf(seen, kubelet)
  const kubeconfig = files.kubeconfig
  const holds = kubeconfig?.holds
  const lacks = holds?.kind === 'kubeconfig' && caDataOf(holds.caData, change).join() !== holds.caData.join()
  const gap = (what: string): Gap => ({ at: id, what })
  const gaps = [
    ...(isOfOldCa(seen, files.client, change) ? [gap('client certificate of the old CA')] : []),
    ...(isOfOldCa(seen, files.serving, change) ? [gap('serving certificate of the old CA')] : []),
    ...(lacks ? [gap('kubelet.conf without the wanted CAs')] : []),
    ...(hasReadAll(seen, kubelet) ? [] : [gap('started before its files changed')]),
    ...(isReady(seen, node) ? [] : [gap('node not Ready')]),
  ]
  if (gaps.length > 0) return gaps
  return isProven(seen, { kind: 'logs', node }, process?.startedAtMs)
    ? []
    : [gap('logs not proven to come through every API server')]
}

/** Returns the steps of one node; none when nothing is open. */
function kubeletSteps(
  seen: Seen<Sees>,
  phase: number,
  kubelet: KubeletPicture,
  change: CaChange,
  target: Target,
  caDataOf: CaDataOf,
): readonly Action[] {
  if (kubeletGaps(seen, kubelet, change, caDataOf).length === 0) return []
  const { id, node, clientCurrent, servingCurrent } = kubelet
  const files = filesOf(seen, kubelet)
  const writes = [
    ...(isOfOldCa(seen, files.client, change) ? requesting(seen, phase, node, clientCurrent, 'client') : []),
    ...(isOfOldCa(seen, files.serving, change)
      ? requesting(seen, phase, node, servingCurrent, 'serving')
      : []),
    ...(servingCurrent === undefined ? reissuingServing(seen, phase, kubelet, change, target) : []),
    ...rewritingKubeconfig(seen, phase, files.kubeconfig, change, target, caDataOf),
  ]
  const restarts = writes.length > 0 || !hasReadAll(seen, kubelet) ? [kubeletRestart(phase, kubelet)] : []
  const waits: Action[] =
    servingCurrent === undefined && !isOfEither(seen, files.serving, change)
      ? []
      : [
          {
            kind: 'wait',
            phase,
            until: { kind: 'serves', presenter: id, signedBy: change.newCa.spki },
            because: `${id} serves its new certificate`,
            deadlineMs: 60_000,
          },
        ]
  return [
    ...writes,
    ...restarts,
    awaitReady(phase, node),
    ...waits,
    provingLogs(phase, node),
    ...awaitBackends(seen, phase, node, target),
  ]
}

/** Laid out by hand, it is nobody's to ask for: signed anew here, where the CA is. */
function reissuingServing(
  seen: Seen<'files'>,
  phase: number,
  kubelet: KubeletPicture,
  change: CaChange,
  target: Target,
): readonly Action[] {
  const files = { certificate: filesOf(seen, kubelet).serving, key: kubelet.servingKeyFile }
  return reissuingFile(seen, phase, files, change, target)
}

/** What a kubelet serves that another CA signed, or nobody, does not change. */
function isOfEither(seen: Seen<'files'>, file: FilePicture | undefined, { oldCa, newCa }: CaChange): boolean {
  const leaf = leafIn(seen, file)
  return isSignedByCa(leaf, oldCa) || isSignedByCa(leaf, newCa)
}

function isReady({ nodes }: Seen<'nodes'>, node: string): boolean {
  return nodeNamed(nodes, node)?.isReady === true
}

export function awaitReady(phase: number, node: string): Action {
  return {
    kind: 'wait',
    phase,
    until: { kind: 'node-ready', node },
    because: `node ${node} is Ready`,
    deadlineMs: 120_000,
  }
}

/** A restarted kubelet is Ready some 10 s before it answers for its containers again. */
export function provingLogs(phase: number, node: string): Action {
  return probe(phase, { kind: 'logs', node }, 90_000)
}

/**
 * Returns the steps of all kubelets. First those whose restart leaves pods Ready: one alone, then so many at once. The others one at a time,
 * each once the pods of the one before are Ready again: together they could take every replica of a Service away.
 */
function kubeletPass(
  seen: Seen<Sees>,
  phase: number,
  change: CaChange,
  target: Target,
  caDataOf: CaDataOf,
): readonly Step[] {
  const lanes = seen.kubelets.map((kubelet) => ({
    name: kubelet.node,
    steps: kubeletSteps(seen, phase, kubelet, change, target, caDataOf),
  }))
  const keeps = ({ name }: { readonly name: string }): boolean => keepsPodsReady(seen, name)
  return [
    ...firstAlone(target.atOnce, lanes.filter(keeps)),
    ...lanes.filter((lane) => !keeps(lane)).flatMap(({ steps }) => steps),
  ]
}

function keepsPodsReady({ nodes }: Seen<'nodes'>, node: string): boolean {
  return hasByDefault(capabilities.kubeletKeepsPodsReady, nodeNamed(nodes, node)?.kubeletVersion)
}

/** Behind the proof of its logs: by then a kubelet has reported its pods. From the plan on, as clocks may be apart. */
export function awaitBackends(
  seen: Seen<'nodes'>,
  phase: number,
  node: string,
  { mostClockSkewMs }: Target,
): readonly Action[] {
  if (keepsPodsReady(seen, node)) return []
  return [
    {
      kind: 'wait',
      phase,
      until: { kind: 'backends-ready', node, sinceMs: seen.atMs - mostClockSkewMs },
      because: `pods on ${node} that Services lead to are Ready again`,
      deadlineMs: 300_000,
    },
  ]
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
    const version = nodeNamed(seen.nodes, node)?.kubeletVersion || 'unknown version'
    return [
      `expected interruption of some seconds: the kubelet of ${node} (${version}) reports pods not Ready when it is restarted, and only there are pods of Service ${shortList(only)}`,
    ]
  })
}

function nodeNamed(nodes: Seen<'nodes'>['nodes'], node: string) {
  return byNode(nodes, ({ name }) => name).get(node)?.[0]
}

export function kubeletRestart(phase: number, { id, process: running }: KubeletPicture): RestartComponent {
  const replaces = running === undefined ? {} : { replaces: running.startedAtMs }
  return { kind: 'restart', phase, process: id, ...replaces, how: 'service' }
}

function filesOf(seen: Seen<'files'>, kubelet: KubeletPicture) {
  const { node, kubeconfig } = kubelet
  return {
    kubeconfig: fileAt(seen, node, kubeconfig),
    client: fileAt(seen, node, clientPathOf(kubelet)),
    serving: fileAt(seen, node, servingPathOf(kubelet)),
  }
}

function hasReadAll(seen: Seen<'files'>, kubelet: KubeletPicture): boolean {
  return Object.values(filesOf(seen, kubelet)).every((file) => hasStartedSince(kubelet.process, file))
}

/** The kubelet's store: a dated file with certificate and key, and a link to it that is changed at last. */
function requesting(
  seen: Seen<'files'>,
  phase: number,
  node: string,
  current: string | undefined,
  usage: 'client' | 'serving',
): readonly Action[] {
  const link = fileAt(seen, node, current)
  const leaf = leafIn(seen, link)
  if (current === undefined || link === undefined || leaf === undefined) return []
  const role = usage === 'client' ? 'kubelet-client' : 'kubelet-serving'
  const dated = `${current.slice(0, current.lastIndexOf('/'))}/${datedFileName(role, new Date(seen.atMs))}`
  return [
    {
      kind: 'write-file',
      phase,
      node,
      path: dated,
      replaces: fileAt(seen, node, dated)?.digest ?? 'absent',
      content: { kind: 'requested', usage, replaces: leaf.digest },
      mode: 0o600,
    },
    {
      kind: 'write-file',
      phase,
      node,
      path: current,
      replaces: link.digest,
      content: { kind: 'link', to: dated },
      mode: 0o600,
    },
  ]
}
