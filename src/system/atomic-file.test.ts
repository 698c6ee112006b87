import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { KcertError } from '../errors/kcert-error.ts'
import { type FileCalls, writeFileAtomically } from './atomic-file.ts'
import { isTemporaryName } from './leftovers.ts'

let folder: string
let path: string
beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), 'kcert-atomic-'))
  path = join(folder, 'metrics.prom')
})
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }))

const content = () => fs.readFileSync(path, 'utf8')
const mode = (of: string) => fs.statSync(of).mode & 0o7777

function errorOf(act: () => void): KcertError {
  try {
    act()
  } catch (error) {
    expect(error).toBeInstanceOf(KcertError)
    return error as KcertError
  }
  throw new Error('it went through')
}

/** The real calls, each told to `before` by its name, which may throw to make it fail. */
function callsWith(before: (name: keyof FileCalls, args: readonly unknown[]) => unknown): FileCalls {
  return new Proxy(fs as FileCalls, {
    get:
      (target, name: keyof FileCalls) =>
      (...args: unknown[]) =>
        before(name, args) ?? (target[name] as (...all: unknown[]) => unknown)(...args),
  })
}

function failure(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: told to fail`), { code })
}

describe('a new file', () => {
  test('has its mode whatever the umask, and nothing else is left in the folder', () => {
    const before = process.umask(0o077)
    writeFileAtomically(path, 'new', { mode: 0o644 })
    process.umask(before)
    expect([content(), mode(path), fs.readdirSync(folder)]).toEqual(['new', 0o644, ['metrics.prom']])
  })

  test('has its mode before its first byte, under a name that begins with a dot', () => {
    const seen: [string, number, number][] = []
    const calls = callsWith((name) => {
      if (name !== 'writeSync') return
      const [temporary = ''] = fs.readdirSync(folder)
      seen.push([temporary, mode(join(folder, temporary)), fs.statSync(join(folder, temporary)).size])
    })
    writeFileAtomically(path, 'key', { mode: 0o600 }, calls)
    expect(seen).toEqual([[expect.stringMatching(/^\.metrics\.prom\./), 0o600, 0]])
    expect(isTemporaryName(seen[0]![0])).toBe(true)
  })

  test('is on the disk before it has its name, and so is the name when the write returns', () => {
    const order: string[] = []
    writeFileAtomically(
      path,
      'new',
      { mode: 0o644 },
      callsWith((name) => void order.push(name)),
    )
    const durable = order.filter((name) =>
      ['writeSync', 'fsyncSync', 'readSync', 'renameSync'].includes(name),
    )
    expect(durable.filter((name, i) => name !== durable[i - 1])).toEqual([
      'writeSync',
      'fsyncSync',
      'readSync',
      'renameSync',
      'fsyncSync',
    ])
  })

  test('may have a name as long as names can be', () => {
    const long = join(folder, `${'証'.repeat(84)}abc`)
    writeFileAtomically(long, 'x', { mode: 0o644 })
    expect(fs.readFileSync(long, 'utf8')).toBe('x')
  })
})

describe('a file that is there', () => {
  test('keeps its mode', () => {
    fs.writeFileSync(path, 'old', { mode: 0o600 })
    writeFileAtomically(path, 'new', { mode: 0o644 })
    expect([content(), mode(path)]).toEqual(['new', 0o600])
  })

  test.skipIf(process.getuid?.() !== 0)(
    'keeps its owner (skipped for users who cannot give files away)',
    () => {
      fs.writeFileSync(path, 'old')
      fs.chownSync(path, 65534, 65534)
      writeFileAtomically(path, 'new', { mode: 0o644 })
      const { uid, gid } = fs.statSync(path)
      expect([uid, gid]).toEqual([65534, 65534])
    },
  )

  test('is replaced behind its link, and the link stays a link', () => {
    const link = join(folder, 'link.prom')
    fs.writeFileSync(path, 'old')
    fs.symlinkSync('metrics.prom', link)
    writeFileAtomically(link, 'new', { mode: 0o644 })
    expect([content(), fs.readlinkSync(link)]).toEqual(['new', 'metrics.prom'])
  })

  test('is not replaced when the write is exclusive, also when it appears at the last moment', () => {
    fs.writeFileSync(path, 'old')
    expect(errorOf(() => writeFileAtomically(path, 'new', { mode: 0o600, exclusive: true })).code).toBe(
      'KCERT_FILE_EXISTS',
    )
    fs.unlinkSync(path)
    const racing = callsWith((name) => {
      if (name === 'linkSync') fs.writeFileSync(path, 'theirs')
    })
    expect(
      errorOf(() => writeFileAtomically(path, 'new', { mode: 0o600, exclusive: true }, racing)).code,
    ).toBe('KCERT_FILE_EXISTS')
    expect([content(), fs.readdirSync(folder)]).toEqual(['theirs', ['metrics.prom']])
  })

  test('that is a device, a folder or a dangling link is refused, not replaced', () => {
    fs.symlinkSync('nowhere', path)
    for (const target of ['/dev/null', folder, path]) {
      expect(errorOf(() => writeFileAtomically(target, 'x', { mode: 0o644 })).code).toBe(
        'KCERT_FILE_NOT_WRITTEN',
      )
    }
    expect(fs.lstatSync('/dev/null').isCharacterDevice()).toBe(true)
  })
})

test('what cannot be written says why and what to do', () => {
  const error = errorOf(() => writeFileAtomically(join(folder, 'none/x.prom'), 'x', { mode: 0o644 }))
  expect([error.code, error.exitCode]).toEqual(['KCERT_FILE_NOT_WRITTEN', 4])
  expect(error.message).toBe(`${folder}/none/x.prom could not be written; what was there is untouched`)
  expect([error.why, error.next]).toEqual([`there is no folder ${folder}/none`, `mkdir -p ${folder}/none`])
  const full = callsWith((name) => {
    if (name !== 'writeSync') return
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  })
  const other = errorOf(() => writeFileAtomically(join(folder, 'y.prom'), 'x', { mode: 0o644 }, full))
  expect(other.why).toMatch(/^ENOSPC/)
  expect(other.next).toContain(`df ${folder}`)
})

describe('whatever fails', () => {
  const old = 'old content'
  const fresh = 'new content, which is longer'

  function callNames(exclusive: boolean): (keyof FileCalls)[] {
    const names: (keyof FileCalls)[] = []
    writeFileAtomically(
      path,
      fresh,
      { mode: 0o600, exclusive },
      callsWith((name) => void names.push(name)),
    )
    fs.unlinkSync(path)
    return names
  }

  test.each([false, true])(
    'at any call, by any error: old or new, never neither, nothing left over (exclusive: %s)',
    (exclusive) => {
      const names = callNames(exclusive)
      expect(names.length).toBeGreaterThan(10)
      for (const code of ['ENOSPC', 'EIO', 'EROFS', 'EACCES', 'EDQUOT']) {
        for (let at = 0; at < names.length; at++) {
          if (!exclusive) fs.writeFileSync(path, old)
          let call = 0
          const failing = callsWith(() => {
            if (call++ === at) throw failure(code)
          })
          let reported: KcertError | undefined
          try {
            writeFileAtomically(path, fresh, { mode: 0o600, exclusive }, failing)
          } catch (error) {
            reported = error as KcertError
          }
          const now = fs.existsSync(path) ? content() : undefined
          const where = `${code} at call ${at}, ${names[at]}: ${reported?.message ?? 'no error'}`
          if (reported === undefined) expect(now, where).toBe(fresh)
          else if (reported.message.includes('untouched'))
            expect(now, where).toBe(exclusive ? undefined : old)
          else expect(now, where).toBe(fresh)
          // A close that fails has not closed: the descriptor is the test's to lose.
          fs.rmSync(path, { force: true })
          // Only where removing is what fails does the temporary name stay behind.
          const left = fs.readdirSync(folder)
          expect(left, where).toHaveLength(names[at] === 'unlinkSync' ? 1 : 0)
          for (const name of left) fs.unlinkSync(join(folder, name))
        }
      }
    },
  )

  test('a stop after any call leaves the old content or the new, and at most a temporary file with the right mode', () => {
    const names = callNames(false)
    for (let at = 0; at <= names.length; at++) {
      fs.writeFileSync(path, old, { mode: 0o600 })
      let call = 0
      const stopping = callsWith(() => {
        if (call++ >= at) throw new Error('stopped')
      })
      try {
        writeFileAtomically(path, fresh, { mode: 0o644 }, stopping)
      } catch {
        // Every call from here on fails, so nothing is tidied up either: as after SIGKILL.
      }
      expect([old, fresh], `stopped before ${names[at]}`).toContain(content())
      for (const name of fs.readdirSync(folder).filter((name) => name !== 'metrics.prom')) {
        expect(isTemporaryName(name)).toBe(true)
        expect(mode(join(folder, name))).toBe(0o600)
        fs.unlinkSync(join(folder, name))
      }
    }
  })

  test('short writes go on where they stopped', () => {
    const stingy = callsWith((name, args) => {
      if (name !== 'writeSync') return undefined
      const [descriptor, bytes, from, , position] = args as [number, Uint8Array, number, number, number]
      return fs.writeSync(descriptor, bytes, from, 1, position)
    })
    writeFileAtomically(path, fresh, { mode: 0o644 }, stingy)
    expect(content()).toBe(fresh)
  })

  test('content that comes back otherwise than it was written is not put in place', () => {
    fs.writeFileSync(path, old)
    const lying = callsWith((name, args) => {
      if (name !== 'writeSync') return undefined
      const [descriptor, bytes, from, length, position] = args as [number, Uint8Array, number, number, number]
      return fs.writeSync(descriptor, Buffer.alloc(bytes.length), from, length, position)
    })
    expect(errorOf(() => writeFileAtomically(path, fresh, { mode: 0o644 }, lying)).why).toBe(
      'what was read back is not what was written',
    )
    expect([content(), fs.readdirSync(folder)]).toEqual([old, ['metrics.prom']])
  })

  test('in making the folder durable is not called untouched', () => {
    let syncs = 0
    const failing = callsWith((name) => {
      if (name === 'fsyncSync' && ++syncs === 2) throw failure('EIO')
    })
    const error = errorOf(() => writeFileAtomically(path, fresh, { mode: 0o644 }, failing))
    expect(error.message).toBe(`${path} has its new content, but may lose it in a power failure`)
    expect(content()).toBe(fresh)
  })
})
