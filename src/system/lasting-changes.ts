// What this process has changed outside of itself, for when it cannot say so where it should: standard output is full, say.

const changes = new Set<string>()

/** Remembers a change that stays whatever happens next: "ca.pem is written". Never a secret. */
export function noteChange(what: string): void {
  changes.add(what)
}

/** More are counted. */
const mostToName = 10

/** Returns what was changed so far, in its order; empty for nothing. */
export function changesText(): string {
  const named = [...changes].slice(0, mostToName)
  const more = changes.size - named.length
  return [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ')
}
