import type { Certificate } from '../x509/certificate.ts'
import type { RotationRecovery } from './report.ts'
import { timeOf } from './views.ts'

interface Recovered {
  readonly renewed: readonly { readonly old: Certificate; readonly renewed: Certificate }[]
  readonly files: readonly {
    readonly node: string
    readonly path: string
    readonly what: readonly string[]
  }[]
  readonly foreign: readonly Readonly<RotationRecovery['foreign'][number]>[]
  readonly restarts: readonly string[]
}

/** Returns what a recovery will do, or did. */
export function recoveryReport(
  { renewed, files, foreign, restarts }: Recovered,
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
      expiredAt: old.notAfter.toISOString(),
      notAfter: by.notAfter.toISOString(),
    })),
    files: files.map(({ node, path, what }) => ({ node, path, what: [...what] })),
    restarts: [...restarts],
    foreign: foreign.map((one) => ({ ...one })),
  }
}
