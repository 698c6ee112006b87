import type { Found } from './report.ts'

/** A command that tells a cause from the others, and what it shows when this is the one. */
export interface Check {
  readonly command: string
  readonly shows: string
}

/** One possible cause of an error. */
export interface CauseRow {
  readonly id: string
  /** Left out where this does not hold. */
  readonly holds?: (found: Found) => boolean
  /** What in the text speaks for it; such a cause goes to the front. */
  readonly evidence: (found: Found) => string | undefined
  readonly detail: (found: Found) => string
  readonly checks: (found: Found) => Check[]
}

/** One row of the tables of errors: by which words it is known, what it means, and its causes, the likeliest first. */
export interface Rule {
  readonly id: string
  /** In the words of Go, Kubernetes, OpenSSL, Node, Python, Java and browsers; compared without case and white space. */
  readonly words: readonly string[]
  /** Where several rules have the same words, the first that holds is taken. */
  readonly holds?: (found: Found) => boolean
  /** The words say little, and count only where nothing else in the text says more. */
  readonly isGeneric: boolean
  readonly means: (found: Found) => string
  readonly causes: readonly CauseRow[]
}
