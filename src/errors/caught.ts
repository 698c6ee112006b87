import { KcertError } from './kcert-error.ts'

export { messageOf } from './kcert-error.ts'

// Handlers for expected errors.

/**
 * Returns the function's result, or undefined if it throws. For untrusted text, where any error means that the text is something
 * else.
 */
export function orUndefined<Result>(act: () => Result): Result | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}

/** Returns a handler for `catch` of a promise, which returns the result of `instead` for a KcertError. */
export function onKcertError<Result>(instead: (error: KcertError) => Result): (error: unknown) => Result {
  return (error) => {
    if (error instanceof KcertError) return instead(error)
    throw error
  }
}

/** Returns the code of a system error ("ENOENT"); undefined for other errors. */
export function systemCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
