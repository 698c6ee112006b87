import { commandLine } from '../../errors/command-line.ts'
import { clusterRequest } from '../cluster-request.ts'
import { collectionOf } from '../life.ts'
import { approvedCauses } from './approved.ts'
import type { Cause, CauseRow } from './cause.ts'
import { wordOf } from './cause.ts'
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

/** Returns the causes that hold, in the order of the table. */
export function causesOf(situation: Situation): Cause[] {
  return causes
    .filter(({ holds }) => holds(situation))
    .map(({ id, weight, says }) => ({ id, weight, ...says(situation) }))
}

/** Returns why a request is where it is, and what to do. */
export function explain({ situation, open }: Gathered): Explanation {
  const found = causesOf(situation)
  return {
    apiVersion: 'kcert/v1',
    kind: 'RequestExplanation',
    request: clusterRequest(situation.object, situation.now),
    verdict: verdictOf(situation, found),
    ...(situation.decidedBy === undefined ? {} : { decidedBy: situation.decidedBy }),
    causes: found.map(({ id, detail, next, commands }) => ({ id, detail, next, commands: [...commands] })),
    open: open.map(({ fact, why }) => ({ fact, why })),
  }
}

function verdictOf({ state }: Situation, found: readonly Cause[]): Explanation['verdict'] {
  if (state === 'denied' || state === 'failed') return state
  const weights = found.map(({ weight }) => weight)
  if (weights.includes('stuck')) return 'stuck'
  if (state === 'issued') return 'issued'
  return weights.includes('waiting') ? 'waiting' : 'stuck'
}

function untilRemoval({ object, certificate, now }: Situation): number {
  const collection = collectionOf(object, certificate)
  return collection === undefined ? Number.POSITIVE_INFINITY : collection.after.getTime() - now.getTime()
}
