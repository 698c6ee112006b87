/** A lab failure with a known reason: what, why, next. */
export class LabError extends Error {
  override readonly name = 'LabError'
  readonly next: string | undefined

  constructor(what: string, advice: { why?: string; next?: string; cause?: unknown } = {}) {
    // In the message, because a test report shows only the message of an error.
    const message = advice.why === undefined ? what : `${what}\nwhy: ${advice.why}`
    super(message, advice.cause === undefined ? undefined : { cause: advice.cause })
    this.next = advice.next
  }
}

/** Returns the error as three lines for users. Only unexpected errors have a stack. */
export function describeError(error: unknown): string {
  if (!(error instanceof LabError))
    return error instanceof Error ? (error.stack ?? error.message) : String(error)
  const lines = [`lab: ${error.message}`]
  if (error.next !== undefined) lines.push(`next: ${error.next}`)
  return lines.join('\n')
}
