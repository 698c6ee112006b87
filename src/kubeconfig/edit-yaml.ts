import type { CommandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from './documents.ts'
import { entriesOf, type ListNode, type MapNode, type Node, plainType, type Range, valueAt } from './node.ts'

// Edits in place: a change is spliced into the text. Every other byte stays the same, including comments and order. The edited
// text is then parsed and compared with the requested result, so an edit is either exact or rejected.

/** Keys and indices from the document's root: ['spec', 'containers', 0, 'command', 3]. */
export type YamlPath = readonly (string | number)[]

/** A value to insert. Text is quoted where necessary. */
export type YamlValue =
  | string
  | boolean
  | { readonly [key: string]: YamlValue }
  | readonly { readonly [key: string]: YamlValue }[]

export type YamlEdit =
  /** Replaces a scalar, or adds an entry with all missing maps above it. */
  | { readonly do: 'set'; readonly path: YamlPath; readonly value: YamlValue }
  /** Removes an entry or an item. */
  | { readonly do: 'remove'; readonly path: YamlPath }
  /** Adds an item at the end of a list. */
  | { readonly do: 'append'; readonly path: YamlPath; readonly value: YamlValue }

/**
 * Returns the text with the edits applied to its first document, in order. Throws KCERT_EDIT_REFUSED when a path does not exist,
 * or when the layout (anchors, merges, unusual forms) would make the edit change something else too. `rewrite` is a command that
 * prints the text in an editable layout, for advice.
 */
export async function editYaml(
  text: string,
  edits: readonly YamlEdit[],
  rewrite?: CommandLine,
): Promise<string> {
  let now = text
  for (const edit of edits) {
    const refuse: Refuse = (why) => {
      throw refused(edit, why, rewrite)
    }
    const [first, ...others] = await documentsOf(now)
    const after = splice(now, edit, first, refuse)
    const wanted = [applied(plainOf(first), edit, edit.path), ...others.map(plainOf)]
    const found = (await documentsOf(after)).map(plainOf)
    if (JSON.stringify(found) !== JSON.stringify(wanted)) refuse('it would change other fields too')
    now = after
  }
  return now
}

type Refuse = (why: string) => never

async function documentsOf(text: string): Promise<readonly [Node, ...Node[]]> {
  const { documents, defects } = await readDocuments(text)
  const [defect] = defects
  const [first, ...others] = documents
  if (defect === undefined && first !== undefined) return [first, ...others]
  throw new KcertError('KCERT_EDIT_REFUSED', 'kcert does not edit a file that it cannot parse', {
    why: defect === undefined ? 'it is empty' : `line ${defect.line ?? 1}: ${defect.reason}`,
    ...(defect?.next !== undefined && { next: defect.next }),
  })
}

/** Keys in order: the same keys in another order are another text. Items of a list have empty keys. */
type Plain = readonly [kind: string, content: string | readonly (readonly [key: string, value: Plain])[]]

function plainOf(node: Node): Plain {
  if (node.kind === 'scalar') return [node.type, node.text]
  const parts = node.kind === 'list' ? node.items.map((item) => ['', item] as const) : entriesOf(node)
  return [node.kind, parts.map(([key, value]) => [key, plainOf(value)])]
}

function plainValue(value: YamlValue): Plain {
  if (typeof value === 'string') return ['string', value]
  if (typeof value === 'boolean') return ['boolean', `${value}`]
  if (isItems(value)) return ['list', value.map((item) => ['', plainValue(item)])]
  return ['map', Object.entries(value).map(([key, inner]) => [key, plainValue(inner)])]
}

function isItems(value: YamlValue): value is readonly { readonly [key: string]: YamlValue }[] {
  return Array.isArray(value)
}

/** Applies the edit to the content alone, which gives the expected result. Impossible edits were rejected before. */
function applied([kind, content]: Plain, edit: YamlEdit, [step, ...rest]: YamlPath): Plain {
  const parts = typeof content === 'string' ? [] : content
  const value: Plain = edit.do === 'remove' ? ['null', ''] : plainValue(edit.value)
  if (step === undefined) return edit.do === 'append' ? [kind, [...parts, ['', value]]] : value
  const index = typeof step === 'number' ? step : parts.findIndex(([key]) => key === step)
  const part = parts[index]
  if (part === undefined) {
    const inner = rest.reduceRight<Plain>((below, key) => ['map', [[`${key}`, below]]], value)
    return ['map', [...parts, [`${step}`, inner]]]
  }
  if (rest.length === 0 && edit.do === 'remove') return [kind, parts.toSpliced(index, 1)]
  return [kind, parts.with(index, [part[0], applied(part[1], edit, rest)])]
}

/** Returns the value inside the missing maps above it. */
function wrapped(path: YamlPath, value: YamlValue, refuse: Refuse): YamlValue {
  return path.reduceRight<YamlValue>(
    (inner, key) => (typeof key === 'number' ? refuse('there is no list') : { [key]: inner }),
    value,
  )
}

interface Place {
  readonly node: Node
  readonly parent?: MapNode | ListNode
  readonly step?: string | number
}

function splice(text: string, edit: YamlEdit, root: Node, refuse: Refuse): string {
  let place: Place = { node: root }
  let rest = edit.path
  for (const step of edit.path) {
    const parent: Node = place.node
    const node =
      parent.kind === 'map' && typeof step === 'string'
        ? valueAt(parent, step)
        : parent.kind === 'list' && typeof step === 'number'
          ? parent.items[step]
          : undefined
    if (node === undefined || parent.kind === 'scalar') break
    place = { node, parent, step }
    rest = rest.slice(1)
  }
  const writer = new Writer(text, refuse)
  const [key, ...below] = rest
  if (edit.do === 'set') {
    if (key === undefined) return writer.replace(place, edit.value)
    if (typeof key === 'number') return refuse(`there is no item ${key}`)
    return writer.addEntry(place, key, wrapped(below, edit.value, refuse))
  }
  if (key !== undefined) return refuse(`there is no ${key}`)
  if (edit.do === 'remove') return writer.remove(place)
  return place.node.kind === 'list' ? writer.addItem(place.node, edit.value) : refuse('there is no list')
}

class Writer {
  private readonly text: string
  private readonly refuse: Refuse
  private readonly lineEnd: string

  constructor(text: string, refuse: Refuse) {
    this.text = text
    this.refuse = refuse
    this.lineEnd = text.includes('\r\n') ? '\r\n' : '\n'
  }

  replace({ node }: Place, value: YamlValue): string {
    if (node.kind !== 'scalar') return this.refuse('it is a list or a map')
    if (typeof value !== 'string' && typeof value !== 'boolean') return this.refuse('it is a scalar')
    const [start] = node.range
    const end = this.endOf(node)
    const written = this.scalar(value, this.text[start])
    // A key without a value has its empty value right after the colon.
    return this.put([start, Math.max(start, end)], start >= end ? ` ${written}` : written)
  }

  addEntry({ node, parent, step }: Place, key: string, value: YamlValue): string {
    const own = parent?.kind === 'map' ? parent.entries.get(`${step}`) : undefined
    if (node.kind === 'scalar' && node.type === 'null' && own !== undefined) {
      const column = this.columnOf(own.key[0]) + 2
      return this.put(node.range, `${this.newLine(column)}${this.entry(key, value, column)}`)
    }
    if (node.kind !== 'map') return this.refuse('it is not a map')
    return this.add(node, `${JSON.stringify(key)}: ${JSON.stringify(value)}`, (column) =>
      this.entry(key, value, column),
    )
  }

  addItem(node: ListNode, value: YamlValue): string {
    return this.add(node, JSON.stringify(value), (column) => `- ${this.block(value, column + 2)}`)
  }

  /** Adds one more part after the others, in flow or block style. */
  private add(node: MapNode | ListNode, inFlow: string, inBlock: (column: number) => string): string {
    if (!this.isFlow(node)) {
      const column = this.columnOf(node.range[0])
      const at = this.endOfLine(this.endOf(node))
      return this.put([at, at], `${this.newLine(column)}${inBlock(column)}`)
    }
    const last = partsOf(node).at(-1)
    if (last === undefined) return this.put([node.range[0] + 1, node.range[1] - 1], inFlow)
    const at = this.endOf(last.value)
    return this.put([at, at], `, ${inFlow}`)
  }

  remove({ parent, step }: Place): string {
    if (parent === undefined) return this.refuse('it is the whole document')
    const parts = partsOf(parent).map(({ start, value, least }): Range => [start, this.endOf(value, least)])
    const index = parent.kind === 'map' ? [...parent.entries.keys()].indexOf(`${step}`) : Number(step)
    const [start, end] = parts[index] ?? this.refuse(`there is no ${step}`)
    if (this.isFlow(parent)) {
      const next = parts[index + 1]
      return this.put(next === undefined ? [parts[index - 1]?.[1] ?? start, end] : [start, next[0]], '')
    }
    if (parts.length === 1) return this.empty(parent)
    const first = parent.kind === 'list' ? this.dashBefore(start) : start
    const from = this.text.lastIndexOf('\n', first - 1) + 1
    const stop = this.endOfLine(end)
    if (this.text.slice(from, first).trim() === '') {
      const next = this.text.indexOf('\n', stop)
      return next === -1 ? this.put([Math.max(0, from - 1), stop], '') : this.put([from, next + 1], '')
    }
    // The first entry after a dash: the dash stays, and the next entry is below it.
    if (parent.kind === 'list') return this.refuse('a list begins on the line of another')
    return this.put([this.text.slice(0, first).trimEnd().length, stop], '')
  }

  /** Removes the only part of a block. An absent value would be null, so it is written as an empty map or list. */
  private empty(node: MapNode | ListNode): string {
    const [start] = node.range
    const before = this.text.slice(0, start).trimEnd()
    if (!/[:-]$/.test(before)) this.refuse('it is the only content of the document')
    return this.put([before.length, this.endOf(node)], node.kind === 'map' ? ' {}' : ' []')
  }

  private dashBefore(start: number): number {
    const before = this.text.slice(0, start).trimEnd()
    if (!before.endsWith('-')) this.refuse('an item does not begin directly after its dash')
    return before.length - 1
  }

  private put([start, end]: Range, written: string): string {
    return this.text.slice(0, start) + written + this.text.slice(end)
  }

  private isFlow(node: MapNode | ListNode): boolean {
    const first = this.text[node.range[0]]
    return first === '{' || first === '['
  }

  /** Returns the end of a node's last leaf; `least` for an empty node. */
  private endOf(node: Node, least = 0): number {
    if (node.kind !== 'scalar' && !this.isFlow(node))
      return Math.max(least, ...partsOf(node).map((part) => this.endOf(part.value, part.least)))
    let [start, end] = node.range
    // Not \s: no-break spaces and similar characters are content.
    while (end > start && ' \t\r\n'.includes(this.text.charAt(end - 1))) end--
    return Math.max(least, end)
  }

  private endOfLine(at: number): number {
    const end = this.text.indexOf('\n', at)
    if (end === -1) return this.text.length
    return this.text[end - 1] === '\r' ? end - 1 : end
  }

  private columnOf(at: number): number {
    return at - (this.text.lastIndexOf('\n', at - 1) + 1)
  }

  private newLine(column: number): string {
    return this.lineEnd + ' '.repeat(column)
  }

  private entry(key: string, value: YamlValue, column: number): string {
    const name = isPlainKey(key) ? key : JSON.stringify(key)
    if (typeof value === 'string' || typeof value === 'boolean')
      return `${name}: ${this.scalar(value, undefined)}`
    if (Object.keys(value).length === 0) return `${name}: ${isItems(value) ? '[]' : '{}'}`
    // A list is in the column of its key, as Kubernetes writes it.
    const inner = isItems(value) ? column : column + 2
    return `${name}:${this.newLine(inner)}${this.block(value, inner)}`
  }

  /** Returns a value whose first line is already in its column. */
  private block(value: YamlValue, column: number): string {
    if (typeof value === 'string' || typeof value === 'boolean') return this.scalar(value, undefined)
    const lines = isItems(value)
      ? value.map((item) => `- ${this.block(item, column + 2)}`)
      : Object.entries(value).map(([key, inner]) => this.entry(key, inner, column))
    return lines.join(this.newLine(column))
  }

  /** Returns a scalar with the previous quotes, if any. */
  private scalar(value: string | boolean, quote: string | undefined): string {
    if (typeof value === 'boolean') return `${value}`
    if (quote === "'" && !/[\0-\x1f\x7f-\x9f\u2028\u2029\ufeff]/.test(value))
      return `'${value.replaceAll("'", "''")}'`
    return quote !== '"' && isPlainText(value) ? value : JSON.stringify(value)
  }
}

/** Returns the values of a map or list, with the start (including the key) and the minimum end of each. */
function partsOf(node: MapNode | ListNode): { start: number; value: Node; least: number }[] {
  return node.kind === 'map'
    ? Array.from(node.entries.values(), ({ key, value }) => ({ start: key[0], value, least: key[1] + 1 }))
    : node.items.map((value) => ({ start: value.range[0], value, least: 0 }))
}

function isPlainKey(key: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_./-]*$/.test(key) && plainType(key) === 'string'
}

function isPlainText(value: string): boolean {
  return (
    /^(?:--)?[A-Za-z0-9_/.][A-Za-z0-9_/.,:=@%+*-]*$/.test(value) &&
    !value.endsWith(':') &&
    !/^(?:---|\.\.\.)/.test(value) &&
    plainType(value) === 'string'
  )
}

function refused(edit: YamlEdit, why: string, next: CommandLine | undefined): KcertError {
  const what = `${words[edit.do]} ${pathText(edit.path)} cannot be done in place`
  return new KcertError('KCERT_EDIT_REFUSED', what, {
    why: `${why}; edit the file by hand, or write it in block layout first`,
    ...(next !== undefined && { next }),
  })
}

const words = { set: 'setting', remove: 'removing', append: 'adding to' } as const

function pathText(path: YamlPath): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .replace(/^\./, '')
}
