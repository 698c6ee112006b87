interface Listed<State extends string> {
  readonly state: State
  readonly name: string
  readonly creationTimestamp?: string | undefined
}

/** Returns requests in this order of states, the oldest first in each state. */
export function inOrderOfAttention<State extends string, Request extends Listed<State>>(
  requests: readonly Request[],
  states: readonly State[],
): Request[] {
  return requests.toSorted(
    (one, other) =>
      states.indexOf(one.state) - states.indexOf(other.state) ||
      compare(one.creationTimestamp ?? '', other.creationTimestamp ?? '') ||
      compare(one.name, other.name),
  )
}

/** Returns how many requests are in each state. */
export function countedByState<State extends string>(
  requests: readonly Listed<State>[],
  states: readonly State[],
): Record<State, number> {
  const counts = Object.fromEntries(states.map((state) => [state, 0])) as Record<State, number>
  for (const { state } of requests) counts[state]++
  return counts
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
