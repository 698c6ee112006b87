import {
  deepestNode,
  type Entry,
  type ListNode,
  type MapNode,
  type Node,
  plainType,
  type Range,
  type ScalarNode,
} from './node.ts'

// The subset of YAML that kubectl, kubeadm and most people write, and JSON. It is read in one pass, in time proportional to the
// text. The yaml library handles the rest of YAML (anchors, tags, folded text, unquoted text over several lines), but takes
// longer to load than this reader needs. A test compares the results of both readers.

/** Where reading stopped before the end of the text. */
export interface PlainYamlDefect {
  /** `not-plain`: malformed, or outside the plain subset of YAML; `too-many`: more than `mostNodes`. */
  readonly because: 'not-plain' | 'too-many'
  /** From 1. */
  readonly line: number
}

/**
 * Returns the documents of a text without empty ones, or the position where it is malformed or leaves the plain subset. Then the
 * yaml library decides.
 */
export function readPlainYaml(text: string): Node[] | PlainYamlDefect {
  const reader = new PlainReader(text)
  try {
    return reader.documents()
  } catch (error) {
    if (error === notPlain) return { because: 'not-plain', line: reader.line }
    if (error === tooMany) return { because: 'too-many', line: reader.line }
    throw error
  }
}

/** Keys, values and items. A larger document takes more memory than kcert may use. A list of 5,000 Secrets has 100,000. */
export const mostNodes = 500_000

// Thrown to stop. Constants, because a stack trace for each fallback would cost more than the reading.
const notPlain = Symbol('not plain YAML')
const tooMany = Symbol('too many nodes')

const [newline, carriageReturn, space, tab] = [10, 13, 32, 9]

// All are sticky: they match at one position.
const spaces = / */y
const anySpace = /[ \t\r\n]*/y
/** Only spaces and a comment. */
const restOfLine = /(?: *| +#[^\n]*)\r?(?:\n|$)/y
const blankLine = / *(?:#[^\n]*|\r?)(?:\n|$)/y
const dash = /-(?=[ \r\n]|$)/y
const documentMark = /---(?=[ \r\n]|$)/y
const colon = /:(?=[ \r\n]|$)/y
const quote = /["']/y
const bracket = /[[{]/y
const literalHead = /\|[-+]?(?: *| +#[^\n]*)\r?(?:\n|$)/y
/** Characters of unambiguous keys: letters, digits and . / _ - and a dollar sign. */
const keyPattern = /[A-Za-z0-9_$./][A-Za-z0-9_$./-]*/y
/** Unquoted text in [lists] and {maps} that cannot have another meaning. */
const flowWordPattern = /[A-Za-z0-9_$./+-][A-Za-z0-9_$./+=-]*(?: +[A-Za-z0-9_$./+=-]+)*/y
/** First characters of an unquoted scalar that have a special meaning or are ambiguous. */
const indicators = new Set('&*!%@`,[]{}#?:|>"\''.split(''))

class PlainReader {
  private readonly text: string
  private readonly length: number
  private at = 0
  /** Column where the content of the current line begins, or -1 when there is no more content in this document. */
  private indent = -1
  private lineStart = 0
  private nodes = 0

  constructor(text: string) {
    this.text = text
    this.length = text.length
    if (text.charCodeAt(0) === 0xfeff) this.at = this.lineStart = 1
  }

  /** Line of the current position, from 1. */
  get line(): number {
    let line = 1
    for (let at = this.text.indexOf('\n'); at !== -1 && at < this.at; at = this.text.indexOf('\n', at + 1))
      line++
    return line
  }

  documents(): Node[] {
    // A lone carriage return is a line end only for some readers.
    if (/\r(?!\n)/.test(this.text)) throw notPlain
    const documents: Node[] = []
    this.toContent()
    for (;;) {
      if (this.indent >= 0) {
        documents.push(this.root())
        if (this.indent >= 0) throw notPlain
      }
      if (this.at >= this.length) return documents
      // "---" at the beginning of a line, followed only by a comment.
      this.at += 3
      this.endOfLine()
    }
  }

  private root(): Node {
    if (!this.sees(bracket)) return this.block(1)
    const node = this.flow(1, anySpace)
    this.endOfLine()
    return node
  }

  private sees(pattern: RegExp): boolean {
    pattern.lastIndex = this.at
    return pattern.test(this.text)
  }

  /** Skips the text that matches the pattern. Returns false, and skips nothing, if it does not match. */
  private skips(pattern: RegExp): boolean {
    if (!this.sees(pattern)) return false
    this.at = pattern.lastIndex
    return true
  }

  private skipsCharacter(character: string): boolean {
    if (this.text[this.at] !== character) return false
    this.at++
    return true
  }

  /** Counts a node. */
  private count(): void {
    if (++this.nodes > mostNodes) throw tooMany
  }

  /** Moves to the first content at or after the current line start. Skips blank lines and comments. */
  private toContent(): void {
    const { text, length } = this
    let isBlank = true
    while (isBlank && this.at < length) isBlank = this.skips(blankLine)
    this.lineStart = this.at
    this.indent = -1
    if (this.at >= length) return
    this.skips(spaces)
    if (text.charCodeAt(this.at) === tab) throw notPlain
    const indent = this.at - this.lineStart
    if (indent === 0 && this.sees(documentMark)) return
    if (indent === 0 && (text[this.at] === '%' || text.startsWith('...', this.at))) throw notPlain
    this.indent = indent
  }

  /** Requires the rest of the line to be spaces and a comment, and moves to the next content. */
  private endOfLine(): void {
    if (!this.skips(restOfLine)) throw notPlain
    this.toContent()
  }

  private block(depth: number): Node {
    return this.sees(dash) ? this.list(this.indent, depth) : this.map(this.indent, depth)
  }

  private list(column: number, depth: number): ListNode {
    if (depth > deepestNode) throw notPlain
    const start = this.at
    let end = start
    const items: Node[] = []
    while (this.indent === column && this.sees(dash)) {
      const behindDash = ++this.at
      let item: Node
      if (this.sees(restOfLine)) {
        this.endOfLine()
        item = this.indent > column ? this.block(depth + 1) : nullNode(behindDash)
      } else {
        this.skips(spaces)
        const from = this.at
        const isBlock = this.sees(dash) || this.key() !== undefined
        this.at = from
        if (isBlock) this.indent = from - this.lineStart
        item = isBlock ? this.block(depth + 1) : this.inline(column, depth + 1)
      }
      items.push(item)
      end = item.range[1]
      this.count()
    }
    if (this.indent > column) throw notPlain
    return { kind: 'list', items, range: [start, end] }
  }

  private map(column: number, depth: number): MapNode {
    if (depth > deepestNode) throw notPlain
    const start = this.at
    let end = start
    const entries = new Map<string, Entry>()
    while (this.indent === column && !this.sees(dash)) {
      const keyStart = this.at
      const key = this.key()
      if (key === undefined) throw notPlain
      const keyRange: Range = [keyStart, this.at++]
      let value: Node
      if (this.sees(restOfLine)) {
        const nothing = this.at
        this.endOfLine()
        if (this.indent > column) value = this.block(depth + 1)
        else if (this.indent === column && this.sees(dash)) value = this.list(column, depth + 1)
        else value = nullNode(nothing)
      } else {
        this.skips(spaces)
        value = this.inline(column, depth + 1)
      }
      entries.set(key, { key: keyRange, value })
      end = value.range[1]
      this.count()
    }
    if (entries.size === 0 || this.indent > column) throw notPlain
    return { kind: 'map', entries, range: [start, end] }
  }

  /** Reads a key and stops at its colon. Returns undefined and reads nothing if no key begins here. */
  private key(): string | undefined {
    const from = this.at
    const key = this.sees(quote)
      ? this.quoted().text
      : this.skips(keyPattern)
        ? this.text.slice(from, this.at)
        : undefined
    if (key !== undefined && this.sees(colon)) return key
    this.at = from
    return undefined
  }

  /** Reads a value on the line of its key or dash, whose column is given. */
  private inline(column: number, depth: number): Node {
    if (this.text[this.at] === '|') return this.literal(column)
    const isQuoted = this.sees(quote)
    const isFlow = this.sees(bracket)
    const node = isQuoted ? this.quoted() : isFlow ? this.flow(depth, spaces) : this.plain()
    if (isQuoted || isFlow) this.endOfLine()
    // A more deeply indented line would continue this value.
    if (this.indent > column) throw notPlain
    return node
  }

  private plain(): ScalarNode {
    const { text } = this
    const start = this.at
    if (indicators.has(text.charAt(start)) || this.sees(dash)) throw notPlain
    const newlineAt = text.indexOf('\n', start)
    this.at = newlineAt === -1 ? this.length : newlineAt + 1
    let content = text.slice(start, newlineAt === -1 ? this.length : newlineAt)
    const comment = content.indexOf(' #')
    if (comment !== -1) content = content.slice(0, comment)
    if (content.endsWith('\r')) content = content.slice(0, -1)
    content = trimmedSpaces(content)
    if (/[\t\r]|:(?: |$)/.test(content)) throw notPlain
    this.toContent()
    return {
      kind: 'scalar',
      type: plainType(content),
      text: content,
      range: [start, start + content.length],
    }
  }

  /** Reads quoted text on one line. */
  private quoted(): ScalarNode {
    const start = this.at
    const text = this.text[start] === '"' ? this.doubleQuoted() : this.singleQuoted()
    return { kind: 'scalar', type: 'string', text, range: [start, this.at] }
  }

  private doubleQuoted(): string {
    const { text } = this
    const start = this.at
    let end = text.indexOf('"', start + 1)
    while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
    if (end === -1) throw notPlain
    this.at = end + 1
    try {
      // The yaml library handles what JSON does not allow, such as line ends.
      return String(JSON.parse(text.slice(start, end + 1)))
    } catch {
      throw notPlain
    }
  }

  private singleQuoted(): string {
    const { text } = this
    const start = this.at + 1
    let end = text.indexOf("'", start)
    while (end !== -1 && text[end + 1] === "'") end = text.indexOf("'", end + 2)
    if (end === -1) throw notPlain
    const written = text.slice(start, end)
    if (/[\n\r\t]/.test(written)) throw notPlain
    this.at = end + 1
    return written.replaceAll("''", "'")
  }

  /** Reads the text after "|" unchanged, except for its indentation. */
  private literal(column: number): ScalarNode {
    const { text, length } = this
    const start = this.at
    if (!this.skips(literalHead)) throw notPlain
    const chomp = text[start + 1]
    const lines: string[] = []
    let indent = 0
    let blankLines = 0
    let end = this.at
    while (this.at < length) {
      const lineEnd = text.indexOf('\n', this.at)
      let stop = lineEnd === -1 ? length : lineEnd
      const next = lineEnd === -1 ? length : lineEnd + 1
      if (text.charCodeAt(stop - 1) === carriageReturn && stop > this.at) stop--
      let from = this.at
      const limit = indent === 0 ? stop : Math.min(stop, this.at + indent)
      while (from < limit && text.charCodeAt(from) === space) from++
      if (from < stop) {
        if (text.charCodeAt(from) === tab && (indent === 0 || from - this.at < indent)) throw notPlain
        if (indent === 0) {
          indent = from - this.at
          if (indent <= column) break
        } else if (from - this.at < indent) break
        for (; blankLines > 0; blankLines--) lines.push('')
        lines.push(text.slice(this.at + indent, stop))
        end = stop
      } else {
        // Spaces before the first line affect the indentation in ways that are not plain.
        if (indent === 0 && from > this.at) throw notPlain
        blankLines++
      }
      this.at = next
    }
    if (lines.length === 0 && (blankLines > 0 || chomp === '+')) throw notPlain
    // Without a final line end there is none to keep.
    const isCut = this.at >= length && text.charCodeAt(length - 1) !== newline
    const kept = chomp === '+' || isCut ? blankLines : 0
    const ends = chomp === '-' || lines.length === 0 ? 0 : kept + (isCut ? 0 : 1)
    this.toContent()
    if (this.indent > column) throw notPlain
    return { kind: 'scalar', type: 'string', text: lines.join('\n') + '\n'.repeat(ends), range: [start, end] }
  }

  /** Reads quoted text, [lists] and {maps}, mostly JSON. They span several lines only if the document contains nothing else. */
  private flow(depth: number, blank: RegExp): Node {
    if (depth > deepestNode) throw notPlain
    this.count()
    if (this.sees(quote)) return this.quoted()
    const start = this.at
    if (this.text[start] === '{') return this.flowMap(depth, blank)
    if (this.text[start] === '[') return this.flowList(depth, blank)
    if (!this.skips(flowWordPattern)) throw notPlain
    const text = this.text.slice(start, this.at)
    if (text === '-' || text.startsWith('- ') || text.startsWith('---')) throw notPlain
    return { kind: 'scalar', type: plainType(text), text, range: [start, this.at] }
  }

  private flowMap(depth: number, blank: RegExp): MapNode {
    const start = this.at
    const entries = new Map<string, Entry>()
    this.flowParts('}', blank, () => {
      const keyStart = this.at
      const isQuoted = this.text[keyStart] === '"'
      const key = this.flow(deepestNode, spaces)
      if (key.kind !== 'scalar' || (!isQuoted && key.type !== 'string')) throw notPlain
      const keyRange: Range = [keyStart, this.at]
      if (isQuoted) this.skips(blank)
      if (!this.skipsCharacter(':') || (!isQuoted && this.text[this.at] !== ' ')) throw notPlain
      this.skips(blank)
      entries.set(key.text, { key: keyRange, value: this.flow(depth + 1, blank) })
    })
    return { kind: 'map', entries, range: [start, this.at] }
  }

  private flowList(depth: number, blank: RegExp): ListNode {
    const start = this.at
    const items: Node[] = []
    this.flowParts(']', blank, () => {
      items.push(this.flow(depth + 1, blank))
    })
    return { kind: 'list', items, range: [start, this.at] }
  }

  /** Reads the parts between this bracket and the closing one. */
  private flowParts(close: string, blank: RegExp, read: () => void): void {
    this.at++
    this.skips(blank)
    if (this.skipsCharacter(close)) return
    do {
      this.skips(blank)
      read()
      this.skips(blank)
    } while (this.skipsCharacter(','))
    if (!this.skipsCharacter(close)) throw notPlain
  }
}

function nullNode(at: number): ScalarNode {
  return { kind: 'scalar', type: 'null', text: '', range: [at, at] }
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0
  while (text[at - 1 - backslashes] === '\\') backslashes++
  return backslashes % 2 === 1
}

// Not trim(): it would also remove no-break spaces, which are content.
function trimmedSpaces(text: string): string {
  let end = text.length
  while (end > 0 && text.charCodeAt(end - 1) === space) end--
  return text.slice(0, end)
}
