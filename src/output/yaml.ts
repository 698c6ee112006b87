import { harmlessYamlString } from './terminal.ts'

// Implemented here instead of with the yaml package, which takes 14 ms to load and a second for 10,000 certificates. This writer
// needs plain data only.

type Data = string | number | boolean | null | undefined | readonly Data[] | { readonly [key: string]: Data }

/** Returns plain data as YAML, with members in their order. Undefined members are left out, as in JSON. */
export function renderYaml(document: object): string {
  return blockOf(document as Data, '')
}

/** As in JSON.stringify, an object with toJSON provides its plain data. */
function plainOf(data: Data): Data {
  const { toJSON } = (data ?? {}) as { toJSON?: () => Data }
  return toJSON === undefined ? data : toJSON.call(data)
}

function blockOf(data: Data, indent: string): string {
  if (Array.isArray(data)) {
    return data.map((item) => `${indent}- ${afterDash(plainOf(item), `${indent}  `)}`).join('')
  }
  let text = ''
  for (const [key, value] of Object.entries(data as object) as [string, Data][]) {
    if (value !== undefined) text += `${indent}${scalar(key)}:${afterColon(plainOf(value), indent)}`
  }
  return text
}

// The first member of a list item is on the line of its dash.
function afterDash(data: Data, indent: string): string {
  return isBlock(data) ? blockOf(data, indent).slice(indent.length) : `${inline(data)}\n`
}

function afterColon(data: Data, indent: string): string {
  if (!isBlock(data)) return ` ${inline(data)}\n`
  return `\n${blockOf(data, `${indent}  `)}`
}

function isBlock(data: Data): boolean {
  if (typeof data !== 'object' || data === null) return false
  return Array.isArray(data) ? data.length > 0 : Object.values(data).some((value) => value !== undefined)
}

function inline(data: Data): string {
  if (typeof data === 'string') return scalar(data)
  if (typeof data === 'object' && data !== null) return Array.isArray(data) ? '[]' : '{}'
  return String(data ?? null)
}

// Text that every version of YAML reads as a string. It begins with a letter or a slash, has no character with a meaning in a
// block, and is not a YAML 1.1 boolean or null. A hex serial like 12e4 begins with a digit and is quoted.
const plain = /^[A-Za-z/][A-Za-z0-9/_.,=@+() -]*$/
const reserved = /^(?:y|n|yes|no|on|off|true|false|null)$/i

function scalar(text: string): string {
  return plain.test(text) && !reserved.test(text) && !text.endsWith(' ') ? text : harmlessYamlString(text)
}

/** Returns objects as a stream of YAML documents, as kubectl reads them. */
export function renderYamlDocuments(objects: readonly object[]): string {
  return objects.map(renderYaml).join('---\n')
}
