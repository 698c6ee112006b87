import { commandLine } from '../../errors/command-line.ts'
import type { PhasePlanView, RotationPlan, StepView } from '../../rotation/report.ts'
import { counted, joinSections } from '../sections.ts'
import { table } from '../table.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'
import { caLines, certificatesText, someOf } from './cas.ts'
import { onNodes, splitPlace } from './places.ts'
import { sourceDiff, sourceLines } from './sources.ts'
import { blockerLines } from './status.ts'

const risks = {
  reads: 'read-only',
  writes: 'writes files and objects, restarts nothing',
  restarts: 'restarts processes or pods',
  irreversible: 'CANNOT BE UNDONE',
} as const

/** Returns one phase's plan, for confirmation. */
export function renderPhasePlan(
  plan: PhasePlanView,
  view: View,
  isUndo = false,
  whenDone = 'already complete: nothing to do',
): string {
  const { number, title, risk, steps, remarks, pending } = plan
  const { paint } = view
  const head = [
    `${paint.heading(`phase ${number}`)} ${printable(title)}`,
    `  ${risk === 'irreversible' ? paint.severity.critical(risks[risk]) : risks[risk]}; about ${durationText(plan.estimatedSeconds)}`,
  ]
  const holds = !isUndo && pending.length === 0 ? [`  ${whenDone}`] : []
  const nothing = isUndo && steps.length === 0 ? ['  nothing to roll back'] : []
  const notes = remarks.map((remark) => `  ${paint.faint('note:')} ${printable(remark)}`)
  return `${[...head, ...holds, ...nothing, ...stepLines(steps, view), ...notes].join('\n')}\n`
}

/** Returns a complete plan: CAs, trust and credential holders, phases, impact, and blockers of the rotation. */
export function renderPlan(plan: RotationPlan, view: View, isUndo = false): string {
  const whenDone = plan.scope === 'all' ? 'will be complete by then: nothing to do' : undefined
  const phases = plan.phases.map((phase) =>
    renderPhasePlan(phase, view, isUndo, whenDone).trimEnd().split('\n'),
  )
  if (plan.scope === 'phase') {
    const none = isUndo && phases.length === 0 ? ['nothing to roll back'] : []
    return joinSections([caLines(plan, view), ...phases, none])
  }
  return joinSections([
    [view.paint.heading('CA rotation plan; nothing was written'), ...caLines(plan, view)],
    partyLines('TRUST HOLDER', plan.trustHolders, view),
    partyLines('CREDENTIAL HOLDER', plan.credentialHolders, view),
    ...phases,
    disturbanceLines(plan, view),
    assumptionLines(plan, view),
    keyTypeLines(plan, view),
    // Pods, kubeconfigs and webhooks do not use the CA of etcd.
    plan.cas.some(({ ca }) => ca === 'etcd') ? [] : radiusLines(plan, view),
    sourceLines(plan, view),
    plan.blockers.length === 0 ? ['nothing blocks the rotation'] : blockerLines(plan.blockers, view),
    [
      `about ${durationText(plan.estimatedSeconds)} in total, estimated from measurements; kcert plans each phase again before it runs it`,
    ],
    sourceDiff(plan.sources),
  ])
}

/** Steps that do the same on several nodes share one line. */
function stepLines(steps: readonly StepView[], view: View): string[] {
  const groups = Map.groupBy(steps, (step) => {
    const { node } = nodeAndWhat(step)
    const what = node === undefined ? step.what : withoutNode(step)
    return JSON.stringify([step.kind, what, node === undefined, step.changes?.map(withoutDigest)])
  })
  return [...groups.values()].flatMap((group) => {
    const nodes = group.flatMap((step) => nodeAndWhat(step).node ?? [])
    return group.slice(0, 1).flatMap((step) => groupLines(step, nodes, view))
  })
}

function groupLines(step: StepView, nodes: readonly string[], { paint }: View): string[] {
  const places = new Set(nodes)
  const what = places.size < 2 ? step.what : onNodes(withoutNode(step), nodes, 6)
  // The digest of a CA is the same on all nodes.
  const changes = (step.changes ?? []).map((line) =>
    places.size < 2 || !withoutDigest(line).includes('…') ? line : withoutDigest(line),
  )
  const shown = changes.slice(0, mostChangeLines)
  const more = changes.length - shown.length
  const stroke = (line: string) => (line.startsWith('- ') ? paint.severity.critical : paint.status.ok)
  return [
    `  ${printable(what)}`,
    ...shown.map((line) => `      ${stroke(line)(printable(line))}`),
    ...(more > 0 ? [`      ${paint.faint(`and ${counted(more, 'line')} more`)}`] : []),
  ]
}

const mostChangeLines = 12

/** Objects, workloads and the cluster are named unchanged. */
function nodeAndWhat({ kind, at }: StepView): { readonly node?: string; readonly what?: string } {
  const isOnNode = kind === 'write-file' || kind === 'restart' || kind === 'probe' || kind === 'wait'
  return isOnNode && at !== 'cluster' ? splitPlace(at) : {}
}

/** The step without its node: `write /etc/kubernetes/admin.conf (kubeconfig)`. */
function withoutNode(step: StepView): string {
  const { node = '', what = '' } = nodeAndWhat(step)
  return step.what
    .replace(step.at, what)
    .replace(`${node}:`, '')
    .replace(/^:/, '')
    .replace(/ :/, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
}

/** Each node's own certificate has a different digest, name and date. The rest of the line is the same on all nodes. */
function withoutDigest(line: string): string {
  return withoutNodeName(line)
    .replace(/ \(sha256 [0-9a-f]+\)/g, '')
    .replace(/\d{4}(?:-\d\d){5}/g, '…')
}

function withoutNodeName(text: string): string {
  return text.replace(/CN=system:node:[^ ,+]+/g, 'CN=system:node:…')
}

type Party = RotationPlan['credentialHolders'][number]

/** Holders of the same credential in the same place share one line, with their number. */
function partyLines(title: string, parties: readonly Party[], view: View): string[] {
  const rows = parties.map(({ name, location, certificates, loaded }) => {
    const slash = name.indexOf('/')
    return {
      name,
      location,
      kind: name.includes(' ') ? `${name.split(' ', 1)[0]} …${name.slice(slash)}` : name.slice(slash + 1),
      holds: withoutNodeName(certificatesText(certificates)),
      shows: loaded === undefined ? '' : withoutNodeName(certificatesText(loaded)),
    }
  })
  const groups = Map.groupBy(rows, ({ name, ...same }) => JSON.stringify(same))
  return table(
    view,
    [...groups.values()].flatMap((group) =>
      group.slice(0, 1).map((first) => ({ ...first, all: group.map(({ name }) => name) })),
    ),
    [
      { title, cell: ({ all }) => partiesText(all), shrinkTo: 20, preferredMinWidth: 40, cut: 'middle' },
      { title: 'WHERE', cell: ({ location }) => location, shrinkTo: 16, cut: 'middle', dropRank: 2 },
      { title: 'CONFIGURED', cell: ({ holds }) => holds, shrinkTo: 16 },
      { title: 'IN USE', cell: ({ shows }) => shows, shrinkTo: 16, dropRank: 1 },
    ],
  )
}

/** `kube-apiserver on cp1, cp2, cp3`, or the objects by name. */
function partiesText(name: readonly string[]): string {
  const split = name.map(splitPlace)
  const [{ what } = {}] = split
  if (name.length === 1 || !what || split.some(({ node }) => node === undefined)) return someOf(name, 2)
  const nodes = split.flatMap(({ node }) => node ?? [])
  return onNodes(what, nodes, 4)
}

function disturbanceLines({ restarts, rollouts }: RotationPlan, { paint }: View): string[] {
  const byName = Map.groupBy(
    restarts,
    ({ process: id, phases }) => `${id.slice(id.indexOf('/') + 1)} in ${phasesText(phases)}`,
  )
  const apis = restarts.some(({ process: id }) => id.endsWith('/kube-apiserver'))
  return [
    paint.heading('restarts'),
    ...[...byName].map(([name, its]) => {
      const nodes = its.map(({ process: id }) => id.slice(0, id.indexOf('/')))
      return `  ${name} on ${printable(someOf(nodes, 6))}`
    }),
    ...(apis ? [] : ['  no API server restarts']),
    ...rollouts.map(
      ({ workload, phases, pods }) =>
        `  ${printable(workload)} is rolled out in ${phasesText(phases)} (${counted(pods, 'pod')})`,
    ),
  ]
}

function assumptionLines({ assumptions }: RotationPlan, { paint }: View): string[] {
  if (assumptions.length === 0) return []
  return [paint.heading('assumptions'), ...assumptions.map((line) => `  ${printable(line)}`)]
}

function keyTypeLines({ keyType }: RotationPlan, { paint }: View): string[] {
  if (keyType === undefined) return []
  const { wanted, changes, unchanged, unchecked } = keyType
  return [
    paint.heading(`key type ${wanted}`),
    ...changes.map((line) => `  ${printable(line)}`),
    ...unchanged.map((line) => `  unchanged: ${printable(line)}`),
    ...unchecked.map((line) => `  not checked: ${printable(line)}`),
  ]
}

function phasesText(numbers: readonly number[]): string {
  return `phase${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}`
}

function radiusLines({ blastRadius, cas }: RotationPlan, { paint }: View): string[] {
  const { caBundles, appliedBundles, kubeconfigs, joinTokens, foreign, stored } = blastRadius
  const { storedUnchecked, barePods, pods } = blastRadius
  const outside = kubeconfigs.filter(({ onNode }) => !onNode)
  const pin = cas.find(({ ca }) => ca === 'cluster')?.oldPin
  return [
    paint.heading('affected'),
    `  ${counted(pods, 'pod')} with the CA in a volume`,
    ...caBundles.map(
      ({ id, server }) => `  ${printable(id)}: verified with the old CA (${printable(server)})`,
    ),
    ...(appliedBundles.length === 0
      ? []
      : [
          `  manifests applied with kubectl contain the old CA and would restore it: ${printable(someOf(appliedBundles, 6))}. Put both CAs into their caBundle after phase 1 and before phase 9, and only the new CA after phase 12 (see kcert rotate-ca plan --sources)`,
        ]),
    ...foreign.map(
      ({ server, leaf }) =>
        `  ${printable(server)} serves ${printable(leaf.subject)}, signed by the old CA: its owner must reissue it before phase 12`,
    ),
    ...stored.map(
      ({ object, what, owner }) =>
        `  ${printable(object)} ${printable(what)}: ${owner === undefined ? 'its owner' : `its owner (${printable(owner)})`} must replace it before phase 12`,
    ),
    ...storedUnchecked.map(
      (kind) => `  ${kind}s of other applications were not checked: kcert may not list them`,
    ),
    `  ${counted(kubeconfigs.length - outside.length, 'kubeconfig')} on nodes, rewritten in phase 7`,
    ...outside.map(
      ({ id }) => `  kubeconfig ${printable(id)} is outside the nodes: its owner needs a new one`,
    ),
    ...(joinTokens.length === 0
      ? []
      : [
          `  join tokens ${printable(joinTokens.join(', '))}: nodes can join with ${pin === undefined ? 'the old --discovery-token-ca-cert-hash' : pin} until phase 12`,
        ]),
    ...barePods.map((id) =>
      printable(
        commandLine`  Pod ${id} has no controller: restart it yourself, or accept the risk with --waive ${id}`,
      ),
    ),
    '  copies of admin.conf, and other kubeconfigs unknown to kcert, stop working in phase 12',
  ]
}

/** Returns `8 min`, `40 s`. */
export function durationText(seconds: number): string {
  if (seconds < 1) return 'less than 1 s'
  return seconds < 100 ? `${Math.ceil(seconds)} s` : `${Math.round(seconds / 60)} min`
}
