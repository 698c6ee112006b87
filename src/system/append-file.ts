import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { notWritten, syncFolder } from './atomic-file.ts'
import { noteChange } from './lasting-changes.ts'
import { fileIfThere } from './required-file.ts'

// A journal of years has some MiB, an issuance log 200 bytes for each certificate.
const largestLogBytes = 512 * 1024 * 1024

/** A file that grows at its end. The user of this object holds the file's lock. */
export class AppendFile {
  readonly name: string

  constructor(path: string) {
    this.name = path
  }

  /** All bytes; none when the file does not exist. Throws KCERT_FILE_UNREADABLE or KCERT_FILE_TOO_LARGE. */
  read(): Uint8Array {
    return fileIfThere(this.name, largestLogBytes) ?? new Uint8Array()
  }

  /** Appends bytes and returns once they are on the disk: all of them, or none and KCERT_FILE_NOT_WRITTEN. */
  append(bytes: Uint8Array): void {
    let isNew = false
    this.write(fs.constants.O_WRONLY | fs.constants.O_CREAT, (descriptor) => {
      const { size } = fs.fstatSync(descriptor)
      // An empty one is what a process has left that ended before its folder was durable.
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
      throw notWritten(this.name, error)
    }
  }

  private withFile(flags: number, act: (descriptor: number) => void): void {
    // Without O_NONBLOCK a FIFO in the file's place would wait for its other end.
    const descriptor = fs.openSync(this.name, flags | fs.constants.O_NONBLOCK, 0o600)
    try {
      if (!fs.fstatSync(descriptor).isFile()) throw new Error('it is not a regular file')
      act(descriptor)
    } finally {
      fs.closeSync(descriptor)
    }
  }
}
