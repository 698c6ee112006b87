import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { KcertError } from '../errors/kcert-error.ts'
import { syncFolder } from './atomic-file.ts'
import { noteChange } from './lasting-changes.ts'

/** A file that grows at its end. Whoever uses it holds its lock. */
export class AppendFile {
  readonly name: string

  constructor(path: string) {
    this.name = path
  }

  /** All octets; none when the file does not exist. Throws KCERT_FILE_UNREADABLE. */
  read(): Uint8Array {
    try {
      return this.withFile(fs.constants.O_RDONLY, (descriptor) => fs.readFileSync(descriptor))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Uint8Array()
      throw this.unreadable(error as Error)
    }
  }

  /** Adds octets and returns once they are on the disk: all of them, or none and KCERT_FILE_NOT_WRITTEN. */
  append(octets: Uint8Array): void {
    let isNew = false
    this.write(fs.constants.O_WRONLY | fs.constants.O_CREAT, (descriptor) => {
      const { size } = fs.fstatSync(descriptor)
      // An empty one is what a process has left that ended before its folder was durable.
      isNew = size === 0
      try {
        for (let at = 0; at < octets.length; )
          at += fs.writeSync(descriptor, octets, at, octets.length - at, size + at)
        fs.fsyncSync(descriptor)
      } catch (error) {
        fs.ftruncateSync(descriptor, size)
        throw error
      }
    })
    if (isNew) syncFolder(this.name, dirname(this.name), fs)
    noteChange(`${this.name} has a new line`)
  }

  /** Cuts off what is behind this many octets. */
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
      throw new KcertError(
        'KCERT_FILE_NOT_WRITTEN',
        `${this.name} could not be written; what was there is untouched`,
        {
          why: (error as Error).message,
          next: `look at the folder and its space: ls -ld ${dirname(this.name)}; df ${dirname(this.name)}`,
          cause: error,
        },
      )
    }
  }

  private withFile<Result>(flags: number, act: (descriptor: number) => Result): Result {
    // Without O_NONBLOCK a FIFO in the file's place would wait for its other end.
    const descriptor = fs.openSync(this.name, flags | fs.constants.O_NONBLOCK, 0o600)
    try {
      if (!fs.fstatSync(descriptor).isFile()) throw new Error('it is not a regular file')
      return act(descriptor)
    } finally {
      fs.closeSync(descriptor)
    }
  }

  private unreadable(error: Error): KcertError {
    return new KcertError('KCERT_FILE_UNREADABLE', `${this.name} cannot be read`, {
      why: error.message,
      next: `ls -l ${this.name}`,
      cause: error,
    })
  }
}
