import { completedBy, findFacts } from './found.ts'
import { normalize, placesOf, type Span, withoutOverlaps } from './matching.ts'
import type { ErrorExplanation, Found } from './report.ts'
import { rules } from './rules.ts'
import type { Rule } from './table.ts'
import { isAboutCertificates, otherSubject, unknownError } from './unknown.ts'

type ExplainedError = ErrorExplanation['errors'][number]

interface Match extends Span {
  readonly rule: Rule
  /** The known phrases found at the location. */
  readonly words: string
  readonly found: Found
}

/**
 * Returns the meaning and the possible causes of the errors in a text. The result contains only known phrases and facts from the
 * text.
 */
export function explainError(text: string, source: string): ErrorExplanation {
  const readable = withoutEscapes(text)
  const whole = findFacts(readable.slice(0, wholeLength))
  const matches = matchesIn(readable, whole)
  const specific = matches.filter(({ rule }) => !rule.isGeneric)
  const grouped = Map.groupBy(specific.length > 0 ? specific : matches, ({ rule }) => rule.id)
  const errors = [...grouped.values()].map((group) => explained(group, readable))
  const head = { apiVersion: 'kcert/v1', kind: 'ErrorExplanation', source, errors } as const
  if (errors.length > 0) return { ...head, next: [] }
  return isAboutCertificates(readable)
    ? { ...head, subject: 'certificates', next: unknownError(whole) }
    : { ...head, subject: 'other', next: otherSubject() }
}

// Facts of the whole text complete those of a location. A text with location and error together is short.
const wholeLength = 64 << 10
// Lines are seldom longer, and more distant text belongs to something else.
const aroundLength = 1_000
// Later parts of a log repeat the same errors. They are counted, but not searched for servers and names.
const mostObserved = 500

// Removes colors, the codes that grep --color adds, titles and links.
function withoutEscapes(text: string): string {
  return text.replaceAll(/\x1b(?:\[[0-?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\))/g, '')
}

function matchesIn(text: string, whole: Found): Match[] {
  return withoutOverlaps(placesIn(text)).flatMap(({ start, end, words, candidates }, index) => {
    const found =
      index < mostObserved
        ? completedBy(findFacts(around(text, start, end)), whole)
        : { ...whole, endpoints: [] }
    const rule = candidates.find(({ holds }) => holds?.(found) ?? true)
    return rule === undefined ? [] : [{ start, end, words, rule, found }]
  })
}

// Searching all phrases in a piece that fits the processor's cache is more than twice as fast.
const pieceLength = 512 << 10
// A phrase that begins in one piece can end in the next. No phrase is longer than this, even if a terminal broke it.
const overlap = 2_000

/** Returns every location in a text that contains a phrase of a rule, piece by piece. */
function placesIn(text: string): Place[] {
  const places: Place[] = []
  for (let from = 0; from < text.length; ) {
    const lineEnd = text.indexOf('\n', from + pieceLength)
    const end = lineEnd === -1 || lineEnd > from + 2 * pieceLength ? from + pieceLength : lineEnd + 1
    const piece = normalize(withoutHints(text.slice(from, end + overlap)))
    for (const [words, candidates] of rulesByWords) {
      for (const span of placesOf(words, piece)) {
        const start = span.start + from
        if (start < end) places.push({ start, end: span.end + from, words, candidates })
      }
    }
    from = end
  }
  return places
}

interface Place extends Span {
  readonly words: string
  readonly candidates: readonly Rule[]
}

const rulesByWords = new Map<string, Rule[]>()
for (const rule of rules)
  for (const words of rule.words) rulesByWords.set(words, [...(rulesByWords.get(words) ?? []), rule])

// Go puts the CA that it tried last in brackets. This is a hint, not a separate error. A truncated log lacks the second bracket.
function withoutHints(text: string): string {
  return text.replaceAll(/\(possibly because of (?:[^)]{1,2000}\)|[^\n]{1,2000})/g, (hint) =>
    ' '.repeat(hint.length),
  )
}

/** Returns the lines that contain a location. */
function around(text: string, start: number, end: number): string {
  const from = Math.max(text.lastIndexOf('\n', start - 1) + 1, start - aroundLength)
  const lineEnd = text.indexOf('\n', end)
  return text.slice(from, Math.min(lineEnd === -1 ? text.length : lineEnd, end + aroundLength))
}

function explained(group: readonly Match[], text: string): ExplainedError {
  const [{ rule, start, end, found: first }] = group as [Match]
  const endpoints = [...new Set(group.flatMap(({ found }) => found.endpoints))].slice(0, mostEndpoints)
  const found: Found = { ...first, endpoints }
  return {
    id: rule.id,
    message: shownWords(text.slice(start, end)),
    line: text.slice(0, start).split('\n').length,
    count: occurrences(group, text),
    meaning: rule.means(found),
    found,
    causes: rule.causes
      .filter(({ holds }) => holds?.(found) ?? true)
      .map(({ id, detail, evidence, checks }) => ({
        id,
        detail: detail(found),
        evidence: evidence(found),
        checks: checks(found),
      }))
      .sort((a, b) => Number(a.evidence === undefined) - Number(b.evidence === undefined)),
  }
}

/** Counts an error once if it is stated in several ways: with other phrases of the same rule, later in the same line. */
function occurrences(group: readonly Match[], text: string): number {
  let count = 0
  let lastEnd = 0
  const counted = new Set<string>()
  for (const { start, end, words } of group) {
    const lineEnd = text.indexOf('\n', lastEnd)
    if (count === 0 || counted.has(words) || (lineEnd !== -1 && lineEnd < start)) {
      count += 1
      counted.clear()
    }
    counted.add(words)
    lastEnd = end
  }
  return count
}

/** Removes the punctuation that distinguishes a short phrase from a part of a longer one: `:"EOF"`. */
function shownWords(matched: string): string {
  const words = matched.replaceAll(/\s+/g, ' ')
  return /^[\s":=]+([\w ]+)"?$/.exec(words)?.[1] ?? words
}

// The number of endpoints in one advised probe command.
const mostEndpoints = 8
