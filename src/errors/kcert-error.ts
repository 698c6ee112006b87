import type { InferOutput } from 'valibot'
import { type ErrorCode, type ExitCode, errorCodes } from './codes.ts'
import { given } from './given.ts'
import type { errorSchema } from './json-fields.ts'

/** What to do: `fix` in words, and `next` as one complete command, ready to paste. Both are optional. */
export interface Advice {
  /** What to decide or change if no command does it: a short imperative clause. */
  readonly fix?: string | undefined
  /** A command, or in a usage error the missing flags. */
  readonly next?: string | undefined
}

/** Advice as functions accept it: a command alone, or a fix with or without one. */
export type AdviceOrCommand = Advice | string | undefined

/** Returns advice without absent members. */
export function adviceFields(advice: AdviceOrCommand): { fix?: string; next?: string } {
  const { fix, next } = typeof advice === 'object' ? advice : { next: advice }
  return given({ fix, next })
}

/** The details of an error besides its message. */
export interface ErrorAdvice extends Advice {
  /** The reason, as a fragment. */
  readonly why?: string
  readonly cause?: unknown
}

/** An error in a report. */
export type ErrorFields = InferOutput<typeof errorSchema> & { code: ErrorCode }

/** Returns the fields of an error in a report. */
export function errorFields({ code, message, why, fix, next }: KcertError): ErrorFields {
  return { code, what: message, ...given({ why, fix, next }) }
}

/** An error with a known reason: what, why, what to do, and a stable code that determines the exit code. */
export class KcertError extends Error {
  override readonly name = 'KcertError'
  readonly code: ErrorCode
  readonly why: string | undefined
  readonly fix: string | undefined
  readonly next: string | undefined

  constructor(code: ErrorCode, what: string, advice: ErrorAdvice = {}) {
    super(what, advice.cause === undefined ? undefined : { cause: advice.cause })
    this.code = code
    this.why = advice.why
    this.fix = advice.fix
    this.next = advice.next
  }

  get exitCode(): ExitCode {
    return errorCodes[this.code].exit
  }
}

/** Returns an error in one line: what and why for a KcertError, otherwise its message. */
export function wordsOf(error: unknown): string {
  if (error instanceof KcertError)
    return error.why === undefined ? error.message : `${error.message}: ${error.why}`
  return messageOf(error)
}

/** Returns the message of a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
