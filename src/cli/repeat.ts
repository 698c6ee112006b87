/**
 * Calls `act` at once and then every so often, one call after the other, until the operator presses Ctrl-C or the process is
 * told to end, or `isOver` says so after a call. Returns what the last call returned.
 */
export async function repeatUntilInterrupted<Result>(
  intervalMs: number,
  act: () => Promise<Result>,
  isOver: () => boolean = () => false,
): Promise<Result> {
  let interrupted = false
  let wake: () => void = () => {}
  const interrupt = () => {
    interrupted = true
    wake()
  }
  process.once('SIGINT', interrupt)
  process.once('SIGTERM', interrupt)
  try {
    for (;;) {
      const result = await act()
      if (interrupted || isOver()) return result
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, intervalMs)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      if (interrupted) return result
    }
  } finally {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', interrupt)
  }
}
