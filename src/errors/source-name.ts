/** Returns a file's name for a sentence: "-" is standard input. */
export function sourceName(path: string): string {
  return path === '-' ? 'standard input' : path
}
