/** Returns sections of lines as one text, an empty line between them; those without lines leave no trace. */
export function joinSections(sections: readonly (readonly string[])[]): string {
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => `${lines.join('\n')}\n`)
    .join('\n')
}
