/**
 * Returns what `act` returns. It is given a signal for when the operator presses Ctrl-C or the process is told to end, and stops then
 * where it loses nothing; a second Ctrl-C ends the process at once.
 */
export async function whileInterruptible<Result>(
  act: (interrupted: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  const interrupt = (): void => controller.abort()
  process.once('SIGINT', interrupt)
  process.once('SIGTERM', interrupt)
  try {
    return await act(controller.signal)
  } finally {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', interrupt)
  }
}
