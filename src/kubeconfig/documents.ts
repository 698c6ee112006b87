import type * as Yaml from 'yaml'
import { decodeBase64 } from './base64.ts'
import {
  deepestNode,
  type Entry,
  type Node,
  plainType,
  type Range,
  type ScalarNode,
  textOf,
  valueAt,
} from './node.ts'
import { mostNodes as mostPlainNodes, type PlainYamlDefect, readPlainYaml } from './plain-yaml.ts'

/** Why a text, or a document in it, could not be read. */
export interface DocumentDefect {
  /** The YAML reader's message, as a fragment. */
  readonly reason: string
  /** From 1; absent when the defect concerns the whole text. */
  readonly line?: number
  readonly next?: string
}

export interface Documents {
  readonly documents: readonly Node[]
  readonly defects: readonly DocumentDefect[]
}

// The yaml library needs up to 8 µs per character for the worst input (measured: "[][][]…"), so this size takes about 1 s. Larger
// files that kubectl writes do not reach this code: readPlainYaml has no such limit.
const largestForYaml = 150_000

// Go's reader allows aliases to produce most of a small document and a tenth of a large one. No kubeconfig comes near this.
const mostNodes = 200_000
const mostCharacters = 16 << 20

/**
 * Returns the documents of a YAML or JSON text without empty ones. Never throws: a document that is malformed, too deep, too
 * large, or expands too much through aliases becomes a defect. The other documents are still read.
 */
export async function readDocuments(text: string): Promise<Documents> {
  const documents = readPlainYaml(text)
  if (Array.isArray(documents)) return { documents, defects: [] }
  return text.length > largestForYaml
    ? { documents: [], defects: [defectOfLarge(text, documents)] }
    : readAnyYaml(text)
}

// No other reader handles a text of this size, so the defect says where the plain reader stopped, and why.
function defectOfLarge(text: string, { because, line }: PlainYamlDefect): DocumentDefect {
  if (because === 'too-many') {
    return {
      reason: `more than ${mostPlainNodes.toLocaleString('en')} keys, values and items, the most that kcert reads from one document`,
      line,
      next: 'kubectl get secrets -A --field-selector type=kubernetes.io/tls -o json | kcert inspect -',
    }
  }
  if (/^[\s\ufeff]*[{[]/.test(text)) return { reason: 'malformed JSON', line }
  return {
    reason: `malformed, or YAML with more than plain syntax. kcert reads such YAML up to ${largestForYaml.toLocaleString('en')} characters, and this has ${text.length.toLocaleString('en')}. JSON can be larger`,
    line,
  }
}

/**
 * Returns the first document of a text if the whole document can be read and has the given kind, otherwise the reason, as a
 * fragment.
 */
export async function readDocumentOfKind(text: string, kind: string): Promise<Node | string> {
  const { documents, defects } = await readDocuments(text)
  const [root] = documents
  const [defect] = defects
  if (defect !== undefined) return `line ${defect.line ?? 1}: ${defect.reason}`
  return root !== undefined && textOf(valueAt(root, 'kind')) === kind ? root : `its kind is not ${kind}`
}

/** Reads full YAML with the yaml library. */
export async function readAnyYaml(text: string): Promise<Documents> {
  const yaml = await import('yaml')
  const lines = new yaml.LineCounter()
  const composer = new yaml.Composer({ uniqueKeys: false, logLevel: 'silent', version: '1.2' })
  const documents: Node[] = []
  const defects: DocumentDefect[] = []
  for (const document of composer.compose(shallowTokens(yaml, lines, text, defects), true, text.length)) {
    const error = document.errors[0]
    if (error !== undefined) {
      defects.push({
        reason: withoutContent(error),
        line: lines.linePos(error.pos[0]).line,
      })
      continue
    }
    if (document.contents === null) continue
    const outcome = converted(yaml, document)
    if (typeof outcome === 'string') defects.push({ reason: outcome })
    else if (outcome !== undefined) documents.push(outcome)
  }
  return { documents, defects }
}

/** Returns the message without the text that the library quotes. An unquoted password may start with "!" or "|". */
function withoutContent({ code, message }: Yaml.YAMLParseError): string {
  if (code === 'TAG_RESOLVE_FAILED')
    return 'a value that starts with "!" is a tag, and the tag is unknown: quote the value'
  return message.replace(/\n.*|(?<=\w): .*|(?<=escape sequence \\.).*/s, '').slice(0, 200)
}

/** Yields the parser's tokens until one nests too deep. The composer would read the rest by recursion. */
function* shallowTokens(
  yaml: typeof Yaml,
  lines: Yaml.LineCounter,
  text: string,
  defects: DocumentDefect[],
): Generator<Yaml.CST.Token, void> {
  const parser = new yaml.Parser(lines.addNewLine)
  lines.addNewLine(0)
  for (const lexeme of new yaml.Lexer().lex(text)) {
    yield* parser.next(lexeme)
    // A level of a block map or list puts up to two tokens on the stack.
    if (parser.stack.length > 2 * deepestNode) {
      defects.push({
        reason: `more than ${deepestNode} levels deep`,
        line: lines.linePos(parser.offset).line,
      })
      return
    }
  }
  yield* parser.end()
}

interface Converted {
  readonly node: Node
  /** Number of nodes and characters after following aliases. */
  readonly nodes: number
  readonly characters: number
}

class Refusal extends Error {}

/**
 * Converts the library's nodes into ours. Returns the node, undefined for an empty document, or the reason for a rejection. An
 * alias shares the node of its anchor, and counts as a copy of it.
 */
function converted(yaml: typeof Yaml, document: Yaml.Document.Parsed): Node | string | undefined {
  const anchors = new Map<string, Converted>()
  const open = new Set<string>()

  const convert = (node: unknown, depth: number): Converted => {
    if (yaml.isAlias(node)) return alias(node)
    const anchor = yaml.isScalar(node) || yaml.isCollection(node) ? node.anchor : undefined
    if (anchor !== undefined) open.add(anchor)
    const outcome = content(node, depth)
    if (outcome.nodes > mostNodes || outcome.characters > mostCharacters) {
      throw new Refusal('its aliases expand it beyond the limit')
    }
    if (anchor !== undefined) {
      open.delete(anchor)
      anchors.set(anchor, outcome)
    }
    return outcome
  }

  const alias = ({ source }: Yaml.Alias): Converted => {
    if (open.has(source)) throw new Refusal('an alias is inside its own anchor')
    const target = anchors.get(source)
    // It may be an unquoted password, so it is not part of the message.
    if (target === undefined)
      throw new Refusal(
        'a value that starts with "*" is an alias, and no anchor is before it: quote the value',
      )
    return target
  }

  const content = (node: unknown, depth: number): Converted => {
    if (depth > deepestNode) throw new Refusal(`more than ${deepestNode} levels deep`)
    if (yaml.isMap(node)) return map(node, depth)
    if (yaml.isSeq(node)) {
      const items = node.items.map((item) => convert(item, depth + 1))
      return {
        node: { kind: 'list', items: items.map((item) => item.node), range: rangeOf(node) },
        ...sum(items),
      }
    }
    if (yaml.isScalar(node)) return scalar(node)
    return { node: { kind: 'scalar', type: 'null', text: '', range: [0, 0] }, nodes: 1, characters: 0 }
  }

  const map = (node: Yaml.YAMLMap, depth: number): Converted => {
    const entries = new Map<string, Entry>()
    const parts: Converted[] = []
    for (const pair of node.items) {
      const key = convert(pair.key, depth + 1)
      const value = convert(pair.value, depth + 1)
      parts.push(key, value)
      if (key.node.kind !== 'scalar') throw new Refusal('a key that is not a string')
      const isMerge = yaml.isScalar(pair.key) && pair.key.source === '<<' && pair.key.type === 'PLAIN'
      if (!isMerge) entries.set(key.node.text, { key: key.node.range, value: value.node })
      else if (isMergeable(value.node)) merge(value.node, entries)
      else throw new Refusal('the value of "<<" is not a map')
    }
    return { node: { kind: 'map', entries, range: rangeOf(node) }, ...sum(parts) }
  }

  try {
    const { node } = convert(document.contents, 1)
    return node.kind === 'scalar' && node.type === 'null' ? undefined : node
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
}

function isMergeable(node: Node): boolean {
  return node.kind === 'map' || (node.kind === 'list' && node.items.every((item) => item.kind === 'map'))
}

/** As in Go: a merge overrides the preceding entries, and the first of several maps takes precedence. */
function merge(node: Node, into: Map<string, Entry>): void {
  if (node.kind === 'list') for (const item of node.items.toReversed()) merge(item, into)
  if (node.kind === 'map') for (const [key, entry] of node.entries) into.set(key, entry)
}

function scalar(node: Yaml.Scalar): Converted {
  const range = rangeOf(node)
  const written = typeof node.value === 'string' ? node.value : (node.source ?? '')
  const [type, text] =
    node.tag === undefined
      ? node.type === 'PLAIN'
        ? ([plainType(node.source ?? ''), node.source ?? ''] as const)
        : (['string', written] as const)
      : taggedScalar(node.tag, node.source ?? written)
  return { node: { kind: 'scalar', type, text, range }, nodes: 1, characters: text.length }
}

const typeOfTag: Readonly<Record<string, ScalarNode['type']>> = {
  'tag:yaml.org,2002:bool': 'boolean',
  'tag:yaml.org,2002:int': 'number',
  'tag:yaml.org,2002:float': 'number',
  'tag:yaml.org,2002:null': 'null',
}

/** A tag determines the type of a text, quoted or not. With a tag that Go does not know, the text stays. */
function taggedScalar(tag: string, text: string): readonly [type: ScalarNode['type'], text: string] {
  if (tag === 'tag:yaml.org,2002:binary') {
    const decoded = decodeBase64(text)
    if ('reason' in decoded) throw new Refusal(`!!binary: ${decoded.reason}`)
    return ['string', Buffer.from(decoded.bytes).toString('utf8')]
  }
  const type = typeOfTag[tag] ?? 'string'
  if (type !== 'string' && plainType(text) !== type)
    throw new Refusal(`${JSON.stringify(text)} is not a ${type}`)
  return [type, text]
}

function sum(parts: readonly Converted[]): { nodes: number; characters: number } {
  return {
    nodes: parts.reduce((total, part) => total + part.nodes, 1),
    characters: parts.reduce((total, part) => total + part.characters, 0),
  }
}

function rangeOf(node: { range?: Yaml.Range | null | undefined }): Range {
  return node.range ? [node.range[0], node.range[1]] : [0, 0]
}
