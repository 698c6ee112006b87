import type { Action, Step } from '../action.ts'
import { isSignedByCa } from '../certificate-record.ts'
import { convergenceOf, isWaived, podPlace, rereadInstant, rereadMs } from '../convergence.ts'
import { handshakeSubject } from '../handshake-errors.ts'
import { leafFile, leafFlags, leafIn } from '../leaves.ts'
import { definePhase, type Gap } from '../phase.ts'
import { fileAt, type Seen, servingPathOf } from '../picture.ts'
import { isProven, probe } from '../proof.ts'
import { componentsNamed, together } from '../restart.ts'
import { storedRemarks } from '../stored.ts'
import { bundleOf, type CaChange, changeOf, type Target } from '../target.ts'

/** Phase 12 has no way back: what was quiet yesterday may not be so today. */
const freshMs = 3_600_000

type Sees = 'components' | 'kubelets' | 'files' | 'published' | 'pods' | 'handshakes' | 'evidence'

export const verify = definePhase('verify', {
  sees: ['components', 'kubelets', 'files', 'published', 'pods', 'stored', 'handshakes', 'evidence'],

  gaps(seen, target): readonly Gap[] {
    if (target.isDropping) return []
    return [
      ...gapsOfCluster(seen, target),
      ...unquiet(seen, target).map(({ id }) => ({
        at: id,
        what: 'TLS handshake errors not compared with those before phase 1 since phase 9, or not within the last hour',
      })),
    ]
  },

  plan(seen, target): readonly Step[] {
    if (target.isDropping) return []
    const watching = unquiet(seen, target).map(({ id }) => ({
      name: id,
      steps: [probe(11, handshakeSubject(seen, target, id, target.soakMs), target.soakMs + 60_000)],
    }))
    const waiting = { name: 'pods', steps: podWaits(seen, target) }
    return together(watching.length + 1, [waiting, ...watching])
  },

  remarks: (seen, target) => (target.isDropping ? [] : storedRemarks(seen, target)),

  undo: () => ({ kind: 'steps', steps: [] }),
})

function gapsOfCluster(seen: Seen<Sees>, target: Target): readonly Gap[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  return [
    ...presentersOfOldCa(seen, target),
    ...silentServers(seen),
    ...seen.pods
      .filter((pod) => !isWaived(pod, target) && convergenceOf(seen, change, target, pod) !== 'converged')
      .map((pod) => ({ at: podPlace(pod), what: 'not known to have read the new CA' })),
    ...(seen.atMs < rereadInstant(seen.pods, target)
      ? [{ at: 'pods', what: 'the last volume has held both CAs for less than 5 minutes' }]
      : []),
    ...(seen.atMs < keptUntil(seen, change)
      ? [{ at: 'kubelets', what: 'may be asked with the old certificate on connections kept for 5 minutes' }]
      : []),
  ]
}

/** Until every volume has held both CAs for as long as the slowest client takes to read it. */
function podWaits(seen: Seen<Sees>, target: Target): readonly Action[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const isLate = seen.pods.some(({ volume }) => volume && !volume.trust.includes(change.newCa.digest))
  // A volume that is still to change does so now at the earliest.
  const instant = Math.max(rereadInstant(seen.pods, target), isLate ? seen.atMs + rereadMs : 0)
  const volumes: Action = {
    kind: 'wait',
    phase: 11,
    until: { kind: 'volumes', holds: bundleOf(change), lacks: [] },
    because: 'every pod volume holds both CAs',
    deadlineMs: 240_000,
  }
  const reading: Action = {
    kind: 'wait',
    phase: 11,
    until: { kind: 'instant', atMs: instant },
    because: 'clients have read ca.crt again: at most every 5 minutes they do',
    deadlineMs: rereadMs + 30_000,
  }
  const kept = keptUntil(seen, change)
  const closing: Action = {
    kind: 'wait',
    phase: 11,
    until: { kind: 'instant', atMs: kept },
    because: 'API servers have closed connections to kubelets that carry the old certificate',
    deadlineMs: rereadMs + 30_000,
  }
  return [
    ...(isLate ? [volumes] : []),
    ...(seen.atMs < instant ? [reading] : []),
    ...(Math.max(seen.atMs, instant) < kept ? [closing] : []),
  ]
}

/** API servers keep a connection to a kubelet with the certificate of its beginning, for as long: its restart ends it earlier. */
function keptUntil(seen: Seen<'components' | 'kubelets' | 'files'>, { newCa }: CaChange): number {
  const first = seen.kubelets.reduce(
    (least, { process }) => Math.min(least, process?.startedAtMs ?? least),
    seen.atMs,
  )
  return componentsNamed(seen, 'kube-apiserver').reduce((until, api) => {
    const file = leafFile(seen, api, 'kubelet-client')
    const changedAtMs = isSignedByCa(leafIn(seen, file), newCa) ? file!.changedAtMs : 0
    return changedAtMs > first ? Math.max(until, changedAtMs + rereadMs) : until
  }, 0)
}

/** Returns who still shows a leaf of the old CA: ours, or somebody else's, which its owner re-issues or a waiver names. */
export function presentersOfOldCa(seen: Seen<'handshakes'>, target: Target): readonly Gap[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  return seen.handshakes
    .filter(({ presenter, chain }) => {
      const leaf = seen.certificates.get(chain[0] ?? '')
      return isSignedByCa(leaf, change.oldCa) && !target.waivers.has(presenter)
    })
    .map(({ presenter }) => ({ at: presenter, what: 'shows a certificate of the old CA' }))
}

/**
 * Returns API servers, and kubelets that serve a certificate of a CA, whose certificate was not seen: whether it is one of the
 * old CA is not known.
 */
export function silentServers(seen: Seen<'handshakes' | 'components' | 'kubelets'>): readonly Gap[] {
  const shown = new Set(seen.handshakes.map(({ presenter }) => presenter))
  const kubelets = seen.kubelets.filter((kubelet) => servingPathOf(kubelet) !== undefined)
  return [...componentsNamed(seen, 'kube-apiserver'), ...kubelets]
    .filter(({ id }) => !shown.has(id))
    .map(({ id }) => ({ at: id, what: 'no TLS handshake succeeds: its certificate is not seen' }))
}

/** API servers whose counter of handshake errors was not watched since their leaf changed, or so long ago that it says little of now. */
function unquiet(seen: Seen<Sees>, target: Target) {
  return componentsNamed(seen, 'kube-apiserver').filter((api) => {
    const changedAtMs = fileAt(seen, api.node, api.flags[leafFlags.serving.flag])?.changedAtMs
    const since = changedAtMs && Math.max(changedAtMs, seen.atMs - freshMs)
    return !isProven(seen, handshakeSubject(seen, target, api.id, target.soakMs), since)
  })
}
