import { given } from '../../errors/given.ts'
import { errorFields } from '../../errors/kcert-error.ts'
import { requestFields } from '../request-fields.ts'
import { signingRequestOfObject } from '../request-object.ts'
import { type Duty, dutyText } from '../rule.ts'
import { readRequestContent } from '../signing-request.ts'
import type { Acted } from './acting.ts'
import type { Decided, DecisionReport } from './decision-report.ts'
import type { Act } from './evaluation.ts'

/** Returns the report of the results, in the order of the requests. */
export function decisionReport(
  acted: readonly Acted[],
  { act, by, dryRun }: { readonly act: Act; readonly by: DecisionReport['by']; readonly dryRun: boolean },
): DecisionReport {
  const requests = acted.map(decidedOf)
  const counts: Record<string, number> = {}
  for (const { outcome } of requests) counts[outcome] = (counts[outcome] ?? 0) + 1
  return { apiVersion: 'kcert/v1', kind: 'RequestDecisions', action: act, by, dryRun, counts, requests }
}

function decidedOf({ name, outcome, reason, object, evaluation, error }: Acted): Decided {
  const verdict = evaluation?.verdict
  return {
    name,
    outcome,
    reason,
    ...(object === undefined ? { usages: [], groups: [] } : askedOf(object)),
    ...(verdict?.policy === undefined ? {} : { policy: verdict.policy }),
    duties: (['identity', 'entitlement'] as const).map((duty: Duty) => ({
      name: duty,
      text: dutyText[duty],
      outcome: verdict?.duties[duty] ?? 'unknown',
    })),
    rules: (verdict?.findings ?? []).map(({ id, duty, outcome: found, detail, fix, next }) =>
      given({ id, duty, outcome: found, detail, fix, next }),
    ),
    ...(error && { error: errorFields(error) }),
  }
}

function askedOf(object: NonNullable<Acted['object']>) {
  const { uid, signerName, usages, expirationSeconds, username, groups, request } =
    signingRequestOfObject(object)
  const content = readRequestContent(request).request
  return {
    ...given({ uid, signerName, request: content && requestFields(content) }),
    usages: [...usages],
    ...given({ expirationSeconds, username }),
    groups: [...groups],
  }
}
