/** Returns the note that a page is generated and must not be edited. */
export function generatedNote(source: string): string {
  return `<!-- Generated from ${source} by \`npm run docs\`; edit that instead. -->`
}

/** Returns a Markdown table. Bars inside cells are escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
