import { type Profiler, Session } from 'node:inspector'

// The bytes of kcert's own source that have run, by V8's block coverage. jazzer.js gets this from instrumented code; this needs
// no native addon. Coverage is measured for a batch of inputs. Only if something new ran, the batch is searched for the input.

/** Coverage of the modules whose path matches. Only modules loaded after `new Coverage` count. */
export class Coverage {
  readonly #session = new Session()
  readonly #of: RegExp
  readonly #seen = new Map<string, Uint8Array>()
  /** Number of source bytes that have run. */
  covered = 0

  constructor(of: RegExp) {
    this.#of = of
    this.#session.connect()
    this.#session.post('Profiler.enable')
    this.resume()
  }

  pause(): void {
    this.#session.post('Profiler.stopPreciseCoverage')
  }

  resume(): void {
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
    this.#take()
  }

  /** Returns true when code has run since the last call that never ran before. With `keep`, it is then recorded. */
  isNew(keep: boolean): boolean {
    let isNew = false
    for (const { url, functions } of this.#take()) {
      const end = functions.reduce((most, { ranges }) => Math.max(most, ranges[0]!.endOffset), 0)
      const ran = new Uint8Array(end)
      // Outer functions come before inner ones, and ranges before those inside them.
      for (const { ranges } of functions)
        for (const { startOffset, endOffset, count } of ranges)
          ran.fill(count > 0 ? 1 : 0, startOffset, endOffset)
      const seen = this.#seenOf(url, end)
      for (let at = 0; at < end; at++) {
        if (ran[at] === 0 || seen[at] === 1) continue
        isNew = true
        if (!keep) return true
        seen[at] = 1
        this.covered++
      }
    }
    return isNew
  }

  /** A result may lack functions of a module, so it may be longer than the previous one. */
  #seenOf(url: string, end: number): Uint8Array {
    const before = this.#seen.get(url) ?? new Uint8Array()
    if (before.length >= end) return before
    const seen = new Uint8Array(end)
    seen.set(before)
    this.#seen.set(url, seen)
    return seen
  }

  #take(): Profiler.ScriptCoverage[] {
    let result: Profiler.ScriptCoverage[] = []
    // On the same thread, the answer is available when the call returns.
    this.#session.post('Profiler.takePreciseCoverage', (error, taken) => {
      if (error === null) result = taken.result
    })
    return result.filter(({ url, functions }) => this.#of.test(url) && functions.length > 0)
  }
}
