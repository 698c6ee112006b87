import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { KcertError } from '../errors/kcert-error.ts'
import { type FileCalls, writeFileAtomically } from './atomic-file.ts'
import * as lasting from './lasting-changes.ts'
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

/** Returns the real calls. `before` receives the name of each call first, and can throw to make it fail. */
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

describe('writeFileAtomically, new file', () => {
  test('sets its mode under any umask, and leaves no other file in the folder', () => {
    const before = process.umask(0o077)
    writeFileAtomically(path, 'new', { mode: 0o644 })
    process.umask(before)
    expect([content(), mode(path), fs.readdirSync(folder)]).toEqual(['new', 0o644, ['metrics.prom']])
  })

  test('sets its mode before the first byte, under a name that begins with a dot', () => {
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

  test('syncs the content before the rename, and the folder before it returns', () => {
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

  test('accepts a name of the maximum length', () => {
    const long = join(folder, `${'証'.repeat(84)}abc`)
    writeFileAtomically(long, 'x', { mode: 0o644 })
    expect(fs.readFileSync(long, 'utf8')).toBe('x')
  })
})

describe('writeFileAtomically, existing file', () => {
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

  test('replaces the target of a symbolic link, and keeps the link', () => {
    const link = join(folder, 'link.prom')
    fs.writeFileSync(path, 'old')
    fs.symlinkSync('metrics.prom', link)
    writeFileAtomically(link, 'new', { mode: 0o644 })
    expect([content(), fs.readlinkSync(link)]).toEqual(['new', 'metrics.prom'])
  })

  test.skipIf(process.getuid?.() !== 0)(
    'follows no link of another user in a folder that all users can write to (skipped for users who cannot give links away)',
    () => {
      const shared = join(folder, 'shared')
      const link = join(shared, 'link.prom')
      fs.mkdirSync(shared)
      fs.writeFileSync(path, 'old')
      fs.symlinkSync('../metrics.prom', link)
      const write = () => writeFileAtomically(link, 'new', { mode: 0o644 })
      const written = (mode: number, ofLink: number, ofFolder: number): unknown => {
        fs.writeFileSync(path, 'old')
        fs.chmodSync(shared, mode)
        fs.lchownSync(link, ofLink, 0)
        fs.chownSync(shared, ofFolder, 0)
        try {
          write()
        } catch (error) {
          return (error as KcertError).message
        }
        return content()
      }
      const refused = `${link} is a symbolic link, which another user created in a folder that all users can write to`
      expect([written(0o1777, 65534, 0), content()]).toEqual([refused, 'old'])
      expect([written(0o777, 65534, 0), content()]).toEqual([refused, 'old'])
      expect(written(0o1777, 0, 0)).toBe('new')
      expect(written(0o1777, 65534, 65534)).toBe('new')
      expect(written(0o755, 65534, 0)).toBe('new')
    },
  )

  test.skipIf(process.getuid?.() !== 0)(
    'follows no such link behind another link, or in place of a folder (skipped for users who cannot give links away)',
    () => {
      const shared = join(folder, 'shared')
      const own = join(folder, 'own')
      fs.mkdirSync(shared)
      fs.chmodSync(shared, 0o1777)
      fs.writeFileSync(path, 'old')
      fs.symlinkSync('../metrics.prom', join(shared, 'out'))
      fs.symlinkSync('..', join(shared, 'dir'))
      fs.symlinkSync('shared/out', own)
      const write = (target: string, secret = false) => {
        writeFileAtomically(target, `to ${target}`, { mode: 0o644, secret })
        return content()
      }
      const inFolder = join(shared, 'dir', 'metrics.prom')
      expect([write(own), write(inFolder)]).toEqual([`to ${own}`, `to ${inFolder}`])
      const before = content()
      for (const name of ['out', 'dir']) fs.lchownSync(join(shared, name), 65534, 0)
      const refusal = (name: string) => ({
        code: 'KCERT_FILE_EXISTS',
        message: `${join(shared, name)} is a symbolic link, which another user created in a folder that all users can write to`,
      })
      expect(errorOf(() => write(own))).toMatchObject(refusal('out'))
      expect(errorOf(() => write(inFolder))).toMatchObject(refusal('dir'))
      expect(errorOf(() => write(join(shared, 'dir', 'new')))).toMatchObject(refusal('dir'))
      expect(errorOf(() => write(join(shared, 'dir', 'new.key'), true))).toMatchObject(refusal('dir'))
      expect([content(), fs.readdirSync(folder).toSorted()]).toEqual([
        before,
        ['metrics.prom', 'own', 'shared'],
      ])
    },
  )

  test('does not replace it when the write is exclusive, even if it appears just before the write', () => {
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

  test('refuses to replace a FIFO, a folder or a dangling link', () => {
    // Never use a real device here: as root, a defect would replace it for the whole machine.
    const fifo = join(folder, 'fifo')
    execFileSync('mkfifo', [fifo])
    fs.symlinkSync('nowhere', path)
    const errors = [fifo, folder, path].map((target) =>
      errorOf(() => writeFileAtomically(target, 'x', { mode: 0o644 })),
    )
    for (const { code } of errors) expect(code).toBe('KCERT_FILE_NOT_WRITTEN')
    expect(errors.map(({ why }) => why)).toEqual([
      'it exists and is not a regular file; replacing a folder, device or FIFO by a file would break it',
      'it exists and is not a regular file; replacing a folder, device or FIFO by a file would break it',
      expect.stringContaining('ENOENT'),
    ])
    expect(fs.lstatSync(fifo).isFIFO()).toBe(true)
  })
})

test('reports why a file cannot be written, and a fix', () => {
  const error = errorOf(() => writeFileAtomically(join(folder, 'none/x.prom'), 'x', { mode: 0o644 }))
  expect([error.code, error.exitCode]).toEqual(['KCERT_FILE_NOT_WRITTEN', 4])
  expect(error.message).toBe(`${folder}/none/x.prom could not be written and is unchanged`)
  expect([error.why, error.next]).toEqual([
    `the folder ${folder}/none does not exist`,
    `mkdir -p ${folder}/none`,
  ])
  // A folder cannot be created below a file.
  fs.writeFileSync(path, '')
  const below = errorOf(() => writeFileAtomically(join(path, 'folder/x.prom'), 'x', { mode: 0o644 }))
  expect([below.why, below.next]).toEqual([
    expect.stringContaining('ENOTDIR'),
    `ls -ld ${path}/folder; df ${path}/folder`,
  ])
  const full = callsWith((name) => {
    if (name !== 'writeSync') return
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  })
  const other = errorOf(() => writeFileAtomically(join(folder, 'y.prom'), 'x', { mode: 0o644 }, full))
  expect(other.why).toMatch(/^ENOSPC/)
  expect(other.next).toContain(`df ${folder}`)
})

describe('writeFileAtomically, failures', () => {
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
    'leaves the old or the new content, and no other file, after any error of any call (exclusive: %s)',
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
          else if (reported.message.includes('unchanged'))
            expect(now, where).toBe(exclusive ? undefined : old)
          else expect(now, where).toBe(fresh)
          // A failing close leaves the descriptor open in this test.
          fs.rmSync(path, { force: true })
          // The temporary file remains only where its removal is the call that fails.
          const left = fs.readdirSync(folder)
          expect(left, where).toHaveLength(names[at] === 'unlinkSync' ? 1 : 0)
          for (const name of left) fs.unlinkSync(join(folder, name))
        }
      }
    },
  )

  test('leaves the old or the new content, and at most a temporary file with the right mode, after a crash at any call', () => {
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
        // Every later call fails too, so no cleanup runs, as after SIGKILL.
      }
      expect([old, fresh], `stopped before ${names[at]}`).toContain(content())
      for (const name of fs.readdirSync(folder).filter((name) => name !== 'metrics.prom')) {
        expect(isTemporaryName(name)).toBe(true)
        expect(mode(join(folder, name))).toBe(0o600)
        fs.unlinkSync(join(folder, name))
      }
    }
  })

  test('continues short writes', () => {
    const stingy = callsWith((name, args) => {
      if (name !== 'writeSync') return undefined
      const [descriptor, bytes, from, , position] = args as [number, Uint8Array, number, number, number]
      return fs.writeSync(descriptor, bytes, from, 1, position)
    })
    writeFileAtomically(path, fresh, { mode: 0o644 }, stingy)
    expect(content()).toBe(fresh)
  })

  test('does not put a file in place whose content differs from the bytes written', () => {
    fs.writeFileSync(path, old)
    const lying = callsWith((name, args) => {
      if (name !== 'writeSync') return undefined
      const [descriptor, bytes, from, length, position] = args as [number, Uint8Array, number, number, number]
      return fs.writeSync(descriptor, Buffer.alloc(bytes.length), from, length, position)
    })
    expect(errorOf(() => writeFileAtomically(path, fresh, { mode: 0o644 }, lying)).why).toBe(
      'the file does not contain the bytes that were written',
    )
    expect([content(), fs.readdirSync(folder)]).toEqual([old, ['metrics.prom']])
  })

  test('does not report the file as unchanged when syncing the folder fails', () => {
    let syncs = 0
    const failing = callsWith((name) => {
      if (name === 'fsyncSync' && ++syncs === 2) throw failure('EIO')
    })
    const error = errorOf(() => writeFileAtomically(path, fresh, { mode: 0o644 }, failing))
    expect(error.message).toBe(`${path} has its new content, but may lose it in a power failure`)
    expect(content()).toBe(fresh)
  })
})

describe('writeFileAtomically, private key', () => {
  test('is not written through a symbolic link', () => {
    const link = join(folder, 'link.key')
    fs.writeFileSync(path, 'old')
    fs.symlinkSync('metrics.prom', link)
    expect(errorOf(() => writeFileAtomically(link, 'key', { mode: 0o600, secret: true }))).toMatchObject({
      code: 'KCERT_FILE_EXISTS',
      message: `${link} is a symbolic link, and a private key is not written through it`,
      why: 'the owner of the link controls which file is written',
      fix: 'give the path of the target file, or remove the link',
    })
    expect(content()).toBe('old')
  })

  test('sets its own mode instead of the mode of the old file, and can be written again', () => {
    fs.writeFileSync(path, 'old', { mode: 0o644 })
    writeFileAtomically(path, 'key', { mode: 0o600, secret: true })
    expect([content(), mode(path)]).toEqual(['key', 0o600])
  })
})

test('writes bytes unchanged', () => {
  const bytes = Buffer.from([0, 255, 10, 128])
  const calls = callsWith((name, args) => {
    if (name === 'writeSync') expect(args[1]).toBe(bytes)
  })
  writeFileAtomically(path, bytes, { mode: 0o600 }, calls)
  expect(fs.readFileSync(path)).toEqual(bytes)
})

test('an exclusive write refuses an existing file before it writes anything, and reports a fix', () => {
  fs.writeFileSync(path, 'old')
  const names: string[] = []
  const calls = callsWith((name) => void names.push(name))
  expect(
    errorOf(() => writeFileAtomically(path, 'new', { mode: 0o600, exclusive: true }, calls)),
  ).toMatchObject({
    message: `${path} exists and is not replaced`,
    why: 'it may be the only copy',
    fix: 'name another file, or move this one away',
  })
  expect(names).toEqual(['lstatSync', 'lstatSync'])
})

test.each([
  ['metrics.prom', 1],
  ['.metrics.prom.0123456789abcdef.kcert-tmp', 0],
])('a write of %s is recorded as %i lasting changes', (name, changes) => {
  const notes: string[] = []
  const noted = vi.spyOn(lasting, 'noteChange').mockImplementation((what) => void notes.push(what))
  onTestFinished(() => void noted.mockRestore())
  writeFileAtomically(join(folder, name), 'x', { mode: 0o600 })
  expect(notes).toEqual(changes === 0 ? [] : [`${join(folder, name)} is written`])
})

test.each([
  ['the same owner and group', 0, 0, []],
  ['another owner', 1, 0, [[1, 0]]],
  ['another group', 0, 1, [[0, 1]]],
  ['another owner and group', 1, 1, [[1, 1]]],
])('sets the owner of a file that replaces one of %s only where needed', (_, byUid, byGid, given) => {
  fs.writeFileSync(path, 'old')
  const { uid, gid } = fs.statSync(path)
  const chowned: number[][] = []
  const calls = callsWith((name, args) => {
    // lstat reports the owner of the old file.
    if (name === 'lstatSync') {
      const stats = fs.lstatSync(args[0] as string)
      return Object.assign(stats, { uid: uid + byUid, gid: gid + byGid })
    }
    if (name !== 'fchownSync') return undefined
    chowned.push([(args[1] as number) - uid, (args[2] as number) - gid])
    return true
  })
  writeFileAtomically(path, 'new', { mode: 0o644 }, calls)
  expect(chowned).toEqual(given)
})

test('never writes more bytes than are left, and fails when the system writes none', () => {
  const bytes = Buffer.from('abc')
  const asked: unknown[] = []
  const calls = callsWith((name, args) => {
    if (name !== 'writeSync') return undefined
    asked.push(args.slice(2))
    return fs.writeSync(args[0] as number, args[1] as Uint8Array, args[2] as number, 1, args[4] as number)
  })
  writeFileAtomically(path, bytes, { mode: 0o644 }, calls)
  expect(asked).toEqual([
    [0, 3, 0],
    [1, 2, 1],
    [2, 1, 2],
  ])
  let attempts = 0
  const stuck = callsWith((name) => {
    if (name !== 'writeSync') return undefined
    if (++attempts > 3) throw new Error('it does not give up')
    return 0
  })
  expect(errorOf(() => writeFileAtomically(path, 'new', { mode: 0o644 }, stuck)).why).toBe(
    'the system accepts no more bytes',
  )
})

test.each([
  ['as it was written, one byte at a time', 'abc', 1, undefined],
  ['shorter', 'ab', 64, 'the file does not contain the bytes that were written'],
  ['longer', 'abcd', 64, 'the file does not contain the bytes that were written'],
  ['much longer, one byte at a time', 'abcdefgh', 1, 'the file does not contain the bytes that were written'],
  ['other', 'abd', 64, 'the file does not contain the bytes that were written'],
])('checks content that is read back %s', (_, found, atOnce, why) => {
  let reads = 0
  const calls = callsWith((name, args) => {
    if (name !== 'readSync') return undefined
    if (++reads > 10) throw new Error('it reads without end')
    const [, into, at, length, from] = args as [number, Buffer, number, number, number]
    return Buffer.from(found).copy(into, at, from, from + Math.min(length, atOnce))
  })
  const write = () => writeFileAtomically(path, 'abc', { mode: 0o644 }, calls)
  if (why === undefined) write()
  else expect(errorOf(write).why).toBe(why)
  // The reader requests one byte more than was written. A read that fills this request is the last.
  expect(reads).toBe(atOnce === 1 ? 4 : found.length === 4 ? 1 : 2)
})

test('closes every descriptor that it opened', () => {
  const open = new Set<unknown>()
  const calls = callsWith((name, args) => {
    if (name === 'closeSync') open.delete(args[0])
    if (name !== 'openSync') return undefined
    const descriptor = fs.openSync(args[0] as string, args[1] as number, args[2] as number)
    open.add(descriptor)
    return descriptor
  })
  writeFileAtomically(path, 'x', { mode: 0o644 }, calls)
  expect(open.size).toBe(0)
})

test.each([
  ['EINVAL', undefined],
  ['ENOTSUP', undefined],
  ['ENOSYS', undefined],
  ['EACCES', undefined],
  [
    'EIO',
    'the folder could not be synced to disk: EIO: told to fail; check the disk, then run the command again',
  ],
  [
    undefined,
    'the folder could not be synced to disk: undefined: told to fail; check the disk, then run the command again',
  ],
])('handles the error %s of fsync on a folder', (code, why) => {
  let syncs = 0
  const calls = callsWith((name) => {
    if (name === 'fsyncSync' && ++syncs === 2) throw failure(code as string)
  })
  const write = () => writeFileAtomically(path, 'x', { mode: 0o644 }, calls)
  if (why === undefined) write()
  else
    expect(errorOf(write)).toMatchObject({
      code: 'KCERT_FILE_NOT_WRITTEN',
      why,
      next: 'dmesg',
    })
  expect(content()).toBe('x')
})
