import type { Contender } from './measure.ts'

/** A table of the benchmark: contenders that do the same work, measured in one run. */
export interface Suite {
  readonly title: string
  /** The contender whose ratio is 1.0. */
  readonly baseline: string
  /** Contender → the project's limit for its ratio to the baseline. */
  readonly targets: Readonly<Record<string, number>>
  /** Contender → the project's limit for its largest resident set, in MiB. */
  readonly memoryTargets?: Readonly<Record<string, number>>
  readonly contenders: readonly Contender[]
  readonly runs: { readonly warmup: number; readonly min: number }
}
