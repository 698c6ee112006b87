/** A failure of the lab whose reason is known: what, why, next. */
export class LabError extends Error {
  override readonly name = 'LabError'
  readonly next: string | undefined

  constructor(what: string, advice: { why?: string; next?: string; cause?: unknown } = {}) {
    // In the message, since that is all a test's report shows of an error.
    const message = advice.why === undefined ? what : `${what}\nwhy: ${advice.why}`
    super(message, advice.cause === undefined ? undefined : { cause: advice.cause })
    this.next = advice.next
  }
}

/** The error as the three lines that a person reads; a stack only for what the lab did not foresee. */
export function describeError(error: unknown): string {
  if (!(error instanceof LabError))
    return error instanceof Error ? (error.stack ?? error.message) : String(error)
  const lines = [`lab: ${error.message}`]
  if (error.next !== undefined) lines.push(`next: ${error.next}`)
  return lines.join('\n')
}
