import { type ErrorCode, type ExitCode, errorCodes } from './codes.ts'

/** What the reader of an error needs besides what went wrong. */
export interface ErrorAdvice {
  /** The reason, as a fragment. */
  readonly why?: string
  /** The next thing to do: a command that can be pasted, where there is one. */
  readonly next?: string
  readonly cause?: unknown
}

/** An error in a report. */
export interface ErrorFields {
  code: ErrorCode
  what: string
  why?: string
  next?: string
}

/** Returns what a report says of an error. */
export function errorFields({ code, message, why, next }: KcertError): ErrorFields {
  return {
    code,
    what: message,
    ...(why === undefined ? {} : { why }),
    ...(next === undefined ? {} : { next }),
  }
}

/** An error whose reason is known: what, why, next, and a stable code that decides the exit code. */
export class KcertError extends Error {
  override readonly name = 'KcertError'
  readonly code: ErrorCode
  readonly why: string | undefined
  readonly next: string | undefined

  constructor(code: ErrorCode, what: string, advice: ErrorAdvice = {}) {
    super(what, advice.cause === undefined ? undefined : { cause: advice.cause })
    this.code = code
    this.why = advice.why
    this.next = advice.next
  }

  get exitCode(): ExitCode {
    return errorCodes[this.code].exit
  }
}

/** Returns an error in one line: what and why of one that kcert knows, else its message. */
export function wordsOf(error: unknown): string {
  if (error instanceof KcertError)
    return error.why === undefined ? error.message : `${error.message}: ${error.why}`
  return messageOf(error)
}

/** Returns the message of what was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Returns what was read; undefined where it cannot be. */
export function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
