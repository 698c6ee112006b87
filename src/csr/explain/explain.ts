import { commandLine } from '../../errors/command-line.ts'
import { clusterRequest } from '../cluster-request.ts'
import { collectionOf } from '../life.ts'
import { approvedCauses } from './approved.ts'
import { type CauseRow, explanationOf, wordOf } from './cause.ts'
import { pendingCauses } from './pending.ts'
import type { Explanation } from './report.ts'
import { settledCauses } from './settled.ts'
import type { SituationReading } from './situation.ts'

/** The explanation mentions the deletion of the object when it is closer than this. */
const soonMs = 2 * 3_600_000

/** Every cause, the deciding ones first. The documentation lists them. */
export const causes: readonly CauseRow[] = [
  ...settledCauses,
  ...pendingCauses,
  ...approvedCauses,
  {
    id: 'deleted-soon',
    weight: 'note',
    holds: ({ object, certificate, now }) => {
      const { after } = collectionOf(object, certificate) ?? {}
      return after !== undefined && after.getTime() - now.getTime() < soonMs
    },
    detail: ({ object, certificate }) => {
      const { after, reason } = collectionOf(object, certificate) ?? {}
      return `kube-controller-manager deletes the object ${reason}: at ${after?.toISOString().slice(0, 19)}Z or up to an hour later`
    },
    fix: ({ state }) =>
      state === 'issued'
        ? 'fetch the certificate before that'
        : 'act before that, or submit the request again',
    commands: (situation) =>
      situation.state === 'issued' ? [commandLine`kcert csr fetch ${wordOf(situation)}`] : [],
  },
]

/** Returns why a request is in its state, and what to do. */
export function explain({ situation, open }: SituationReading): Explanation {
  const { object, now, decidedBy, state } = situation
  return {
    apiVersion: 'kcert/v1',
    kind: 'RequestExplanation',
    request: clusterRequest(object, now),
    ...(decidedBy === undefined ? {} : { decidedBy }),
    ...explanationOf(causes, situation, state, open),
  }
}
