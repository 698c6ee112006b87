/** Reports the progress of the lab: one line for each step, with its duration. */
export interface Steps {
  /** Runs one step and prints its name and duration when it ends, also when it fails. */
  step<T>(name: string, work: () => Promise<T>): Promise<T>
  note(text: string): void
}

/** Returns steps that print to stderr, so that stdout has only the result. Durations use the monotonic clock. */
export function stepsOn(write: (line: string) => void): Steps {
  const begun = performance.now()
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`.padStart(8)
  const line = (mark: string, ms: number, name: string): void =>
    write(`${mark} ${seconds(ms)}  ${name}  (at ${seconds(performance.now() - begun).trim()})`)
  return {
    async step(name, work) {
      const start = performance.now()
      try {
        const result = await work()
        line('✓', performance.now() - start, name)
        return result
      } catch (error) {
        line('✗', performance.now() - start, name)
        throw error
      }
    },
    note: (text) => write(`  ${text}`),
  }
}

/** Steps without output, for tests that check only the result. */
export const silentSteps: Steps = { step: (_name, work) => work(), note: () => {} }
