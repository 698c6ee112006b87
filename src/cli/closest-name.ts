/** Returns the name that a mistyped one most likely means; undefined if none is similar. */
export function closestName(asked: string, names: readonly string[]): string | undefined {
  const ranked = names
    .map((name) => ({ name, distance: editDistance(asked, name) }))
    .sort((a, b) => a.distance - b.distance)
  const best = ranked[0]
  return best && best.distance <= Math.max(2, best.name.length / 3) ? best.name : undefined
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= Math.min(a.length, 64); i++) {
    const current = [i]
    let [diagonal = 0, ...above] = previous
    for (const [j, up] of above.entries()) {
      const left = current[j] ?? 0
      current.push(Math.min(up + 1, left + 1, diagonal + (a[i - 1] === b[j] ? 0 : 1)))
      diagonal = up
    }
    previous = current
  }
  return previous.at(-1) ?? 0
}
