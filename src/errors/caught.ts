import { KcertError } from './kcert-error.ts'

// What becomes of errors that are expected. Whatever else is thrown goes on its way.

/** Returns what the function returns; undefined where it throws: for text of others, where any fault means that it is not what was looked for. */
export function orUndefined<Result>(act: () => Result): Result | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}

/** Returns a handler for `catch` of a promise: what `instead` makes of a KcertError. */
export function onKcertError<Result>(instead: (error: KcertError) => Result): (error: unknown) => Result {
  return (error) => {
    if (error instanceof KcertError) return instead(error)
    throw error
  }
}

/** Returns the code of a system's error: "ENOENT"; undefined for other errors. */
export function systemCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

/** Returns the message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
