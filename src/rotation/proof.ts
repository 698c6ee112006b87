import { evidenceKey, type ProbeSubject } from './action.ts'
import type { Observed } from './snapshot.ts'

/**
 * Returns true when the probe last succeeded, and did so after `sinceMs`, the last change of its subject. `sinceMs` is undefined
 * when the change was not observed: then nothing is proven.
 */
export function isProven(
  observed: Observed<'evidence'>,
  subject: ProbeSubject,
  sinceMs: number | undefined,
): boolean {
  const evidence = observed.evidence.get(evidenceKey(subject))
  return evidence?.ok === true && sinceMs !== undefined && evidence.atMs >= sinceMs
}
