import { dirname } from 'node:path'
import { KcertError } from '../errors/kcert-error.ts'
import { sourceName } from '../errors/source-name.ts'
import type { UnreadableSource } from '../inspection/source.ts'
import {
  isFifo,
  largestFileBytes,
  readDescriptor,
  readFifo,
  readFile,
  tooLargeDetail,
  tooLargeNext,
} from '../system/files.ts'
import type { Context } from './context.ts'

/**
 * Returns what a file holds, or standard input for "-". Throws KCERT_FILE_NOT_FOUND, KCERT_FILE_UNREADABLE or
 * KCERT_FILE_TOO_LARGE; FIFOs and devices are never opened.
 */
export async function readInput(name: string, context: Context): Promise<Uint8Array> {
  if (name === '-') return readStandardInput(context)
  const read = readFile(name)
  if ('reason' in read) throw unreadable(read)
  return read.bytes
}

/** Returns the first line of a password file, or undefined where none is named. Throws KCERT_USAGE when that line is empty. */
export async function readPassword(name: string | undefined, context: Context): Promise<string | undefined> {
  if (name === undefined) return undefined
  const text = await readSecretText(name, context)
  const password = text.replace(/^\ufeff/, '').split(/\r?\n/, 1)[0]!
  if (password !== '') return password
  throw new KcertError('KCERT_USAGE', `the first line of the password file ${sourceName(name)} is empty`, {
    why: 'the password is the first line, and an empty one protects nothing',
    next: 'write the password into a file of mode 0600, and name that',
  })
}

// Long enough for a password manager that asks its owner.
const patienceMs = 30_000

/** Returns a secret as text, from a file, a FIFO, a pipe of the shell, or standard input ("-"). */
export async function readSecretText(name: string, context: Context): Promise<string> {
  return Buffer.from(await readSecret(name, context)).toString('utf8')
}

/** A password may come from a pipe, as bash's `<(command)` hands it over, or from a FIFO, so that it lies in no file. */
async function readSecret(name: string, context: Context): Promise<Uint8Array> {
  const descriptor = /^\/(?:dev|proc\/self)\/fd\/(\d{1,9})$/.exec(name)?.[1]
  if (descriptor !== undefined) {
    const read = readDescriptor(name, Number(descriptor))
    if ('reason' in read) throw unreadable(read)
    return read.bytes
  }
  return isFifo(name) ? readFifo(name, patienceMs) : readInput(name, context)
}

const wrongPasswordNext = 'name the file that has its password on the first line'

/** Returns what `read` returns; an error of it names the file. */
export function inFile<Result>(path: string, read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    const { code, message, why, next } = error
    throw new KcertError(code, `${sourceName(path)}: ${message}`, {
      ...(why === undefined ? {} : { why }),
      next: next ?? (code === 'KCERT_PASSWORD_WRONG' ? wrongPasswordNext : `kcert inspect ${path} says more`),
      cause: error,
    })
  }
}

async function readStandardInput({ stdin, stdinIsTerminal }: Context): Promise<Uint8Array> {
  if (stdinIsTerminal) {
    throw new KcertError('KCERT_USAGE', 'standard input is the terminal, and nothing was typed ahead', {
      why: '"-" reads what another command or a file hands over',
      next: 'name a file instead of "-", or put "< FILE" behind the command',
    })
  }
  const bytes = await readWhole(stdin)
  if (bytes === undefined) throw tooLarge('standard input')
  return bytes
}

/** Returns everything that a stream holds, or undefined when that is more than kcert reads of a file. */
export async function readWhole(stream: NodeJS.ReadStream): Promise<Uint8Array | undefined> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    total += chunk.length
    if (total > largestFileBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function unreadable({ name, reason, detail }: UnreadableSource): KcertError {
  if (reason === 'too-large') return tooLarge(name)
  if (reason === 'not-found') {
    return new KcertError('KCERT_FILE_NOT_FOUND', `${name} does not exist`, {
      next: `ls -l ${dirname(name)}`,
    })
  }
  return new KcertError('KCERT_FILE_UNREADABLE', `${name} cannot be read`, {
    why: detail,
    next: `ls -l ${dirname(name)}`,
  })
}

function tooLarge(name: string): KcertError {
  return new KcertError('KCERT_FILE_TOO_LARGE', `${name} ${tooLargeDetail}`, {
    why: 'it is read into memory',
    next: tooLargeNext,
  })
}
