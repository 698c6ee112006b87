/** Returns a word as a POSIX shell takes it, so that a command of a message can be pasted whatever its names are. */
export function shellWord(word: string): string {
  return /^[\w.,:=/@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
