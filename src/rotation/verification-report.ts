import { commandLine } from '../errors/command-line.ts'
import { bundlesWithOldCa } from './ca-bundles.ts'
import { type Check, check, finding } from './checks.ts'
import { clusterInfoPlace, unsignedTokens } from './cluster-info.ts'
import { nonePublished } from './conditions.ts'
import { convergenceOf, isWaived, podPlace } from './convergence.ts'
import { evidenceIn, type JournalEntry } from './journal.ts'
import { kubeconfigFiles } from './kubeconfig-files.ts'
import { type ApiLeaf, apiLeaves, isLeafOf } from './leaves.ts'
import { presentersOfOldCa, silentServers } from './phases/11-verify.ts'
import type { ProbeAnswer } from './ports.ts'
import type { RotationVerification } from './report.ts'
import { keyChecks } from './service-account-key/verification.ts'
import { clientPathOf, fileAt, fileKey, type PodSnapshot, type Snapshot, servingPathOf } from './snapshot.ts'
import { cureOf as cureOfStored, storingOldAlone, unreadKinds } from './stored.ts'
import { type CaChange, changeOf, type Target } from './target.ts'
import { allTrustFiles, containsNew, containsOld, type TrustFile } from './trust-files.ts'
import { caViews, certificateViews, evidenceView, keyView, timeOf } from './views.ts'

const rightToList = 'kubectl auth can-i list secrets --all-namespaces'

/** Readings of a counter of handshake errors. */
export interface Counted extends Pick<ProbeAnswer, 'ok' | 'detail' | 'accepted'> {
  readonly at: string
  readonly atMs: number
}

/** Returns whether the old CA can be removed, or is removed: every server, verifier and object that still uses it, by name. */
export function verificationReport(
  observed: Snapshot,
  target: Target,
  history: readonly JournalEntry[],
  counted: readonly Counted[],
): RotationVerification {
  return {
    ...reportOf(observed, target, history, checksOf(observed, target, counted)),
    handshakes: observed.handshakes.map(({ server, chain, atMs }) => ({
      server,
      chain: certificateViews(chain, observed.certificates, target),
      at: timeOf(atMs),
    })),
  }
}

/** Returns the same for the old service account key. */
export function keyVerificationReport(
  observed: Snapshot,
  target: Target,
  history: readonly JournalEntry[],
): RotationVerification {
  return { ...reportOf(observed, target, history, keyChecks(observed, target)), ...keyView(target) }
}

function reportOf(
  observed: Snapshot,
  target: Target,
  history: readonly JournalEntry[],
  checks: Check[],
): RotationVerification {
  return {
    apiVersion: 'kcert/v1',
    kind: 'RotationVerification',
    generatedAt: timeOf(observed.atMs),
    ok: checks.every(({ ok }) => ok),
    cas: caViews(target),
    checks,
    handshakes: [],
    evidence: [...evidenceIn(history).values()].map((one) => evidenceView(one, observed.atMs)),
  }
}

function checksOf(observed: Snapshot, target: Target, counted: readonly Counted[]): Check[] {
  const change = changeOf(target, 'cluster')
  const files = allTrustFiles(observed)
  return [
    check(
      'nodes',
      'every node answers',
      observed.nodes.length,
      observed.nodes.flatMap(({ name, unreachable }) =>
        unreachable === undefined ? [] : [finding(name, unreachable)],
      ),
    ),
    check('served-certificates', 'no server uses a certificate of the old CA', observed.handshakes.length, [
      ...presentersOfOldCa(observed, target).map((one) => ({ ...one, next: cureOf(observed, one.at) })),
      ...silentServers(observed),
    ]),
    leavesCheck(observed, target),
    check(
      'stored',
      'no ConfigMap or Secret of other applications contains only the old CA',
      observed.stored.examined,
      [
        ...storingOldAlone(observed, target).map((one) => finding(one.at, one.what, cureOfStored(one))),
        ...unreadKinds(observed).map((what) => finding('API server', what, rightToList)),
      ],
    ),
    check(
      'trust',
      'every component trusts the new CA',
      files.length,
      files
        .filter((file) => !containsNew(observed, file, target))
        .map(({ process, path }) => finding(process, `${path} without the new CA`)),
    ),
    ...(change === undefined ? [] : clusterChecks(observed, target, change)),
    handshakesCheck(counted),
    ...(target.isDropping ? [oldTrustCheck(observed, target, files)] : []),
  ]
}

function leavesCheck(observed: Snapshot, target: Target): Check {
  const leaves = ownLeaves(observed)
  const old = leaves.filter((leaf) => isLeafOf('oldCa', observed, leaf, target))
  const findings = old.map(({ file: { node, path } }) => finding(fileKey(node, path), 'signed by the old CA'))
  return check(
    'leaf-certificates',
    'no file contains a leaf certificate of the old CA',
    leaves.length,
    findings,
  )
}

function clusterChecks(observed: Snapshot, target: Target, change: CaChange): readonly Check[] {
  const { digest } = change.newCa
  const published = observed.published.filter(({ isActive }) => isActive)
  const pods = observed.pods.filter((pod) => !isWaived(pod, target))
  const lacking = pods.filter((pod) => lacksNew(observed, target, change, pod))
  const isInInfo = observed.clusterInfo?.trust.includes(digest) ?? true
  const read = target.isDropping
    ? 'every pod has the new CA in its volume'
    : 'every pod has read the new CA, or had time to read it again'
  return [
    check('published', 'every namespace and service account has the new CA', published.length, [
      ...nonePublished(observed),
      ...published
        .filter(({ trust }) => !trust?.includes(digest))
        .map(({ kind, name, unread }) => finding(`${kind} ${name}`, unread ?? 'without the new CA')),
    ]),
    check('pods', read, pods.length, lacking.map(unreadGap)),
    check(
      'cluster-info',
      'joining nodes get the new CA, signed for every token',
      observed.clusterInfo === undefined ? 0 : 1,
      [...(isInInfo ? [] : [finding(clusterInfoPlace, 'without the new CA')]), ...unsignedTokens(observed)],
    ),
  ]
}

function unreadGap(pod: PodSnapshot): Check['findings'][number] {
  const what = commandLine`may not have read the new CA (to accept the risk: --waive ${pod.id})`
  return finding(podPlace(pod), what, 'kcert rotate-ca --phase 4')
}

function handshakesCheck(counted: readonly Counted[]): Check {
  const failed = counted.filter(({ ok }) => !ok).map(({ at, detail }) => finding(at, detail))
  const none = finding('kube-apiserver', 'no API server was found, so no counter was read')
  const what = 'TLS handshakes do not fail more often than before phase 1'
  const accepted = counted.flatMap(({ at, accepted: its = [] }) => its.map((one) => ({ at, what: one })))
  return {
    ...check('handshake-errors', what, counted.length, counted.length === 0 ? [none] : failed),
    ...(accepted.length > 0 && { accepted }),
  }
}

function oldTrustCheck(observed: Snapshot, target: Target, files: readonly TrustFile[]): Check {
  const change = changeOf(target, 'cluster')
  return check('old-trust', 'nothing trusts the old CA', files.length + observed.caBundles.length, [
    ...files
      .filter((file) => containsOld(observed, file, target))
      .map(({ process, path }) => finding(process, `${path} with the old CA`)),
    ...(change ? bundlesWithOldCa(observed, change).map(({ id }) => finding(id, 'contains the old CA')) : []),
  ])
}

/** Phase 12 changes volumes once more. A process that trusted both CAs still trusts the new one. */
function lacksNew(observed: Snapshot, target: Target, change: CaChange, pod: PodSnapshot): boolean {
  if (target.isDropping) return pod.volume !== undefined && !pod.volume.trust.includes(change.newCa.digest)
  return convergenceOf(observed, change, target, pod) !== 'converged'
}

function ownLeaves(observed: Snapshot): readonly Pick<ApiLeaf, 'file' | 'ca'>[] {
  const kubelets = observed.kubelets.flatMap((kubelet) => [
    fileAt(observed, kubelet.node, clientPathOf(kubelet)),
    fileAt(observed, kubelet.node, servingPathOf(kubelet)),
  ])
  const others = [...kubelets, ...kubeconfigFiles(observed).map(({ file }) => file)]
  return [
    ...apiLeaves(observed),
    ...others.flatMap((file) => (file ? [{ file, ca: 'cluster' as const }] : [])),
  ]
}

/** Phase 9 reissues kcert's own certificates. The owner reissues any other one, or the operator accepts the risk by name. */
function cureOf(observed: Snapshot, server: string): string {
  const isOurs = [...observed.kubelets, ...observed.components].some(({ id }) => id === server)
  return isOurs ? 'kcert rotate-ca --phase 9' : commandLine`kcert rotate-ca verify --waive ${server}`
}
