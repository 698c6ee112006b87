import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { KcertError } from '../errors/kcert-error.ts'
import { linkTarget, notWritten, syncFolder } from './atomic-file.ts'
import { readFile } from './files.ts'
import { noteChange } from './lasting-changes.ts'
import { bytesIfThere } from './required-file.ts'
import { checkTrusted, readTrustedFile, type TrustedKind, trustedPath } from './trusted-file.ts'

// A journal of several years has a few MiB; an issuance log has 200 bytes per certificate.
const largestLogBytes = 512 * 1024 * 1024

/**
 * A file that grows only at its end. The caller holds the file's lock. With a kind, each use throws KCERT_FILE_UNTRUSTED when other
 * users can change the file: in a sticky folder, they can create it at any time.
 */
export class AppendFile {
  readonly name: string
  private readonly kind: TrustedKind | undefined

  constructor(path: string, kind?: TrustedKind) {
    this.name = path
    this.kind = kind
  }

  /** Returns all bytes; none when the file does not exist. Throws KCERT_FILE_UNREADABLE or KCERT_FILE_TOO_LARGE. */
  read(): Uint8Array {
    const read =
      this.kind === undefined
        ? readFile(this.name, largestLogBytes)
        : readTrustedFile(this.kind, this.name, largestLogBytes)
    return bytesIfThere(read) ?? new Uint8Array()
  }

  /** Appends all bytes and returns when they are on the disk. Otherwise throws KCERT_FILE_NOT_WRITTEN and appends none. */
  append(bytes: Uint8Array): void {
    let isNew = false
    this.write(fs.constants.O_WRONLY | fs.constants.O_CREAT, (descriptor) => {
      const { size } = fs.fstatSync(descriptor)
      // A process that crashed before its folder was durable leaves an empty file.
      isNew = size === 0
      try {
        for (let at = 0; at < bytes.length; )
          at += fs.writeSync(descriptor, bytes, at, bytes.length - at, size + at)
        fs.fsyncSync(descriptor)
      } catch (error) {
        fs.ftruncateSync(descriptor, size)
        throw error
      }
    })
    if (isNew) syncFolder(this.name, dirname(this.name), fs)
    noteChange(`${this.name} has a new line`)
  }

  /** Truncates the file to this many bytes. */
  cut(length: number): void {
    this.write(fs.constants.O_WRONLY, (descriptor) => {
      fs.ftruncateSync(descriptor, length)
      fs.fsyncSync(descriptor)
    })
  }

  private write(flags: number, act: (descriptor: number) => void): void {
    try {
      this.withFile(flags, act)
    } catch (error) {
      throw error instanceof KcertError ? error : notWritten(this.name, error)
    }
  }

  private withFile(flags: number, act: (descriptor: number) => void): void {
    // Without O_NONBLOCK, opening a FIFO would wait for its other end.
    const descriptor = this.open(flags | fs.constants.O_NONBLOCK)
    try {
      if (this.kind !== undefined) checkTrusted(this.kind, this.name, descriptor)
      if (!fs.fstatSync(descriptor).isFile()) throw new Error('it is not a regular file')
      act(descriptor)
    } finally {
      fs.closeSync(descriptor)
    }
  }

  private open(flags: number): number {
    const target = this.kind === undefined ? linkTarget(this.name) : trustedPath(this.kind, this.name)
    return fs.openSync(target, flags | fs.constants.O_NOFOLLOW, 0o600)
  }
}
