import { isUtf8 } from 'node:buffer'
import { utf8Of } from '../x509/pem.ts'
import { type DocumentDefect, type Documents, readDocuments } from './documents.ts'
import { type Node, plainType, type Range } from './node.ts'

// A kubeconfig as client-go reads it: sigs.k8s.io/yaml converts the file to JSON. Its reader is go-yaml 2 (YAML 1.1, a port of
// libyaml), which also reads JSON as YAML and stops after the first document.

/**
 * Returns the first document of a kubeconfig, or none if it is empty, and why client-go rejects it. Reads as much as possible,
 * even if client-go rejects it.
 */
export async function readKubeconfigDocument(content: Uint8Array): Promise<Documents> {
  const bytes = utf8Of(content)
  const text = firstDocument(bytes.toString('utf8').replace(otherLineBreaks, '\n'))
  const { documents, defects } = await readDocuments(text)
  const [root] = documents
  const own: DocumentDefect[] = [...textDefects(bytes, text), ...(root ? nodeDefects(root, text) : [])]
  return { documents: root === undefined ? [] : [root], defects: [...defects, ...own] }
}

// libyaml treats these as line ends too. Each is one UTF-16 unit, so that positions in the text stay the same.
const otherLineBreaks = /\r(?!\n)|[\u0085\u2028\u2029]/g

/** Characters that go-yaml's reader rejects, other than line ends and tabs. */
const forbiddenCharacter = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u

function* textDefects(bytes: Uint8Array, text: string): Generator<DocumentDefect> {
  if (!isUtf8(bytes)) yield { reason: 'not UTF-8, which client-go refuses also in a comment' }
  const control = text.search(forbiddenCharacter)
  if (control !== -1)
    yield { reason: 'a control character, which client-go refuses', line: lineAt(text, control) }
  for (const { line, at } of prologueOf(text)) {
    if (line.startsWith('%') && !/^%YAML[ \t]+1\.1(?![\d.])|^%TAG[ \t]/.test(line))
      yield {
        reason: 'a directive that client-go refuses: it supports only %YAML 1.1',
        line: lineAt(text, at),
      }
  }
}

/** The lines before the content: blank ones, comments and directives. */
function* prologueOf(text: string): Generator<{ readonly line: string; readonly at: number }> {
  for (let at = text.startsWith('\ufeff') ? 1 : 0; at < text.length; ) {
    const newline = text.indexOf('\n', at)
    const end = newline === -1 ? text.length : newline
    const line = text.slice(at, end)
    if (!/^(?:%|[ \t]*(?:#|\r?$))/.test(line)) return
    yield { line, at }
    at = end + 1
  }
}

/** Content that other readers accept, but go-yaml or its conversion to JSON rejects. */
function* nodeDefects(node: Node, text: string): Generator<DocumentDefect> {
  if (node.kind === 'scalar') {
    const written = text.slice(...node.range)
    const isNoJson = node.type === 'number' && /^[-+]?\.[iInN]/.test(written)
    const reason = isNoJson
      ? 'a number that JSON does not have, which client-go refuses'
      : escapeFault(written)
    if (reason !== undefined) yield { reason, line: lineAt(text, node.range[0]) }
  } else if (node.kind === 'list') {
    for (const item of node.items) yield* nodeDefects(item, text)
  } else {
    for (const { key, value } of node.entries.values()) {
      const written = text.slice(...key)
      const reason = keyFault(key, text) ?? escapeFault(written)
      if (reason !== undefined) yield { reason, line: lineAt(text, key[0]) }
      yield* nodeDefects(value, text)
    }
  }
}

/** libyaml recognizes a key only if its colon is on the same line, within 1024 characters. */
function keyFault([start, end]: Range, text: string): string | undefined {
  const written = text.slice(start, end)
  if (plainType(written) === 'null') return 'a key that is null, which client-go refuses'
  const after = text.slice(end, end + 200)
  const isFar = written.includes('\n') || written.length > 1024 || /^[ \t\r]*\n/.test(after)
  const isExplicit = /\?\s*$/.test(text.slice(Math.max(0, start - 20), start))
  return isFar && /^\s*:/.test(after) && !isExplicit
    ? 'a key without its colon on the same line, or with more than 1024 characters, which client-go refuses'
    : undefined
}

function escapeFault(written: string): string | undefined {
  const found = written.startsWith('"') ? badEscapeIn(written) : undefined
  return found && `the escape ${found}, which client-go refuses, in JSON too`
}

/** An escaped slash, or half of a surrogate pair, which libyaml does not accept as a character. */
function badEscapeIn(written: string): string | undefined {
  for (let at = written.indexOf('\\'); at !== -1; at = written.indexOf('\\', at + 2)) {
    const [found] = /^\\(?:\/|u[dD][89a-fA-F][\da-fA-F]{2})/.exec(written.slice(at, at + 6)) ?? []
    if (found !== undefined) return found
  }
  return undefined
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}

/** Returns the text up to the end of the first document. The rest is ignored, whatever it contains. */
function firstDocument(text: string): string {
  const last = [...prologueOf(text)].at(-1)
  const contentAt = last === undefined ? (text.startsWith('\ufeff') ? 1 : 0) : last.at + last.line.length + 1
  const isMarked = /^---(?:[ \t\r\n]|$)/.test(text.slice(contentAt, contentAt + 4))
  const start = isMarked ? contentAt + 3 : contentAt
  const mark = /^(?:---|\.\.\.)(?=[ \t\r\n]|$)/gm
  mark.lastIndex = start
  const document = text.slice(0, mark.exec(text)?.index)
  return document.slice(0, endOfFlow(document, start))
}

/** Returns the end of a document that is one {map} or [list]; the end of the text for other documents, or without an end. */
function endOfFlow(text: string, start: number): number {
  let at = start
  while (/\s/.test(text[at] ?? '')) at++
  if (text[at] !== '{' && text[at] !== '[') return text.length
  for (let depth = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '{' || character === '[') depth++
    else if ((character === '}' || character === ']') && --depth === 0) return at + 1
    else if (character === '"') at = closingQuote(text, at)
    else if (character === "'" && /[[{,:]\s*$/.test(text.slice(Math.max(0, at - 40), at)))
      at = text.indexOf("'", at + 1)
    else if (character === '#' && /\s/.test(text.charAt(at - 1))) at = text.indexOf('\n', at)
    if (at === -1) return text.length
  }
  return text.length
}

function closingQuote(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at < text.length ? at : -1
}
