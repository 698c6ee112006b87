import { commandLine } from '../../errors/command-line.ts'
import { clusterRequest } from '../cluster-request.ts'
import { collectionOf } from '../life.ts'
import { approvedCauses } from './approved.ts'
import { type CauseRow, explanationOf, wordOf } from './cause.ts'
import { pendingCauses } from './pending.ts'
import type { Explanation } from './report.ts'
import { settledCauses } from './settled.ts'
import type { Gathered, Situation } from './situation.ts'

/** Less than this until the object is removed is worth saying. */
const soonMs = 2 * 3_600_000

/** Every cause that kcert knows, the deciding ones first. docs/ lists them. */
export const causes: readonly CauseRow[] = [
  ...settledCauses,
  ...pendingCauses,
  ...approvedCauses,
  {
    id: 'removed-soon',
    weight: 'note',
    holds: (situation) => untilRemoval(situation) < soonMs,
    says: (situation) => {
      const { after, reason } = collectionOf(situation.object, situation.certificate)!
      const isIssued = situation.state === 'issued'
      return {
        detail: `kube-controller-manager removes the object ${reason}: from ${after.toISOString().slice(0, 19)}Z on`,
        next: isIssued ? 'fetch the certificate before that' : 'act before that, or submit the request again',
        commands: isIssued ? [commandLine`kcert csr fetch ${wordOf(situation)}`] : [],
      }
    },
  },
]

/** Returns why a request is where it is, and what to do. */
export function explain({ situation, open }: Gathered): Explanation {
  const { object, now, decidedBy, state } = situation
  return {
    apiVersion: 'kcert/v1',
    kind: 'RequestExplanation',
    request: clusterRequest(object, now),
    ...(decidedBy === undefined ? {} : { decidedBy }),
    ...explanationOf(causes, situation, state, open),
  }
}

function untilRemoval({ object, certificate, now }: Situation): number {
  const collection = collectionOf(object, certificate)
  return collection === undefined ? Number.POSITIVE_INFINITY : collection.after.getTime() - now.getTime()
}
