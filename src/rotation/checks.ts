import { given } from '../errors/given.ts'
import type { RotationVerification } from './report.ts'

export type Check = RotationVerification['checks'][number]
type Finding = Check['findings'][number]

/** Returns a check, which passes without findings. */
export function check(
  id: string,
  what: string,
  checked: number,
  findings: readonly Readonly<Finding>[],
): Check {
  return { id, what, ok: findings.length === 0, checked, findings: findings.map((one) => ({ ...one })) }
}

/** Returns a finding; `next`: the command that repairs it. */
export function finding(at: string, what: string, next?: string): Finding {
  return given({ at, what, next })
}
