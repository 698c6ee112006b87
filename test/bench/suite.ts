import type { Contender } from './measure.ts'

/** A table of the bench: contenders that do the same work, measured in one run. */
export interface Suite {
  readonly title: string
  /** The contender whose time is 1.0. */
  readonly baseline: string
  /** Contender → the largest ratio to the baseline that the project promises. */
  readonly targets: Readonly<Record<string, number>>
  /** Contender → the largest resident set, in MiB, that the project promises. */
  readonly memoryTargets?: Readonly<Record<string, number>>
  readonly contenders: readonly Contender[]
  readonly runs: { readonly warmup: number; readonly min: number }
}
