import { resolve } from 'node:path'
import { orUndefined } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { KcertError, messageOf } from '../errors/kcert-error.ts'
import { sourceName } from '../errors/source-name.ts'
import type { Source, UnreadableSource } from '../inspection/source.ts'
import { tooLargeDetail } from '../system/files.ts'
import { descriptorBytes, isFifo, readDescriptor, readFifo, readWhole } from '../system/pipes.ts'
import { fileError, requiredFile } from '../system/required-file.ts'
import { checkTrusted, readTrustedFile, type TrustedKind } from '../system/trusted-file.ts'
import type { Context } from './context.ts'
import { tellLine } from './tell-line.ts'

/**
 * Returns the content of a file or a pipe: "-" and /dev/stdin for standard input, /dev/fd/N for the shell's `<(command)`. Throws
 * KCERT_FILE_NOT_FOUND, KCERT_FILE_UNREADABLE or KCERT_FILE_TOO_LARGE; FIFOs and devices are never opened.
 */
export async function readInput(name: string, context: Context): Promise<Uint8Array> {
  const descriptor = descriptorOf(name)
  if (descriptor === undefined) return requiredFile(name)
  if (descriptor === 0) checkTerminal(context)
  const read = await readPipe(name, descriptor, context)
  if ('reason' in read) throw fileError({ ...read, name: descriptor === 0 ? 'standard input' : name })
  return read.bytes
}

/** Returns the same as text. */
export async function readText(name: string, context: Context): Promise<string> {
  return Buffer.from(await readInput(name, context)).toString('utf8')
}

/**
 * Returns the bytes of a descriptor that an operand names, for input of any size. Throws KCERT_USAGE for a terminal, and
 * KCERT_FILE_UNREADABLE if it is neither a pipe nor a file.
 */
export function descriptorStream(descriptor: number, context: Context): AsyncIterable<Buffer> {
  if (descriptor === 0) {
    checkTerminal(context)
    return context.stdin as AsyncIterable<Buffer>
  }
  const bytes = orUndefined(() => descriptorBytes(descriptor))
  if (bytes !== undefined) return bytes
  throw new KcertError(
    'KCERT_FILE_UNREADABLE',
    `descriptor ${descriptor} is not open, or is no pipe and no file`,
  )
}

/**
 * Returns the text of a file whose contents decide what kcert runs, approves or signs. All such files are read with this
 * function. Pipes belong to the caller. Throws KCERT_FILE_UNTRUSTED when other users can change the file, and as `readInput`.
 * `limitBytes` applies to files.
 */
export async function readTrustedText(
  kind: TrustedKind,
  name: string,
  context: Context,
  limitBytes?: number,
): Promise<string> {
  const descriptor = descriptorOf(name)
  if (descriptor !== undefined) {
    checkTrusted(kind, descriptor === 0 ? 'standard input' : name, descriptor)
    return readText(name, context)
  }
  const read = readTrustedFile(kind, resolve(context.workingFolder, name), limitBytes)
  if ('reason' in read) throw fileError({ ...read, name })
  return Buffer.from(read.bytes).toString('utf8')
}

/** Returns the inherited descriptor that an operand names; undefined for a file. */
export function descriptorOf(name: string): number | undefined {
  if (name === '-' || name === '/dev/stdin') return 0
  const [, digits] = /^\/(?:dev|proc\/self)\/fd\/(\d{1,9})$/.exec(name) ?? []
  return digits === undefined ? undefined : Number(digits)
}

const noticeAfterMs = 3_000

/** Returns the content of a descriptor. If it takes a while, standard error shows that kcert waits for it. Never throws. */
export async function readPipe(
  name: string,
  descriptor: number,
  context: Pick<Context, 'stdin' | 'stderr'>,
): Promise<Source | UnreadableSource> {
  const words = descriptor === 0 ? 'standard input' : name
  return noticingWait(words, context, async () => {
    if (descriptor !== 0) return readDescriptor(name, descriptor)
    try {
      const bytes = await readWhole(context.stdin as AsyncIterable<Buffer>)
      return bytes ? { name, bytes } : { name, reason: 'too-large', detail: tooLargeDetail }
    } catch (error) {
      return { name, reason: 'io', detail: messageOf(error) }
    }
  })
}

async function noticingWait<Result>(
  words: string,
  { stderr }: Pick<Context, 'stderr'>,
  read: () => Promise<Result>,
): Promise<Result> {
  const notice = setTimeout(() => tellLine(stderr, `kcert: waiting for the end of ${words}`), noticeAfterMs)
  try {
    return await read()
  } finally {
    clearTimeout(notice)
  }
}

/** Returns the first line of a password file, or undefined if none is named. Throws KCERT_USAGE if that line is empty. */
export async function readPassword(name: string | undefined, context: Context): Promise<string | undefined> {
  if (name === undefined) return undefined
  const text = await readSecretText(name, context)
  const [password = ''] = text.replace(/^\ufeff/, '').split(/\r?\n/, 1)
  if (password !== '') return password
  throw new KcertError('KCERT_USAGE', `the first line of the password file ${sourceName(name)} is empty`, {
    why: 'the password is the first line, and must not be empty',
  })
}

// Long enough for a password manager that prompts its user.
const patienceMs = 30_000

/** Returns a secret as text, from a file, a FIFO, a pipe of the shell, or standard input ("-"). */
export async function readSecretText(name: string, context: Context): Promise<string> {
  return Buffer.from(await readSecret(name, context)).toString('utf8')
}

/**
 * Reads a password from a file, a pipe such as bash's `<(command)`, or a FIFO; with the latter two it is never stored in a file.
 */
async function readSecret(name: string, context: Context): Promise<Uint8Array> {
  if (descriptorOf(name) !== undefined || !isFifo(name)) return readInput(name, context)
  const bytes = await noticingWait(name, context, () => readFifo(name, patienceMs))
  if (bytes.length > 0) return bytes
  throw new KcertError('KCERT_FILE_UNREADABLE', `${name} cannot be read`, {
    why: `it is a FIFO, and nothing was written to it within ${patienceMs / 1000} s`,
    next: commandLine`ls -l ${name}`,
  })
}

const passwordWhere = 'the password is the first line of the password file'

/** Returns the result of `read`; its errors name the file. */
export function inFile<Result>(path: string, read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    const { code, message, why, fix, next } = error
    const isWrongPassword = code === 'KCERT_PASSWORD_WRONG'
    throw new KcertError(code, `${sourceName(path)}: ${message}`, {
      ...given({
        why: why ?? (isWrongPassword ? passwordWhere : undefined),
        fix,
        next: next ?? (isWrongPassword ? undefined : commandLine`kcert inspect ${path}`),
      }),
      cause: error,
    })
  }
}

function checkTerminal({ stdinIsTerminal }: Context): void {
  if (!stdinIsTerminal) return
  throw new KcertError('KCERT_USAGE', 'standard input is a terminal and has no data', {
    why: '"-" reads from a pipe; give the path of a file instead, or redirect a file to standard input',
  })
}
