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

// The part of YAML that kubectl, kubeadm and most people write, and JSON. It is read here in one pass, in time that grows
// with the text alone; whatever else YAML has (anchors, tags, folded text, several lines without quotes) is left to the yaml
// library, which takes longer to load than this takes to read. Where both read a text they must agree: a test compares them.

/** Where reading ended before the end of the text. */
export interface PlainStop {
  /** `not-plain`: malformed, or beyond the plain part of YAML; `too-many`: more than `mostNodes`. */
  readonly because: 'not-plain' | 'too-many'
  /** From 1. */
  readonly line: number
}

/**
 * Returns the documents of a text, without empty ones, or where it has anything beyond the plain part of YAML, or is malformed:
 * then the yaml library decides.
 */
export function readPlainYaml(text: string): Node[] | PlainStop {
  const reader = new PlainReader(text)
  try {
    return reader.documents()
  } catch (error) {
    if (error === notPlain) return { because: 'not-plain', line: reader.line }
    if (error === tooMany) return { because: 'too-many', line: reader.line }
    throw error
  }
}

/** Keys, values and items. What has more takes more memory than kcert may; a list of 5,000 Secrets has 100,000. */
export const mostNodes = 500_000

// Thrown to leave; one value each, because a stack trace for each fallback would cost more than the reading.
const notPlain = Symbol('not plain YAML')
const tooMany = Symbol('too many nodes')

const newline = 10
const carriageReturn = 13
const space = 32
const tab = 9
const codes = {
  quote: 34,
  hash: 35,
  apostrophe: 39,
  comma: 44,
  dash: 45,
  colon: 58,
  openList: 91,
  closeList: 93,
  openMap: 123,
  closeMap: 125,
}

/** Characters of keys that need no thought: letters, digits and . / _ - and a dollar sign. */
const keyPattern = /[A-Za-z0-9_$./][A-Za-z0-9_$./-]*/y
/** Unquoted text in [lists] and {maps}: nothing that could mean anything else. */
const flowWordPattern = /[A-Za-z0-9_$./+-][A-Za-z0-9_$./+=-]*(?: +[A-Za-z0-9_$./+=-]+)*/y
/** First characters of an unquoted scalar that mean something, or mean nothing good. */
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

  /** Of the place that was read to, from 1. */
  get line(): number {
    let line = 1
    for (let at = this.text.indexOf('\n'); at !== -1 && at < this.at; at = this.text.indexOf('\n', at + 1))
      line++
    return line
  }

  documents(): Node[] {
    // A carriage return by itself is a line end to some readers and not to others.
    if (/\r(?!\n)/.test(this.text)) throw notPlain
    const documents: Node[] = []
    this.toContent()
    for (;;) {
      if (this.indent >= 0) {
        documents.push(this.root())
        if (this.indent >= 0) throw notPlain
      }
      if (this.at >= this.length) return documents
      // "---" at the beginning of a line, with nothing but a comment behind it.
      this.at += 3
      this.endOfLine()
    }
  }

  private root(): Node {
    const code = this.text.charCodeAt(this.at)
    if (code === codes.openMap || code === codes.openList) {
      const node = this.flow(1, true)
      this.endOfLine()
      return node
    }
    return this.block(1)
  }

  private isDocumentMark(): boolean {
    if (!this.text.startsWith('---', this.at)) return false
    const code = this.text.charCodeAt(this.at + 3)
    return Number.isNaN(code) || code === newline || code === carriageReturn || code === space
  }

  /** Moves to the first content at or below the current line start; blank lines and comments are passed over. */
  private toContent(): void {
    const { text, length } = this
    for (;;) {
      this.lineStart = this.at
      while (text.charCodeAt(this.at) === space) this.at++
      if (this.at >= length) {
        this.indent = -1
        return
      }
      const code = text.charCodeAt(this.at)
      if (code === tab) throw notPlain
      if (code === codes.hash || code === newline || code === carriageReturn) {
        this.skipLine()
        continue
      }
      this.indent = this.at - this.lineStart
      if (this.indent > 0) return
      if (this.isDocumentMark()) this.indent = -1
      else if (code === 37 || text.startsWith('...', this.at)) throw notPlain
      return
    }
  }

  private skipLine(): void {
    const end = this.text.indexOf('\n', this.at)
    this.at = end === -1 ? this.length : end + 1
  }

  /** Expects nothing but spaces and a comment on the rest of the line, and moves to the next content. */
  private endOfLine(): void {
    const { text, length } = this
    const from = this.at
    while (text.charCodeAt(this.at) === space) this.at++
    if (this.at < length) {
      const code = text.charCodeAt(this.at)
      if (code === codes.hash && this.at > from) this.skipLine()
      else if (code === newline) this.at++
      else if (code === carriageReturn && text.charCodeAt(this.at + 1) === newline) this.at += 2
      else throw notPlain
    }
    this.toContent()
  }

  /** True when the line has nothing more but spaces and a comment. */
  private restIsEmpty(): boolean {
    let at = this.at
    while (this.text.charCodeAt(at) === space) at++
    if (at >= this.length) return true
    const code = this.text.charCodeAt(at)
    return code === newline || code === carriageReturn || (code === codes.hash && at > this.at)
  }

  private block(depth: number): Node {
    if (depth > deepestNode) throw notPlain
    return this.isDash(this.at) ? this.list(this.indent, depth) : this.map(this.indent, depth)
  }

  private isDash(at: number): boolean {
    if (this.text.charCodeAt(at) !== codes.dash) return false
    const code = this.text.charCodeAt(at + 1)
    return code === space || code === newline || code === carriageReturn || Number.isNaN(code)
  }

  private list(column: number, depth: number): ListNode {
    if (depth > deepestNode) throw notPlain
    const start = this.at
    let end = start
    const items: Node[] = []
    while (this.indent === column && this.isDash(this.at)) {
      const dash = this.at++
      if (this.restIsEmpty()) {
        this.endOfLine()
        items.push(this.indent > column ? this.block(depth + 1) : nullNode(dash + 1))
      } else {
        while (this.text.charCodeAt(this.at) === space) this.at++
        const itemColumn = this.at - this.lineStart
        if (this.isDash(this.at) || this.keyEnd() !== undefined) {
          this.indent = itemColumn
          items.push(this.block(depth + 1))
        } else {
          items.push(this.inline(column, depth + 1))
        }
      }
      end = items.at(-1)!.range[1]
      if (++this.nodes > mostNodes) throw tooMany
    }
    if (this.indent > column) throw notPlain
    return { kind: 'list', items, range: [start, end] }
  }

  private map(column: number, depth: number): MapNode {
    const start = this.at
    let end = start
    const entries = new Map<string, Entry>()
    while (this.indent === column && !this.isDash(this.at)) {
      const keyStart = this.at
      const key = this.key()
      const keyRange: Range = [keyStart, this.at]
      this.at++
      let value: Node
      if (this.restIsEmpty()) {
        const nothing = this.at
        this.endOfLine()
        if (this.indent > column) value = this.block(depth + 1)
        else if (this.indent === column && this.isDash(this.at)) value = this.list(column, depth + 1)
        else value = nullNode(nothing)
      } else {
        while (this.text.charCodeAt(this.at) === space) this.at++
        value = this.inline(column, depth + 1)
      }
      entries.set(key, { key: keyRange, value })
      end = value.range[1]
      if (++this.nodes > mostNodes) throw tooMany
    }
    if (entries.size === 0 || this.indent > column) throw notPlain
    return { kind: 'map', entries, range: [start, end] }
  }

  /** Where the key that begins here ends, at its colon; undefined when no key begins here. */
  private keyEnd(): number | undefined {
    const { text } = this
    const code = text.charCodeAt(this.at)
    let end: number
    if (code === codes.quote || code === codes.apostrophe) {
      const from = this.at
      this.quoted()
      end = this.at
      this.at = from
    } else {
      keyPattern.lastIndex = this.at
      if (!keyPattern.test(text)) return undefined
      end = keyPattern.lastIndex
    }
    if (text.charCodeAt(end) !== codes.colon) return undefined
    const after = text.charCodeAt(end + 1)
    return after === space || after === newline || after === carriageReturn || Number.isNaN(after)
      ? end
      : undefined
  }

  /** Reads a key and stops at its colon. */
  private key(): string {
    const end = this.keyEnd()
    if (end === undefined) throw notPlain
    const code = this.text.charCodeAt(this.at)
    if (code === codes.quote || code === codes.apostrophe) return this.quoted().text
    const key = this.text.slice(this.at, end)
    this.at = end
    return key
  }

  /** A value on the line of its key or dash, whose column is given. */
  private inline(column: number, depth: number): Node {
    const code = this.text.charCodeAt(this.at)
    let node: Node
    if (code === codes.quote || code === codes.apostrophe) {
      node = this.quoted()
      this.endOfLine()
    } else if (code === codes.openMap || code === codes.openList) {
      node = this.flow(depth, false)
      this.endOfLine()
    } else if (this.text[this.at] === '|') {
      return this.literal(column)
    } else {
      node = this.plain()
    }
    // A deeper line would go on with this value.
    if (this.indent > column) throw notPlain
    return node
  }

  private plain(): ScalarNode {
    const { text } = this
    const start = this.at
    if (indicators.has(text[start]!) || this.isDash(start)) throw notPlain
    const newlineAt = text.indexOf('\n', start)
    let end = newlineAt === -1 ? this.length : newlineAt
    this.at = newlineAt === -1 ? this.length : newlineAt + 1
    let content = text.slice(start, end)
    const comment = content.indexOf(' #')
    if (comment !== -1) content = content.slice(0, comment)
    if (content.endsWith('\r')) content = content.slice(0, -1)
    content = trimmedSpaces(content)
    if (/[\t\r]|:(?: |$)/.test(content)) throw notPlain
    end = start + content.length
    this.toContent()
    return { kind: 'scalar', type: plainType(content), text: content, range: [start, end] }
  }

  /** Quoted text on one line. */
  private quoted(): ScalarNode {
    const start = this.at
    const text = this.text.charCodeAt(start) === codes.quote ? this.doubleQuoted() : this.singleQuoted()
    return { kind: 'scalar', type: 'string', text, range: [start, this.at] }
  }

  private doubleQuoted(): string {
    const { text } = this
    const start = this.at
    let end = text.indexOf('"', start + 1)
    while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
    if (end === -1) throw notPlain
    this.at = end + 1
    const written = text.slice(start, end + 1)
    try {
      // What JSON does not take, line ends among it, is left to the library.
      return JSON.parse(written) as string
    } catch {
      throw notPlain
    }
  }

  private singleQuoted(): string {
    const { text } = this
    const start = this.at + 1
    let end = text.indexOf("'", start)
    let hasQuotes = false
    while (end !== -1 && text.charCodeAt(end + 1) === codes.apostrophe) {
      hasQuotes = true
      end = text.indexOf("'", end + 2)
    }
    if (end === -1) throw notPlain
    const written = text.slice(start, end)
    if (/[\n\r\t]/.test(written)) throw notPlain
    this.at = end + 1
    return hasQuotes ? written.replaceAll("''", "'") : written
  }

  /** Text behind "|": kept as it is, less its indentation. */
  private literal(column: number): ScalarNode {
    const { text, length } = this
    const start = this.at++
    const chomp = text[this.at] === '-' || text[this.at] === '+' ? text[this.at++] : ''
    if (!this.restIsEmpty()) throw notPlain
    this.skipLine()
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
        // Spaces before the first line decide the indentation in ways that are not plain.
        if (indent === 0 && from > this.at) throw notPlain
        blankLines++
      }
      this.at = next
    }
    if (lines.length === 0 && (blankLines > 0 || chomp === '+')) throw notPlain
    if (this.at >= length && text.charCodeAt(length - 1) !== newline && chomp !== '-' && lines.length > 0) {
      // Without a last line end there is none to keep.
      this.toContent()
      return {
        kind: 'scalar',
        type: 'string',
        text: lines.join('\n') + '\n'.repeat(blankLines),
        range: [start, end],
      }
    }
    const tail = chomp === '-' || lines.length === 0 ? '' : chomp === '+' ? '\n'.repeat(1 + blankLines) : '\n'
    this.toContent()
    if (this.indent > column) throw notPlain
    return { kind: 'scalar', type: 'string', text: lines.join('\n') + tail, range: [start, end] }
  }

  /** [lists] and {maps}, JSON above all. Over several lines only where the document is nothing else. */
  private flow(depth: number, mayBreak: boolean): Node {
    if (depth > deepestNode) throw notPlain
    if (++this.nodes > mostNodes) throw tooMany
    const code = this.text.charCodeAt(this.at)
    if (code === codes.openMap) return this.flowMap(depth, mayBreak)
    if (code === codes.openList) return this.flowList(depth, mayBreak)
    if (code === codes.quote || code === codes.apostrophe) return this.quoted()
    flowWordPattern.lastIndex = this.at
    if (!flowWordPattern.test(this.text)) throw notPlain
    const range: Range = [this.at, flowWordPattern.lastIndex]
    const text = this.text.slice(...range)
    if (text === '-' || text.startsWith('- ') || text.startsWith('---')) throw notPlain
    this.at = range[1]
    return { kind: 'scalar', type: plainType(text), text, range }
  }

  private flowMap(depth: number, mayBreak: boolean): MapNode {
    const start = this.at
    const entries = new Map<string, Entry>()
    this.flowParts(codes.closeMap, mayBreak, () => {
      const keyStart = this.at
      const isQuoted = this.text.charCodeAt(this.at) === codes.quote
      const key = this.flow(deepestNode, false)
      if (key.kind !== 'scalar' || (!isQuoted && key.type !== 'string')) throw notPlain
      const keyRange: Range = [keyStart, this.at]
      if (isQuoted) this.flowSpace(mayBreak)
      if (this.text.charCodeAt(this.at) !== codes.colon) throw notPlain
      this.at++
      if (!isQuoted && this.text.charCodeAt(this.at) !== space) throw notPlain
      this.flowSpace(mayBreak)
      entries.set(key.text, { key: keyRange, value: this.flow(depth + 1, mayBreak) })
    })
    return { kind: 'map', entries, range: [start, this.at] }
  }

  private flowList(depth: number, mayBreak: boolean): ListNode {
    const start = this.at
    const items: Node[] = []
    this.flowParts(codes.closeList, mayBreak, () => {
      items.push(this.flow(depth + 1, mayBreak))
    })
    return { kind: 'list', items, range: [start, this.at] }
  }

  /** Reads the parts between the bracket here and the one that closes it. */
  private flowParts(close: number, mayBreak: boolean, read: () => void): void {
    this.at++
    this.flowSpace(mayBreak)
    if (this.text.charCodeAt(this.at) === close) {
      this.at++
      return
    }
    do {
      this.flowSpace(mayBreak)
      read()
      this.flowSpace(mayBreak)
    } while (this.flowComma(close))
  }

  private flowSpace(mayBreak: boolean): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at)
      if (code === newline && mayBreak) this.lineStart = this.at + 1
      else if (code !== space && !(mayBreak && (code === carriageReturn || code === tab))) return
      this.at++
    }
  }

  /** True at a comma; false at the closing bracket, which is passed over. */
  private flowComma(close: number): boolean {
    const code = this.text.charCodeAt(this.at)
    if (code !== codes.comma && code !== close) throw notPlain
    this.at++
    return code === codes.comma
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

// Not trim(): that would take no-break spaces too, which are content.
function trimmedSpaces(text: string): string {
  let end = text.length
  while (end > 0 && text.charCodeAt(end - 1) === space) end--
  return text.slice(0, end)
}
