import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from './documents.ts'
import { type ListNode, type MapNode, type Node, plainType, type Range } from './node.ts'

// Edits in place: what is changed is spliced into the text, and every other octet stays, comments and order with it. What was
// asked for is then compared with what the edited text says, so an edit does what it says or is refused.

/** Keys and indices from the document down: ['spec', 'containers', 0, 'command', 3]. */
export type YamlPath = readonly (string | number)[]

/** What can be put in: text is quoted where it must be. */
export type YamlValue =
  | string
  | boolean
  | { readonly [key: string]: YamlValue }
  | readonly { readonly [key: string]: YamlValue }[]

export type YamlEdit =
  /** Replaces a scalar, or adds an entry with all maps that are missing above it. */
  | { readonly do: 'set'; readonly path: YamlPath; readonly value: YamlValue }
  /** Takes an entry or an item out. */
  | { readonly do: 'remove'; readonly path: YamlPath }
  /** Adds an item at the end of a list. */
  | { readonly do: 'append'; readonly path: YamlPath; readonly value: YamlValue }

type SetEdit = Extract<YamlEdit, { readonly do: 'set' }>

/**
 * Returns the text with the edits done to its first document, one after the other. Throws KCERT_EDIT_REFUSED when a path leads
 * nowhere, or when the text is written so that the edit would change something else too (anchors, merges, exotic layouts).
 */
export async function editYaml(text: string, edits: readonly YamlEdit[]): Promise<string> {
  let now = text
  for (const edit of edits) {
    const before = await documentsOf(now)
    const after = splice(now, edit, before[0]!)
    const wanted = [applied(plainOf(before[0]!), edit, edit.path), ...before.slice(1).map(plainOf)]
    const found = (await documentsOf(after)).map(plainOf)
    if (JSON.stringify(found) !== JSON.stringify(wanted))
      throw refused(edit, 'it would change more than that')
    now = after
  }
  return now
}

async function documentsOf(text: string): Promise<readonly Node[]> {
  const { documents, defects } = await readDocuments(text)
  const [defect] = defects
  if (defect === undefined && documents.length > 0) return documents
  throw new KcertError('KCERT_EDIT_REFUSED', 'a file that cannot be read is not edited', {
    why: defect === undefined ? 'it is empty' : `line ${defect.line ?? 1}: ${defect.reason}`,
    ...(defect?.next !== undefined && { next: defect.next }),
  })
}

/** Keys in their order: a text that says the same in another order is another text. */
type Plain =
  | readonly ['map', [string, Plain][]]
  | readonly ['list', Plain[]]
  | readonly ['scalar', string, string]

function plainOf(node: Node): Plain {
  if (node.kind === 'list') return ['list', node.items.map(plainOf)]
  if (node.kind === 'map') return ['map', [...node.entries].map(([key, { value }]) => [key, plainOf(value)])]
  return ['scalar', node.type, node.text]
}

function plainValue(value: YamlValue): Plain {
  if (typeof value === 'string') return ['scalar', 'string', value]
  if (typeof value === 'boolean') return ['scalar', 'boolean', `${value}`]
  if (isItems(value)) return ['list', value.map(plainValue)]
  return ['map', Object.entries(value).map(([key, inner]) => [key, plainValue(inner)])]
}

function isItems(value: YamlValue): value is readonly { readonly [key: string]: YamlValue }[] {
  return Array.isArray(value)
}

/** The edit on the content alone: what the edited text has to say. */
function applied(plain: Plain, edit: YamlEdit, path: YamlPath): Plain {
  const [step, ...rest] = path
  if (step === undefined) {
    if (edit.do === 'append' && plain[0] === 'list') return ['list', [...plain[1], plainValue(edit.value)]]
    if (edit.do === 'set') return plainValue(edit.value)
    throw refused(edit, 'there is no list')
  }
  if (typeof step === 'number') {
    if (plain[0] !== 'list' || plain[1][step] === undefined) throw refused(edit, `there is no item ${step}`)
    const items = [...plain[1]]
    if (rest.length === 0 && edit.do === 'remove') items.splice(step, 1)
    else items[step] = applied(plain[1][step], edit, rest)
    return ['list', items]
  }
  const entries = plain[0] === 'map' ? plain[1] : []
  const index = entries.findIndex(([key]) => key === step)
  if (index === -1 && edit.do !== 'set') throw refused(edit, `there is no ${step}`)
  if (index === -1) return ['map', [...entries, [step, plainValue(wrapped(rest, edit as SetEdit))]]]
  if (rest.length === 0 && edit.do === 'remove') return ['map', entries.filter((_, at) => at !== index)]
  return ['map', entries.with(index, [step, applied(entries[index]![1], edit, rest)])]
}

/** The value inside the maps that are missing above it. */
function wrapped(path: YamlPath, edit: SetEdit): YamlValue {
  return path.reduceRight<YamlValue>((value, key) => {
    if (typeof key === 'number') throw refused(edit, 'there is no list')
    return { [key]: value }
  }, edit.value)
}

interface Place {
  readonly node: Node
  readonly parent: MapNode | ListNode | undefined
  readonly step: string | number
}

function splice(text: string, edit: YamlEdit, root: Node): string {
  const places: Place[] = [{ node: root, parent: undefined, step: '' }]
  for (const step of edit.path) {
    const { node } = places.at(-1)!
    const next =
      node.kind === 'map' && typeof step === 'string'
        ? node.entries.get(step)?.value
        : node.kind === 'list' && typeof step === 'number'
          ? node.items[step]
          : undefined
    if (next === undefined) break
    places.push({ node: next, parent: node as MapNode | ListNode, step })
  }
  const rest = edit.path.slice(places.length - 1)
  const place = places.at(-1)!
  const writer = new Writer(text, edit)
  if (edit.do === 'set') {
    if (rest.length === 0) return writer.replace(place)
    const [key, ...below] = rest
    if (typeof key === 'number') throw refused(edit, `there is no item ${key}`)
    return writer.addEntry(place, key!, wrapped(below, edit))
  }
  if (rest.length > 0) throw refused(edit, `there is no ${rest[0]}`)
  if (edit.do === 'remove') return writer.remove(place)
  if (place.node.kind !== 'list') throw refused(edit, 'there is no list')
  return writer.addItem(place.node, edit.value)
}

class Writer {
  private readonly text: string
  private readonly edit: YamlEdit
  private readonly lineEnd: string

  constructor(text: string, edit: YamlEdit) {
    this.text = text
    this.edit = edit
    this.lineEnd = text.includes('\r\n') ? '\r\n' : '\n'
  }

  replace({ node }: Place): string {
    const { edit } = this
    if (edit.do !== 'set' || node.kind !== 'scalar') throw refused(edit, 'it is a list or a map')
    if (typeof edit.value !== 'string' && typeof edit.value !== 'boolean')
      throw refused(edit, 'it is a scalar')
    const [start] = node.range
    const end = this.endOf(node)
    const written = this.scalar(edit.value, this.text[start])
    // A key with nothing behind it has its empty value right at the colon.
    return this.put([start, Math.max(start, end)], start >= end ? ` ${written}` : written)
  }

  addEntry({ node, parent, step }: Place, key: string, value: YamlValue): string {
    if (node.kind === 'scalar' && node.type === 'null' && parent?.kind === 'map') {
      const column = this.columnOf(parent.entries.get(`${step}`)!.key[0]) + 2
      const [start, end] = node.range
      return this.put([start, end], `${this.newLine(column)}${this.entry(key, value, column)}`)
    }
    if (node.kind !== 'map') throw refused(this.edit, 'it is no map')
    if (this.isFlow(node)) {
      const end = node.range[1] - 1
      const written = `${JSON.stringify(key)}: ${JSON.stringify(value)}`
      const last = [...node.entries.values()].at(-1)
      return last === undefined
        ? this.put([node.range[0] + 1, end], written)
        : this.put([this.endOf(last.value), this.endOf(last.value)], `, ${written}`)
    }
    const column = this.columnOf(node.range[0])
    const at = this.endOfLine(this.endOf(node))
    return this.put([at, at], `${this.newLine(column)}${this.entry(key, value, column)}`)
  }

  addItem(node: ListNode, value: YamlValue): string {
    if (this.isFlow(node)) {
      const last = node.items.at(-1)
      const written = JSON.stringify(value)
      return last === undefined
        ? this.put([node.range[0] + 1, node.range[1] - 1], written)
        : this.put([this.endOf(last), this.endOf(last)], `, ${written}`)
    }
    const column = this.columnOf(node.range[0])
    const at = this.endOfLine(this.endOf(node))
    return this.put([at, at], `${this.newLine(column)}- ${this.block(value, column + 2)}`)
  }

  remove(place: Place): string {
    const { parent, step } = place
    if (parent === undefined) throw refused(this.edit, 'it is the whole document')
    const parts: Range[] =
      parent.kind === 'map'
        ? [...parent.entries.values()].map(({ key, value }) => [key[0], this.endOf(value, key[1] + 1)])
        : parent.items.map((item) => [item.range[0], this.endOf(item)])
    const index = parent.kind === 'map' ? [...parent.entries.keys()].indexOf(`${step}`) : Number(step)
    if (this.isFlow(parent)) return this.removeFromFlow(parts, index)
    const [start, end] = parts[index]!
    if (parts.length === 1) return this.empty(parent)
    const first = parent.kind === 'list' ? this.dashBefore(start) : start
    const from = this.text.lastIndexOf('\n', first - 1) + 1
    const stop = this.endOfLine(end)
    if (this.text.slice(from, first).trim() === '') {
      const next = this.text.indexOf('\n', stop)
      return next === -1 ? this.put([Math.max(0, from - 1), stop], '') : this.put([from, next + 1], '')
    }
    // The first entry behind a dash: the dash stays, and what follows stands below it.
    if (parent.kind === 'list') throw refused(this.edit, 'a list begins on the line of another')
    return this.put([this.text.slice(0, first).trimEnd().length, stop], '')
  }

  private removeFromFlow(parts: readonly Range[], index: number): string {
    const [start, end] = parts[index]!
    const next = parts[index + 1]
    if (next !== undefined) return this.put([start, next[0]], '')
    return this.put([index === 0 ? start : parts[index - 1]![1], end], '')
  }

  /** The only part of a block taken out: nothing would be null, so it is written as empty. */
  private empty(node: MapNode | ListNode): string {
    const [start] = node.range
    const before = this.text.slice(0, start).trimEnd()
    const at = before.length
    if (!/[:-]$/.test(before)) throw refused(this.edit, 'it is all that the document holds')
    return this.put([at, this.endOf(node)], node.kind === 'map' ? ' {}' : ' []')
  }

  private dashBefore(start: number): number {
    const before = this.text.slice(0, start).trimEnd()
    if (!before.endsWith('-')) throw refused(this.edit, 'an item does not begin right behind its dash')
    return before.length - 1
  }

  private put([start, end]: Range, written: string): string {
    return this.text.slice(0, start) + written + this.text.slice(end)
  }

  private isFlow(node: MapNode | ListNode): boolean {
    const first = this.text[node.range[0]]
    return first === '{' || first === '['
  }

  /** Where the last leaf of a node ends; for nothing at all, `least`. */
  private endOf(node: Node, least = 0): number {
    if (node.kind !== 'scalar' && !this.isFlow(node)) {
      const leaves: (readonly [Node, number])[] =
        node.kind === 'list'
          ? node.items.map((item) => [item, 0])
          : [...node.entries.values()].map(({ key, value }) => [value, key[1] + 1])
      return Math.max(least, ...leaves.map(([leaf, atLeast]) => this.endOf(leaf, atLeast)))
    }
    let [start, end] = node.range
    // Not \s: no-break spaces and their like are content.
    while (end > start && /[ \t\r\n]/.test(this.text[end - 1]!)) end--
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
    // A list stands in the column of its key, as Kubernetes' own writers have it.
    const inner = isItems(value) ? column : column + 2
    return `${name}:${this.newLine(inner)}${this.block(value, inner)}`
  }

  /** A value whose first line is already in its column. */
  private block(value: YamlValue, column: number): string {
    if (typeof value === 'string' || typeof value === 'boolean') return this.scalar(value, undefined)
    const lines = isItems(value)
      ? value.map((item) => `- ${this.block(item, column + 2)}`)
      : Object.entries(value).map(([key, inner]) => this.entry(key, inner, column))
    return lines.join(this.newLine(column))
  }

  /** In the quotes that were there, if any. */
  private scalar(value: string | boolean, quote: string | undefined): string {
    if (typeof value === 'boolean') return `${value}`
    if (quote === "'" && !/[\0-\x1f\x7f-\x9f\u2028\u2029\ufeff]/.test(value))
      return `'${value.replaceAll("'", "''")}'`
    return quote !== '"' && isPlainText(value) ? value : JSON.stringify(value)
  }
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

function refused(edit: YamlEdit, why: string): KcertError {
  return new KcertError(
    'KCERT_EDIT_REFUSED',
    `${words[edit.do]} ${pathText(edit.path)} cannot be done in place`,
    {
      why,
      next: 'edit the file by hand, or bring it into the usual layout first: kubectl create --dry-run=client -o yaml -f FILE',
    },
  )
}

const words = { set: 'setting', remove: 'removing', append: 'adding to' } as const

function pathText(path: YamlPath): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .replace(/^\./, '')
}
