import type { Found } from './report.ts'

/** A command that distinguishes a cause from the others, and its output for this cause. */
export interface Check {
  readonly command: string
  readonly shows: string
}

/** One possible cause of an error. */
export interface CauseRow {
  readonly id: string
  /** The cause is omitted if this returns false. */
  readonly holds?: (found: Found) => boolean
  /** Evidence for this cause in the text. A cause with evidence is listed first. */
  readonly evidence: (found: Found) => string | undefined
  readonly detail: (found: Found) => string
  readonly checks: (found: Found) => Check[]
}

/** One row of the error tables: its phrases, its meaning, and its causes, the likeliest first. */
export interface Rule {
  readonly id: string
  /** Phrases of Go, Kubernetes, OpenSSL, Node, Python, Java and browsers. Compared without case and white space. */
  readonly words: readonly string[]
  /** If several rules have the same phrases, the first one that returns true is used. */
  readonly holds?: (found: Found) => boolean
  /** The phrases are unspecific, and count only if the text contains no other error. */
  readonly isGeneric: boolean
  readonly means: (found: Found) => string
  readonly causes: readonly CauseRow[]
}
