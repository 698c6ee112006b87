/** A clock that stops until all tasks wait, and then jumps to the next event. */
export class SimulatedTime {
  nowMs: number
  private readonly timers: { atMs: number; order: number; act: () => void }[] = []
  private order = 0
  private seed: number
  /** Called after all events of one instant. */
  afterEach: () => void = () => {}

  constructor(start: Date, seed: number) {
    this.nowMs = start.getTime()
    this.seed = seed
  }

  /** Returns a number in this range. It depends only on the seed and the order of calls. */
  between(least: number, most: number): number {
    this.seed = (Math.imul(this.seed, 1_664_525) + 1_013_904_223) >>> 0
    return least + (this.seed / 0x1_0000_0000) * (most - least)
  }

  after(ms: number, act: () => void): void {
    const timer = { atMs: this.nowMs + ms, order: this.order++, act }
    // A heap with the earliest timer first.
    let at = this.timers.push(timer) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!isEarlier(timer, this.timers[above]!)) break
      this.timers[at] = this.timers[above]!
      at = above
    }
    this.timers[at] = timer
  }

  private takeEarliest() {
    const [earliest] = this.timers
    const last = this.timers.pop()
    if (earliest === undefined || last === undefined || this.timers.length === 0) return earliest
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= this.timers.length) break
      if (below + 1 < this.timers.length && isEarlier(this.timers[below + 1]!, this.timers[below]!)) below++
      if (!isEarlier(this.timers[below]!, last)) break
      this.timers[at] = this.timers[below]!
      at = below
    }
    this.timers[at] = last
    return earliest
  }

  readonly now = (): number => this.nowMs

  readonly sleep = (ms: number): Promise<void> => new Promise((resolve) => this.after(ms, resolve))

  /** Advances time until the promise is settled. */
  async until<Result>(promise: Promise<Result>): Promise<Result> {
    let isSettled = false
    const watched = promise.finally(() => {
      isSettled = true
    })
    watched.catch(() => {})
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve))
      if (isSettled) return watched
      if (!this.step()) throw new Error('nobody waits for anything, and it is not over')
    }
  }

  /** Advances time while no task runs. */
  async pass(ms: number): Promise<void> {
    await this.until(this.sleep(ms))
  }

  private step(): boolean {
    const timer = this.takeEarliest()
    if (timer === undefined) return false
    this.nowMs = Math.max(this.nowMs, timer.atMs)
    timer.act()
    this.afterEach()
    return true
  }
}

function isEarlier(one: { atMs: number; order: number }, other: { atMs: number; order: number }): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
}
