/** Offsets in the text, in UTF-16 units: from the first character up to, not including, the last. */
export type Range = readonly [start: number, end: number]

export interface ScalarNode {
  readonly kind: 'scalar'
  /** As Go's YAML reader takes it: `yes` and `on` are booleans, what is quoted is always a string. */
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

/** A piece of a YAML or JSON document, with the place where it stands, so that it can be edited in place. */
export type Node = ScalarNode | ListNode | MapNode

/** Deeper is no kubeconfig and no manifest: Kubernetes' own objects end at about 20. */
export const deepestNode = 64

const numberPattern =
  /^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[\da-fA-F_]+|(?:\d[\d_]*)(?:\.[\d_]*)?(?:[eE][-+]?\d+)?|\.\d[\d_]*(?:[eE][-+]?\d+)?|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$/
const booleanPattern = /^(?:true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$/

/** Returns what an unquoted scalar is, by the rules of Go's YAML reader (YAML 1.1 where it matters). */
export function plainType(text: string): ScalarNode['type'] {
  if (text.length > 32)
    return numberPattern.test(text.slice(0, 400)) && text.length <= 400 ? 'number' : 'string'
  if (text === '' || text === '~' || text === 'null' || text === 'Null' || text === 'NULL') return 'null'
  if (booleanPattern.test(text)) return 'boolean'
  return numberPattern.test(text) ? 'number' : 'string'
}

/** True for the words that stand for yes. */
export function isTrue(node: Node | undefined): boolean {
  return node?.kind === 'scalar' && node.type === 'boolean' && /^(?:true|yes|on)$/i.test(node.text)
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
