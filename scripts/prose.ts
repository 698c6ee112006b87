import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { avoidedIn } from './avoided-words.ts'
import { avoidedForUsers } from './source-words.ts'

// Refuses the words of scripts/avoided-words.ts and broken links in hand-written Markdown, and long sentences in README.md and
// the guides. Code, quoted output and generated parts are not prose: they come from the program or from another source. Refuses
// the same words in the user-visible text of the program (scripts/source-words.ts). scripts/avoided-words-left.json has the
// number of exceptions of each file. `node scripts/prose.ts --lower` lowers these numbers.

const pages = ['*.md', 'docs/*.md', 'docs/guides/*.md', 'docs/decisions/*.md']
const longestSentence = 25
const longestReadme = 150

/** Returns the text of a page with all non-prose parts blanked. Line numbers stay the same. */
export function proseOf(markdown: string): string {
  return withoutCode(onlyUnreleased(markdown))
    .replaceAll(/`[^`\n]+`/g, 'CODE')
    .replaceAll(/\]\([^)\n]*\)/g, ']')
    .replaceAll(/"[^"\n]*"/g, 'QUOTED')
}

const generated =
  /<!-- table [^\n]*-->[\s\S]*?<!-- end -->|<!-- ([a-z-]+) -->[\s\S]*?<!-- \/\1 -->|<!-- tables: written[\s\S]*$/g
const code = /^ *```[\s\S]*?^ *```$|(?<=\n\n)(?: {4}[^\n]*\n+)+|<!--[\s\S]*?-->/gm

function withoutCode(markdown: string): string {
  const blank = (text: string): string => text.replaceAll(/[^\n]/g, '')
  return markdown.replaceAll(generated, blank).replaceAll(code, blank)
}

/** The changelog of past releases keeps its words. */
function onlyUnreleased(markdown: string): string {
  return /^# Changelog\n/.test(markdown) ? markdown.replace(/^## \[\d[\s\S]*/m, '') : markdown
}

/** Returns "file:line: word (write …)" for every avoided word of a page. */
export function avoidedWordsOf(file: string, markdown: string): string[] {
  return proseOf(markdown)
    .split('\n')
    .flatMap((line, index) =>
      avoidedIn(line).map(({ text, instead }) => `${file}:${index + 1}: "${text}": write ${instead}`),
    )
}

/** Returns the sentences of a page that have too many words. A command counts as one word. */
export function longSentencesOf(file: string, markdown: string, limit = longestSentence): string[] {
  return proseOf(markdown)
    .split(/\n(?=\s*(?:[-*|#]|\d+\.) )|\n{2,}|(?<=\|) /)
    .flatMap((block) => block.replaceAll(/\s+/g, ' ').split(/(?<=[.!?][)*]*)(?<!\be\.g\.) /))
    .map((sentence) => ({ sentence, words: sentence.split(' ').filter((word) => /\w/.test(word)).length }))
    .filter(({ words }) => words > limit)
    .map(({ sentence, words }) => `${file}: ${words} words: ${sentence.trim()}`)
}

/** Returns the links of a page to files and headings that do not exist. */
export function brokenLinksOf(file: string, markdown: string): string[] {
  const links = withoutCode(markdown)
    .replaceAll(/`[^`\n]+`/g, '')
    .matchAll(/\]\(([^)\s]+)\)/g)
  return [...links].flatMap(([, target = '']) => {
    if (/^[a-z]+:/.test(target)) return []
    const [path = '', anchor] = target.split('#')
    const page = normalize(join(dirname(file), path))
    if (path !== '' && !existsSync(page)) return [`${file}: no file for the link ${target}`]
    if (anchor === undefined) return []
    const anchors = anchorsOf(path === '' ? markdown : readFileSync(page, 'utf8'))
    return anchors.includes(anchor) ? [] : [`${file}: no heading for the link ${target}`]
  })
}

/** Returns the anchors that GitHub gives to the headings of a page. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

function isHandWritten(markdown: string): boolean {
  return !markdown.includes('<!-- Generated from ')
}

const leftFile = 'scripts/avoided-words-left.json'

/** File → the number of avoided words that it may still have. */
type Left = Readonly<Record<string, number>>

/** Returns the user-visible words of files that exceed their number of exceptions. */
export function beyond(left: Left, found: ReadonlyMap<string, readonly string[]>): string[] {
  return [...found].flatMap(([file, words]) => (words.length > (left[file] ?? 0) ? words : []))
}

/** Returns the lowered numbers. No number increases. */
export function lowered(left: Left, found: ReadonlyMap<string, readonly string[]>): Left {
  return Object.fromEntries(
    Object.entries(left).flatMap(([file, count]) => {
      const now = Math.min(count, found.get(file)?.length ?? 0)
      return now === 0 ? [] : [[file, now]]
    }),
  )
}

if (import.meta.main) {
  const ofUsers = avoidedForUsers()
  const left = JSON.parse(readFileSync(leftFile, 'utf8')) as Left
  if (process.argv.includes('--lower'))
    writeFileSync(leftFile, `${JSON.stringify(lowered(left, ofUsers), undefined, 2)}\n`)
  const ofPages = globSync(pages).flatMap((file) => {
    const markdown = readFileSync(file, 'utf8')
    if (!isHandWritten(markdown)) return []
    const lines = markdown.split('\n').length - 1
    return [
      ...avoidedWordsOf(file, markdown),
      ...brokenLinksOf(file, markdown),
      ...(/^README|^docs\/guides\//.test(file) ? longSentencesOf(file, markdown) : []),
      ...(file === 'README.md' && lines > longestReadme
        ? [`${file}: ${lines} lines, more than ${longestReadme}`]
        : []),
    ]
  })
  const found = [...ofPages, ...beyond(left, ofUsers)]
  process.stdout.write(found.map((line) => `${line}\n`).join(''))
  if (found.length > 0) {
    process.stdout.write(`${found.length} places to rewrite\n`)
    process.exitCode = 1
  }
}
