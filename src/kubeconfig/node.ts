/** Offsets in the text, in UTF-16 units. The start is inclusive, the end exclusive. */
export type Range = readonly [start: number, end: number]

export interface ScalarNode {
  readonly kind: 'scalar'
  /** The type by Go's YAML reader: `yes`, `on` and `y` are booleans, quoted text is always a string. */
  readonly type: 'string' | 'null' | 'boolean' | 'number'
  /** The content, after processing quotes, escapes and indentation. */
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
  /** For a duplicate key the last value is used, as in Go. */
  readonly entries: ReadonlyMap<string, Entry>
  readonly range: Range
}

export interface Entry {
  readonly key: Range
  readonly value: Node
}

/** A part of a YAML or JSON document, with its position, so that it can be edited in place. */
export type Node = ScalarNode | ListNode | MapNode

/** No kubeconfig or manifest is deeper: Kubernetes' objects have a depth of about 20. */
export const deepestNode = 64

// go-yaml 2, which all clients and components of Kubernetes use for YAML (go.yaml.in/yaml/v2 v2.4.3, resolve.go).
const booleanPattern =
  /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/
const infinityPattern = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/
const basedPattern = /^[-+]?0(?:[bB][01]+|[oO][0-7]+|[xX][\da-fA-F]+)$/
const floatPattern = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/
/** No real number is longer. */
const longestNumber = 400

/** Returns the type of an unquoted scalar by the rules of Go's YAML reader (mainly YAML 1.1). */
export function plainType(text: string): ScalarNode['type'] {
  if (text === '' || text === '~' || text === 'null' || text === 'Null' || text === 'NULL') return 'null'
  if (text.length <= 5 && booleanPattern.test(text)) return 'boolean'
  return /^[-+.\d]/.test(text) && text.length <= longestNumber && isNumber(text) ? 'number' : 'string'
}

function isNumber(text: string): boolean {
  if (infinityPattern.test(text)) return true
  // After a leading point, underscores are allowed only between digits. Elsewhere they are allowed anywhere.
  const digits = text.startsWith('.') ? text.replace(/(?<=\d)_(?=\d)/g, '') : text.replaceAll('_', '')
  if (floatPattern.test(digits)) return Number.isFinite(Number(digits))
  if (!basedPattern.test(digits)) return false
  const value = BigInt(digits.replace(/^[-+]/, '').toLowerCase())
  // A number that does not fit into 64 bits is text.
  return value < 1n << (/^[-+]/.test(digits) ? 63n : 64n) || (digits.startsWith('-') && value === 1n << 63n)
}

/** True for the words that mean true. */
export function isTrue(node: Node | undefined): boolean {
  return node?.kind === 'scalar' && node.type === 'boolean' && /^(?:true|yes|y|on)$/i.test(node.text)
}

/** Returns the value at the end of a path of keys; undefined if the path does not exist. */
export function valueAt(node: Node | undefined, ...path: readonly string[]): Node | undefined {
  let found = node
  for (const key of path) found = found?.kind === 'map' ? found.entries.get(key)?.value : undefined
  return found
}

/** Returns the text of a scalar; undefined for null, lists and maps. Numbers and booleans are returned as written. */
export function textOf(node: Node | undefined): string | undefined {
  return node?.kind === 'scalar' && node.type !== 'null' ? node.text : undefined
}

/** Returns the items of a list, and no items for any other node. */
export function itemsOf(node: Node | undefined): readonly Node[] {
  return node?.kind === 'list' ? node.items : []
}

/** Returns the keys and values of a map, and no entries for any other node. */
export function entriesOf(node: Node | undefined): readonly (readonly [key: string, value: Node])[] {
  return node?.kind === 'map' ? [...node.entries].map(([key, { value }]) => [key, value]) : []
}

/** Returns the node as JSON types. */
export function plainValue(node: Node): unknown {
  if (node.kind === 'list') return node.items.map(plainValue)
  if (node.kind === 'map')
    return Object.fromEntries([...node.entries].map(([key, { value }]) => [key, plainValue(value)]))
  if (node.type === 'null') return null
  if (node.type === 'boolean') return isTrue(node)
  return node.type === 'number' ? Number(node.text) : node.text
}
