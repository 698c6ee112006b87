/** Returns who sent a request: service accounts of a namespace count as one, because its owners create any number. */
export function requesterOf(username = ''): string {
  return /^system:serviceaccount:[^:]*:/.exec(username)?.[0] ?? username
}

/** Returns the items of one owner after the other, each owner's in their order. */
export function inTurns<Item>(items: readonly Item[], ownerOf: (item: Item) => string): Item[] {
  const turns = new Map<string, number>()
  return items
    .map((item) => {
      const owner = ownerOf(item)
      const turn = turns.get(owner) ?? 0
      turns.set(owner, turn + 1)
      return { item, turn }
    })
    .sort((a, b) => a.turn - b.turn)
    .map(({ item }) => item)
}

/** Keys in order of arrival, taken from one owner after the other, so that no owner delays the others with many keys. */
export class FairQueue {
  readonly #keysOf = new Map<string, Set<string>>()

  add(owner: string, key: string): void {
    const keys = this.#keysOf.get(owner)
    if (keys === undefined) this.#keysOf.set(owner, new Set([key]))
    else keys.add(key)
  }

  /** Removes a key before its turn. */
  remove(owner: string, key: string): void {
    const keys = this.#keysOf.get(owner)
    if (keys?.delete(key) && keys.size === 0) this.#keysOf.delete(owner)
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
