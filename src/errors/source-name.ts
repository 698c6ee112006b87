/** Returns a file as a sentence names it: "-" is standard input. */
export function sourceName(path: string): string {
  return path === '-' ? 'standard input' : path
}
