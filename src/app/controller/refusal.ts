import type { Acted } from '../../csr/approval/acting.ts'
import { isUnknown, isUnmet } from '../../csr/rule.ts'

/**
 * Returns why an object was not approved, as one of a fixed set of words for a label: the ID of the first rule that is not met, an
 * error code, or an outcome. Nothing in it comes from the request.
 */
export function refusalOf({ outcome, error, evaluation }: Acted): string {
  if (error !== undefined) return error.code
  if (outcome !== 'skipped') return outcome
  const { decision, findings = [] } = evaluation?.verdict ?? {}
  if (decision === 'deny') return 'policy-denies'
  return (findings.find(isUnmet) ?? findings.find(isUnknown))?.id ?? 'no-policy'
}

/** Returns the reason in full: both duties, and each rule that is not met, as for an approval by hand. */
export function detailOf({ outcome, reason, evaluation }: Acted): string {
  const { duties, findings = [], policy } = evaluation?.verdict ?? {}
  const open = findings.filter((finding) => isUnmet(finding) || isUnknown(finding))
  if (outcome !== 'skipped' || duties === undefined || open.length === 0) return reason
  const rules = [...open.filter(isUnmet), ...open.filter(isUnknown)].map(
    ({ id, detail }) => `${id}: ${detail}`,
  )
  return [`policy ${policy}: identity ${duties.identity}, entitlement ${duties.entitlement}`, ...rules].join(
    '; ',
  )
}
