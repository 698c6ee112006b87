// Patterns of policies: text with "*" for one or more characters, and {placeholders} for facts about the requester.

/** The character that a "*" does not match: the dot of names, the colon of users, the slash of URIs; '' for none. */
export type Boundary = '.' | ':' | '/' | ''

/** The values of {placeholders}: facts about the requester that the API server has authenticated. */
export type Placeholders = Readonly<Record<string, string>>

const placeholder = /\{([a-z]+)\}/g

/** Returns the names of the placeholders in a pattern. */
export function placeholdersOf(pattern: string): string[] {
  return [...pattern.matchAll(placeholder)].map(([, name = '']) => name)
}

/**
 * True when the whole text matches the pattern. "*" never matches the boundary. A pattern with a placeholder that has no value
 * matches nothing. Takes time in proportion to both lengths, because the text is untrusted.
 */
export function fits(text: string, pattern: string, boundary: Boundary, values: Placeholders = {}): boolean {
  // Placeholders are filled in piece by piece, so that a "*" in a requester's name is a literal star.
  const pieces: Piece[] = []
  let at = 0
  for (const match of pattern.matchAll(placeholder)) {
    const [whole, name = ''] = match
    const value = Object.hasOwn(values, name) ? values[name] : ''
    if (!value) return false
    pieces.push(...piecesOf(pattern.slice(at, match.index)), { text: value })
    at = match.index + whole.length
  }
  pieces.push(...piecesOf(pattern.slice(at)))
  return matches(text, pieces, boundary)
}

/** Literal text, or a star. */
type Piece = { readonly text: string } | 'star'

function piecesOf(pattern: string): Piece[] {
  return pattern.split(/(\*+)/).map((part) => (part.includes('*') ? 'star' : { text: part }))
}

/** Tracks the set of reachable positions: a star at each position reaches up to the boundary. */
function matches(text: string, pieces: readonly Piece[], boundary: Boundary): boolean {
  let reached = new Set([0])
  for (const piece of pieces) {
    const next = new Set<number>()
    if (piece === 'star') spread(text, reached, boundary, next)
    else for (const at of reached) if (text.startsWith(piece.text, at)) next.add(at + piece.text.length)
    reached = next
  }
  return reached.has(text.length)
}

function spread(text: string, from: ReadonlySet<number>, boundary: Boundary, into: Set<number>): void {
  let open = false
  for (let at = 0; at < text.length; at++) {
    if (text[at] === boundary) open = false
    else if (open || from.has(at)) {
      open = true
      into.add(at + 1)
    }
  }
}
