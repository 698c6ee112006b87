// The changes that this process made outside of itself, for when it cannot report them normally, such as when standard output is
// full.

const changes = new Set<string>()

/** Records a change that persists after a later failure: "ca.pem is written". Never a secret. */
export function noteChange(what: string): void {
  if (changes.size < mostKept) changes.add(what)
}

/** A controller that runs for months makes any number of changes. */
const mostKept = 10_000

/** Any further changes are only counted. */
const mostToName = 10

/** Returns the changes so far, in order; empty for none. */
export function changesText(): string {
  const named = [...changes].slice(0, mostToName)
  const more = changes.size - named.length
  return [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ')
}
