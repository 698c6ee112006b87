import { harmlessYamlString } from './terminal.ts'

// Written here rather than by the yaml package: that takes 14 ms to load and a second for 10,000 certificates,
// and this side has only plain data to write.

type Data = string | number | boolean | null | undefined | readonly Data[] | { readonly [key: string]: Data }

/** Returns plain data as YAML, members in their order; what is undefined is left out, as in JSON. */
export function renderYaml(document: object): string {
  return blockOf(document as Data, '')
}

/** As JSON.stringify: an object with toJSON says itself what it is as plain data. */
function plainOf(data: Data): Data {
  const { toJSON } = (data ?? {}) as { toJSON?: () => Data }
  return toJSON === undefined ? data : toJSON.call(data)
}

function blockOf(data: Data, indent: string): string {
  if (Array.isArray(data)) {
    return data.map((item) => `${indent}- ${afterDash(plainOf(item as Data), `${indent}  `)}`).join('')
  }
  let text = ''
  for (const [key, value] of Object.entries(data as object) as [string, Data][]) {
    if (value !== undefined) text += `${indent}${scalar(key)}:${afterColon(plainOf(value), indent)}`
  }
  return text
}

// The first member of a list's item is on the line of its dash.
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

// Text that no version of YAML takes for anything else: it begins with a letter or a slash, has nothing that means
// something in a block, and is no word that YAML 1.1 takes for a boolean or for nothing. A hex serial like 12e4 begins
// with a digit and is quoted.
const plain = /^[A-Za-z/][A-Za-z0-9/_.,=@+() -]*$/
const reserved = /^(?:y|n|yes|no|on|off|true|false|null)$/i

function scalar(text: string): string {
  return plain.test(text) && !reserved.test(text) && !text.endsWith(' ') ? text : harmlessYamlString(text)
}

/** Returns objects as a stream of YAML documents, as kubectl reads it. */
export function renderYamlDocuments(objects: readonly object[]): string {
  return objects.map(renderYaml).join('---\n')
}
