// The text of a command's description, as in its class: paragraphs with lines of any length, tables of terms and their
// meanings, and code with an indentation of four spaces. --help and docs/commands are generated from it.

export type Block =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'table'; readonly rows: readonly (readonly [word: string, meaning: string])[] }
  | { readonly kind: 'code'; readonly lines: readonly string[] }

const row = /^ {0,2}(\S+(?: \S+)*) {2,}(\S.*)$/

/** Returns the blocks of a description in order. */
export function descriptionBlocks(description: string): Block[] {
  return description
    .split(/\n{2,}/)
    .filter((chunk) => chunk.trim() !== '')
    .map((chunk) => blockOf(chunk.split('\n')))
}

function blockOf(lines: readonly string[]): Block {
  if (lines.every((line) => line.startsWith('    ')))
    return { kind: 'code', lines: lines.map((line) => line.slice(4)) }
  if (!row.test(lines[0] ?? '')) return { kind: 'text', text: lines.map((line) => line.trim()).join(' ') }
  const rows: [string, string][] = []
  for (const line of lines) {
    const last = rows.at(-1)
    const [, word, meaning = ''] = row.exec(line) ?? []
    if (word !== undefined) rows.push([word, meaning])
    else if (last !== undefined) last[1] += ` ${line.trim()}`
  }
  return { kind: 'table', rows }
}
