import { commandLine } from '../errors/command-line.ts'
import { bundlesWithOldCa } from './ca-bundles.ts'
import { isSignedByCa } from './certificate-record.ts'
import { unsignedTokens } from './cluster-info.ts'
import { nonePublished } from './conditions.ts'
import { convergenceOf, isWaived, podPlace } from './convergence.ts'
import type { JournalEntry } from './journal.ts'
import { evidenceIn } from './journal.ts'
import { type LeafRole, leafFile, leafFlags, leafIn } from './leaves.ts'
import type { Gap } from './phase.ts'
import { presentersOfOldCa, silentServers } from './phases/11-verify.ts'
import {
  apiServers,
  clientPathOf,
  type FilePicture,
  fileAt,
  type Picture,
  type PodPicture,
  servingPathOf,
} from './picture.ts'
import type { RotationVerification } from './report.ts'
import { cureOf as cureOfStored, storingOldAlone, unreadKinds } from './stored.ts'
import { type CaChange, changeOf, type Target } from './target.ts'
import { holdsNew, holdsOld, kubeletTrustFiles, trustFilesOf } from './trust-files.ts'
import { authorityViews, certificateViews, evidenceView, timeOf } from './views.ts'

const rightToList = 'ask for the right to list configmaps and secrets in all namespaces'

type Check = RotationVerification['checks'][number]

/** What a counter of handshake errors said while it was watched. */
export interface Counted {
  readonly at: string
  readonly ok: boolean
  readonly detail: string
  readonly atMs: number
  readonly accepted?: readonly string[]
}

/** Returns whether the old CA could go, or is gone: everything that presents, trusts or stores it, by name. */
export function verificationReport(
  seen: Picture,
  target: Target,
  history: readonly JournalEntry[],
  counted: readonly Counted[],
): RotationVerification {
  const checks = checksOf(seen, target, counted)
  return {
    apiVersion: 'kcert/v1',
    kind: 'RotationVerification',
    generatedAt: timeOf(seen.atMs),
    holds: checks.every(({ ok }) => ok),
    authorities: authorityViews(target),
    checks,
    handshakes: seen.handshakes.map(({ presenter, chain, atMs }) => ({
      presenter,
      chain: certificateViews(chain, seen.certificates, target),
      at: timeOf(atMs),
    })),
    evidence: [...evidenceIn(history).values()].map((one) => evidenceView(one, seen.atMs)),
  }
}

function checksOf(seen: Picture, target: Target, counted: readonly Counted[]): Check[] {
  const files = [
    ...trustFilesOf(seen, ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']),
    ...kubeletTrustFiles(seen),
  ]
  const leaves = ownLeaves(seen)
  const change = changeOf(target, 'cluster')
  const published = seen.published.filter(({ isActive }) => isActive)
  const pods = seen.pods.filter((pod) => !isWaived(pod, target))
  const gone = seen.nodes.filter(({ unreachable }) => unreachable !== undefined)
  return [
    check(
      'nodes',
      'every node answers',
      seen.nodes.length,
      gone.map(({ name, unreachable }) => gap(name, unreachable!)),
    ),
    check('presenters', 'nobody shows a certificate of the old CA', seen.handshakes.length, [
      ...presentersOfOldCa(seen, target).map((one) => ({ ...one, next: cureOf(seen, one.at) })),
      ...silentServers(seen),
    ]),
    check(
      'leaves',
      'no file holds a leaf of the old CA',
      leaves.length,
      leaves
        .filter(({ file, ca }) => isOld(seen, target, file, ca))
        .map(({ at }) => gap(at, 'signed by the old CA')),
    ),
    check('stored', 'no ConfigMap or Secret of others goes by the old CA alone', seen.stored.lookedAt, [
      ...storingOldAlone(seen, target).map((one) => gap(one.at, one.what, cureOfStored(one))),
      ...unreadKinds(seen).map((what) => gap('API server', what, rightToList)),
    ]),
    check(
      'verifiers',
      'every verifier trusts the new CA',
      files.length,
      files
        .filter((file) => !holdsNew(seen, file, target))
        .map(({ process, path }) => gap(process, `${path} without the new CA`)),
    ),
    ...(change === undefined
      ? []
      : [
          check('published', 'every namespace and service account has the new CA', published.length, [
            ...nonePublished(seen),
            ...published
              .filter(({ trust }) => !trust?.includes(change.newCa.digest))
              .map(({ kind, name, unread }) => gap(`${kind} ${name}`, unread ?? 'without the new CA')),
          ]),
          check(
            'pods',
            target.isDropping
              ? 'every pod has the new CA in its volume'
              : 'every pod has read the new CA, or had the time to read it again',
            pods.length,
            pods
              .filter((pod) => lacksNew(seen, target, change, pod))
              .map((pod) =>
                gap(
                  podPlace(pod),
                  'not known to have read the new CA',
                  commandLine`accept the risk with --waive ${pod.id}, or: kcert rotate-ca --phase 4`,
                ),
              ),
          ),
          check(
            'cluster-info',
            'whoever joins meets the new CA, signed for every token',
            seen.clusterInfo === undefined ? 0 : 1,
            [
              ...(seen.clusterInfo === undefined || seen.clusterInfo.trust.includes(change.newCa.digest)
                ? []
                : [gap('ConfigMap kube-public/cluster-info', 'without the new CA')]),
              ...unsignedTokens(seen),
            ],
          ),
        ]),
    {
      ...check(
        'handshake-errors',
        'no TLS handshake fails that did not fail before phase 1',
        counted.length,
        counted.length === 0
          ? [gap('kube-apiserver', 'no API server was seen, so that no counter was read')]
          : counted.filter(({ ok }) => !ok).map(({ at, detail }) => gap(at, detail)),
      ),
      ...acceptedAt(counted),
    },
    ...(target.isDropping
      ? [
          check('old-trust', 'nobody trusts the old CA', files.length + seen.caBundles.length, [
            ...files
              .filter((file) => holdsOld(seen, file, target))
              .map(({ process, path }) => gap(process, `${path} with the old CA`)),
            ...(change === undefined
              ? []
              : bundlesWithOldCa(seen, change).map(({ id }) => gap(id, 'holds the old CA'))),
          ]),
        ]
      : []),
  ]
}

function acceptedAt(counted: readonly Counted[]): Pick<Check, 'accepted'> {
  const accepted = counted.flatMap(({ at, accepted: its = [] }) => its.map((what) => ({ at, what })))
  return accepted.length === 0 ? {} : { accepted }
}

function check(
  id: string,
  what: string,
  checked: number,
  findings: readonly (Gap & { readonly next?: string | undefined })[],
): Check {
  return {
    id,
    what,
    ok: findings.length === 0,
    checked,
    findings: findings.map(({ at, what: found, next }) => ({
      at,
      what: found,
      ...(next === undefined ? {} : { next }),
    })),
  }
}

function gap(at: string, what: string, next?: string): Gap & { next?: string } {
  return { at, what, ...(next === undefined ? {} : { next }) }
}

/** Phase 12 changes volumes once more, and a process that knew both CAs still knows the new one. */
function lacksNew(seen: Picture, target: Target, change: CaChange, pod: PodPicture): boolean {
  if (target.isDropping) return pod.volume !== undefined && !pod.volume.trust.includes(change.newCa.digest)
  return convergenceOf(seen, change, target, pod) !== 'converged'
}

interface OwnLeaf {
  readonly at: string
  readonly file: FilePicture
  readonly ca: 'cluster' | 'front-proxy'
}

function ownLeaves(seen: Picture): readonly OwnLeaf[] {
  const leaf = (node: string, path: string | undefined, ca: OwnLeaf['ca']): OwnLeaf[] => {
    const file = fileAt(seen, node, path)
    return file === undefined ? [] : [{ at: `${node}:${file.path}`, file, ca }]
  }
  return [
    ...apiServers(seen).flatMap((api) =>
      (Object.keys(leafFlags) as LeafRole[]).flatMap((role) => {
        const file = leafFile(seen, api, role)
        return file === undefined ? [] : leaf(api.node, file.path, leafFlags[role].ca)
      }),
    ),
    ...seen.kubelets.flatMap((kubelet) => [
      ...leaf(kubelet.node, clientPathOf(kubelet), 'cluster'),
      ...leaf(kubelet.node, servingPathOf(kubelet), 'cluster'),
    ]),
    ...seen.kubeconfigs.flatMap(({ at }) => (at === undefined ? [] : leaf(at.node, at.path, 'cluster'))),
  ]
}

function isOld(seen: Picture, target: Target, file: FilePicture, ca: OwnLeaf['ca']): boolean {
  const change = changeOf(target, ca)
  return change !== undefined && isSignedByCa(leafIn(seen, file), change.oldCa)
}

/** Ours is phase 9's; somebody else's is re-issued by its owner, or taken upon the operator by name. */
function cureOf(seen: Picture, presenter: string): string {
  const isOurs =
    seen.kubelets.some(({ id }) => id === presenter) || seen.components.some(({ id }) => id === presenter)
  return isOurs ? 'kcert rotate-ca --phase 9' : commandLine`its owner re-issues it, or --waive ${presenter}`
}
