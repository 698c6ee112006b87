/** Keys in order of arrival, taken from one owner after the other, so that no owner delays the others with many keys. */
export class FairQueue {
  readonly #keysOf = new Map<string, Set<string>>()

  add(owner: string, key: string): void {
    const keys = this.#keysOf.get(owner)
    if (keys === undefined) this.#keysOf.set(owner, new Set([key]))
    else keys.add(key)
  }

  /** Removes the next key and returns it; undefined if there is none. */
  take(): string | undefined {
    for (const [owner, keys] of this.#keysOf) {
      this.#keysOf.delete(owner)
      for (const key of keys) {
        keys.delete(key)
        // The owner's next turn is after all others.
        if (keys.size > 0) this.#keysOf.set(owner, keys)
        return key
      }
    }
    return undefined
  }
}
