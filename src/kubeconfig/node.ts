/** Offsets in the text, in UTF-16 units: from the first character up to, not including, the last. */
export type Range = readonly [start: number, end: number]

export interface ScalarNode {
  readonly kind: 'scalar'
  /** As Go's YAML reader takes it: `yes`, `on` and `y` are booleans, what is quoted is always a string. */
  readonly type: 'string' | 'null' | 'boolean' | 'number'
  /** The content, with quotes, escapes and indentation undone. */
  readonly text: string
  readonly range: Range
}

export interface ListNode {
  readonly kind: 'list'
  readonly items: readonly Node[]
  readonly range: Range
}

export interface MapNode {
  readonly kind: 'map'
  /** Of a key that is there twice the last one counts, as for Go. */
  readonly entries: ReadonlyMap<string, Entry>
  readonly range: Range
}

export interface Entry {
  readonly key: Range
  readonly value: Node
}

/** A piece of a YAML or JSON document, with its position, so that it can be edited in place. */
export type Node = ScalarNode | ListNode | MapNode

/** Deeper is no kubeconfig and no manifest: Kubernetes' own objects end at about 20. */
export const deepestNode = 64

// go-yaml 2, with which every client and component of Kubernetes reads YAML (go.yaml.in/yaml/v2 v2.4.3, resolve.go).
const booleanPattern =
  /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/
const infinityPattern = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/
const basedPattern = /^[-+]?0(?:[bB][01]+|[oO][0-7]+|[xX][\da-fA-F]+)$/
const floatPattern = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/
/** No real number is longer. */
const longestNumber = 400

/** Returns what an unquoted scalar is, by the rules of Go's YAML reader (YAML 1.1 where it matters). */
export function plainType(text: string): ScalarNode['type'] {
  if (text === '' || text === '~' || text === 'null' || text === 'Null' || text === 'NULL') return 'null'
  if (text.length <= 5 && booleanPattern.test(text)) return 'boolean'
  return /^[-+.\d]/.test(text) && text.length <= longestNumber && isNumber(text) ? 'number' : 'string'
}

function isNumber(text: string): boolean {
  if (infinityPattern.test(text)) return true
  // Behind a point underscores stand between digits alone, elsewhere anywhere.
  const digits = text.startsWith('.') ? text.replace(/(?<=\d)_(?=\d)/g, '') : text.replaceAll('_', '')
  if (floatPattern.test(digits)) return Number.isFinite(Number(digits))
  if (!basedPattern.test(digits)) return false
  const value = BigInt(digits.replace(/^[-+]/, '').toLowerCase())
  // What does not fit into 64 bits is text.
  return value < 1n << (/^[-+]/.test(digits) ? 63n : 64n) || (digits.startsWith('-') && value === 1n << 63n)
}

/** True for the words that stand for yes. */
export function isTrue(node: Node | undefined): boolean {
  return node?.kind === 'scalar' && node.type === 'boolean' && /^(?:true|yes|y|on)$/i.test(node.text)
}

/** The value at the end of a path of keys; undefined where the path breaks off. */
export function valueAt(node: Node | undefined, ...path: readonly string[]): Node | undefined {
  let found = node
  for (const key of path) found = found?.kind === 'map' ? found.entries.get(key)?.value : undefined
  return found
}

/** The text of a scalar; undefined for null, lists and maps. Numbers and booleans are given as they are written. */
export function textOf(node: Node | undefined): string | undefined {
  return node?.kind === 'scalar' && node.type !== 'null' ? node.text : undefined
}

/** The items of a list; none for what is no list. */
export function itemsOf(node: Node | undefined): readonly Node[] {
  return node?.kind === 'list' ? node.items : []
}

/** The keys and values of a map; none for what is no map. */
export function entriesOf(node: Node | undefined): readonly (readonly [key: string, value: Node])[] {
  return node?.kind === 'map' ? [...node.entries].map(([key, { value }]) => [key, value]) : []
}

/** Returns the node in JSON's types. */
export function plainValue(node: Node): unknown {
  if (node.kind === 'list') return node.items.map(plainValue)
  if (node.kind === 'map')
    return Object.fromEntries([...node.entries].map(([key, { value }]) => [key, plainValue(value)]))
  if (node.type === 'null') return null
  if (node.type === 'boolean') return isTrue(node)
  return node.type === 'number' ? Number(node.text) : node.text
}
