import { globSync, readFileSync } from 'node:fs'
import { parseAst } from 'vitest/node'
import { avoidedIn } from './avoided-words.ts'

// Finds the words of scripts/avoided-words.ts in the program's output and in text generated from it: strings of src/, the pages
// that `npm run docs` writes, and descriptions in docs/schemas and package.json. scripts/prose.ts refuses them.

const generatedPages = ['docs/commands/*.md', 'docs/errors.md', 'docs/problems.md', 'docs/refusals.md']
const described = ['docs/schemas/*.json', 'package.json']

interface AstNode {
  readonly type: string
  readonly start: number
  readonly [member: string]: unknown
}

/** Returns "file:line: word (write …)" for every avoided word in the strings of a TypeScript source. */
export function avoidedInSource(file: string, source: string): string[] {
  return stringsIn(parseAst(source, { lang: 'ts' }) as unknown as AstNode).flatMap(({ start, text }) =>
    avoidedIn(text).map(({ text: word, instead }) => lineOf(file, source, start, word, instead)),
  )
}

/** Returns the avoided words in the descriptions in JSON, at any depth. */
export function avoidedInDescriptions(file: string, json: string): string[] {
  return descriptionsIn(JSON.parse(json)).flatMap((text) =>
    avoidedIn(text).map(({ text: word, instead }) =>
      lineOf(file, json, json.indexOf(JSON.stringify(text)), word, instead),
    ),
  )
}

/** Returns the avoided words in a generated page. Code in it has its source elsewhere. */
function avoidedInPage(file: string, markdown: string): string[] {
  return markdown
    .replaceAll(/^```[\s\S]*?^```$|`[^`\n]+`/gm, (code) => code.replaceAll(/[^\n]/g, ''))
    .split('\n')
    .flatMap((line, index) =>
      avoidedIn(line).map(({ text, instead }) => `${file}:${index + 1}: "${text}": write ${instead}`),
    )
}

/** Returns every avoided word that users can see, by file. */
export function avoidedForUsers(): Map<string, string[]> {
  const sources = globSync('src/**/*.ts').filter((file) => !file.endsWith('.test.ts'))
  const readers = [
    { files: sources, read: avoidedInSource },
    { files: globSync(generatedPages), read: avoidedInPage },
    { files: globSync(described), read: avoidedInDescriptions },
  ]
  return new Map(
    readers.flatMap(({ files, read }) =>
      files.sort().flatMap((file) => {
        const found = read(file, readFileSync(file, 'utf8'))
        return found.length === 0 ? [] : [[file, found] as const]
      }),
    ),
  )
}

// Values of the program and of its JSON, which keep their names: 'judged', './runner.ts'.
const identifier = /^[\w./@-]+$/

function stringsIn(node: AstNode): { start: number; text: string }[] {
  const own =
    node.type === 'Literal'
      ? node.value
      : node.type === 'TemplateElement'
        ? (node.value as { cooked?: string }).cooked
        : undefined
  const below = Object.values(node)
    .flat()
    .filter((part): part is AstNode => typeof (part as AstNode | null)?.type === 'string')
  return [
    ...(typeof own === 'string' && !identifier.test(own) ? [{ start: node.start, text: own }] : []),
    ...below.flatMap(stringsIn),
  ]
}

function descriptionsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    name === 'description' && typeof member === 'string' ? [member] : descriptionsIn(member),
  )
}

function lineOf(file: string, source: string, start: number, word: string, instead: string): string {
  const line = source.slice(0, source.indexOf(word, start)).split('\n').length
  return `${file}:${line}: "${word}": write ${instead}`
}
