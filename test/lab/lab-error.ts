/** A failure of the lab whose reason is known: what, why, next. */
export class LabError extends Error {
  override readonly name = 'LabError'
  readonly why: string | undefined
  readonly next: string | undefined

  constructor(what: string, advice: { why?: string; next?: string; cause?: unknown } = {}) {
    super(what, advice.cause === undefined ? undefined : { cause: advice.cause })
    this.why = advice.why
    this.next = advice.next
  }
}

/** The error as the three lines that a person reads; a stack only for what the lab did not foresee. */
export function describeError(error: unknown): string {
  if (!(error instanceof LabError))
    return error instanceof Error ? (error.stack ?? error.message) : String(error)
  const lines = [`lab: ${error.message}`]
  if (error.why !== undefined) lines.push(`why: ${error.why}`)
  if (error.next !== undefined) lines.push(`next: ${error.next}`)
  return lines.join('\n')
}
