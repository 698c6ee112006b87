import type { Context } from '../../cli/context.ts'
import { readInput } from '../../cli/input.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { largestFileBytes } from '../../system/files.ts'
import { readWhole } from '../../system/pipes.ts'

/** A text to explain, and its source: a file, "-", or "argument". */
export interface ErrorText {
  readonly text: string
  readonly source: string
}

const oneFile = (source: string): string =>
  commandLine`a log can be searched first: grep -iE "x509|tls|ssl|certificate|unauthorized" ${source === 'standard input' ? 'FILE' : source} | kcert explain-error -`

/**
 * Returns the text that the operands select: "-" (or none, in a pipe) is standard input, a single word that names a file is that
 * file, and everything else is the text itself. On a terminal it reads pasted text until Ctrl-D.
 */
export async function readErrorText(
  operands: readonly string[],
  context: Context,
  notice: (text: string) => void,
): Promise<ErrorText> {
  const [only] = operands
  if (only === undefined || (only === '-' && operands.length === 1)) {
    if (!context.stdinIsTerminal) return decoded(await readLog('-', context), '-')
    notice('paste the error, then press Enter and Ctrl-D\n')
    const bytes = await readWhole(context.stdin as AsyncIterable<Buffer>)
    if (bytes === undefined) throw tooLong('standard input')
    return decoded(bytes, '-')
  }
  if (operands.length === 1 && !/\s/.test(only)) {
    try {
      return decoded(await readLog(only, context), only)
    } catch (error) {
      const isNoFile = error instanceof KcertError && error.code === 'KCERT_FILE_NOT_FOUND'
      if (!isNoFile || /^[~./]|\.(?:log|txt)$/.test(only)) throw error
    }
  }
  return checked(operands.join(' '), 'argument')
}

/** The usual advice for large files is to split certificates, which does not apply to logs. */
async function readLog(name: string, context: Context): Promise<Uint8Array> {
  try {
    return await readInput(name, context)
  } catch (error) {
    const isTooLarge = error instanceof KcertError && error.code === 'KCERT_FILE_TOO_LARGE'
    throw isTooLarge ? tooLong(name === '-' ? 'standard input' : name) : error
  }
}

function decoded(bytes: Uint8Array, source: string): ErrorText {
  // The byte order mark of PowerShell and some editors.
  const mark = (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0)
  const encoding = mark === 0xfffe ? 'utf-16le' : mark === 0xfeff ? 'utf-16be' : 'utf-8'
  return checked(new TextDecoder(encoding).decode(bytes), source)
}

function checked(text: string, source: string): ErrorText {
  if (text.trim() !== '') return { text, source }
  throw new KcertError('KCERT_USAGE', 'there is no text to explain', {
    why: source === '-' ? 'standard input was empty' : `${source} is empty`,
    next: 'kubectl get nodes 2>&1 | kcert explain-error -',
  })
}

function tooLong(source: string): KcertError {
  return new KcertError('KCERT_FILE_TOO_LARGE', `${source} is longer than ${largestFileBytes >> 20} MiB`, {
    why: 'it is read as one error text',
    next: oneFile(source),
  })
}
