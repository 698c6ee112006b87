import { hiddenCharacters } from './hidden-text.ts'

/** Returns a word as a shell takes it, so that a command of a message can be pasted whatever its names are. */
export function shellWord(word: string): string {
  if (/^[\w.,:=/@%+-]+$/.test(word)) return word
  return hidden().test(word) ? ansiQuoted(word) : `'${word.replaceAll("'", "'\\''")}'`
}

// Every character that the terminal output escapes (src/output/terminal.ts), which are marks in some places too: a command that
// is escaped after it was quoted names another file.
function hidden(): RegExp {
  return new RegExp(`\\p{M}|${hiddenCharacters().source}`, 'gu')
}

/** POSIX.1-2024 $'...', the one form of quotes that shows a control character. Octal, since \x has no fixed length. */
function ansiQuoted(word: string): string {
  const octal = (character: string) =>
    Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
  return `$'${word.replace(/['\\]/g, '\\$&').replace(hidden(), octal)}'`
}
