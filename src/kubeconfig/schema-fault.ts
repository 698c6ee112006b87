import type { GenericIssue, GenericSchema } from 'valibot'
import type { Node } from './node.ts'

// Describes why a hand-written file does not match its schema: the line, the actual value and the allowed values.

/** A document with its source text. */
export interface WrittenDocument {
  readonly document: Node
  readonly text: string
  /** Name of the file, for messages. */
  readonly source: string
}

export type FieldPath = readonly (string | number)[]

export interface SchemaFault {
  /** "policy.yaml line 7: rules[1].cidrs[0]" */
  readonly place: string
  readonly why: string
}

/** Returns the first fault of the value at that path of the document; undefined when it matches. */
export async function schemaFault(
  file: WrittenDocument,
  schema: GenericSchema,
  value: unknown,
  at: FieldPath = [],
): Promise<SchemaFault | undefined> {
  const { safeParse } = await import('valibot')
  const [issue] = safeParse(schema, value).issues ?? []
  if (issue === undefined) return undefined
  const path = [...at, ...(issue.path ?? []).map(({ key }) => (typeof key === 'number' ? key : String(key)))]
  return { place: locationOf(file, path), why: issueText(issue, path, schema) }
}

function issueText(issue: GenericIssue, path: FieldPath, schema: GenericSchema): string {
  const field = String(path.at(-1) ?? '')
  const isMissing = issue.received === 'undefined'
  if (issue.expected === 'never') {
    const near = nearest(field, 'entries' in schema ? Object.keys(Object(schema.entries)) : [])
    return `unknown field ${JSON.stringify(field)}${near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`}`
  }
  if (isMissing) return `${JSON.stringify(field)} is missing`
  // A scalar instead of a whole document may come from another file, perhaps a key, so its text is not shown.
  if (path.length === 0) return 'expected fields such as apiVersion and kind'
  const received = issue.received.length > longestShown ? 'a long string' : issue.received
  return issue.kind === 'validation'
    ? `${received} ${issue.message}`
    : `${received} is invalid: expected ${issue.expected}`
}

/** Values in such files are names, ranges and numbers. */
const longestShown = 130

function nearest(word: string, known: readonly string[]): string | undefined {
  const start = word.slice(0, 3).toLowerCase()
  return (
    known.find((one) => one.toLowerCase() === word.toLowerCase()) ??
    known.find((one) => one.toLowerCase().startsWith(start))
  )
}

/** Returns the location of a field: "policy.yaml line 7: rules[1].cidrs[0]". */
export function locationOf({ document, text, source }: WrittenDocument, path: FieldPath): string {
  let node: Node | undefined = document
  let found = document
  for (const key of path) {
    node = step(node, key)
    if (node === undefined) break
    found = node
  }
  const line = text.slice(0, found.range[0]).split('\n').length
  const name = path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index === 0 ? '' : '.'}${key}`))
    .join('')
  return `${source}${lineText(line)}${name === '' ? '' : `: ${name}`}`
}

function step(node: Node | undefined, key: string | number): Node | undefined {
  if (node?.kind === 'list') return node.items[Number(key)]
  return node?.kind === 'map' ? node.entries.get(String(key))?.value : undefined
}

/** Returns " line 7", or an empty text for an unknown line. */
export function lineText(line: number | undefined): string {
  return line === undefined ? '' : ` line ${line}`
}
