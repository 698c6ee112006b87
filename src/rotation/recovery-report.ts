import type { Recovery } from '../ca/recovery.ts'
import type { RotationRecovery } from './report.ts'
import { timeOf } from './views.ts'

/** Returns what a recovery does, or did. */
export function recoveryReport(
  { renewed, files, foreign, restarts }: Recovery & { readonly restarts: readonly string[] },
  outcome: RotationRecovery['outcome'],
  now: Date,
): RotationRecovery {
  return {
    apiVersion: 'kcert/v1',
    kind: 'RotationRecovery',
    generatedAt: timeOf(now.getTime()),
    outcome,
    renewed: renewed.map(({ old, renewed: by }) => ({
      subject: old.subject.text,
      expired: old.notAfter.toISOString(),
      until: by.notAfter.toISOString(),
    })),
    files: files.map(({ node, path, what }) => ({ node, path, what: [...what] })),
    restarts: [...restarts],
    foreign: foreign.map((one) => ({ ...one })),
  }
}
