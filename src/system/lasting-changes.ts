// What this process has changed outside of itself, for when it cannot say so where it should: standard output is full, say.

const changes = new Set<string>()

/** Remembers a change that stays whatever happens next: "ca.pem is written". Never a secret. */
export function noteChange(what: string): void {
  changes.add(what)
}

/** Returns what was changed so far, in its order. */
export function changesSoFar(): readonly string[] {
  return [...changes]
}
