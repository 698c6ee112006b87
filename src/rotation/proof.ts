import { evidenceKey, type ProbeSubject } from './action.ts'
import type { Observed } from './snapshot.ts'

/**
 * True when the probe's last answer was yes and is younger than what it is about. `sinceMs` is undefined where that was not seen:
 * then no answer is known to be younger, and nothing is proven.
 */
export function isProven(
  observed: Observed<'evidence'>,
  subject: ProbeSubject,
  sinceMs: number | undefined,
): boolean {
  const evidence = observed.evidence.get(evidenceKey(subject))
  return evidence?.ok === true && sinceMs !== undefined && evidence.atMs >= sinceMs
}
