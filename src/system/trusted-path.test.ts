import { execFileSync } from 'node:child_process'
import nodeFs, * as fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { isTrusted, linkTrust, pathTrust, untrustedEntry } from './trusted-path.ts'

const isRoot = process.getuid?.() === 0
const stranger = 65534
const folders: string[] = []
let base: string
beforeEach(() => {
  base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'kcert-trust-')))
  folders.push(base)
})
afterAll(() => {
  for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true })
})

function made(path: string, { mode = 0o644, uid = 0, gid = 0 } = {}): string {
  const whole = join(base, path)
  fs.mkdirSync(join(whole, '..'), { recursive: true, mode: 0o755 })
  if (path.endsWith('/')) fs.mkdirSync(whole, { recursive: true })
  else fs.writeFileSync(whole, path)
  if (isRoot) fs.chownSync(whole, uid, gid)
  fs.chmodSync(whole, mode)
  return whole
}

function linked(path: string, target: string, uid = 0): string {
  const whole = join(base, path)
  fs.symlinkSync(target, whole)
  if (isRoot) fs.lchownSync(whole, uid, uid)
  return whole
}

/** Replaces functions of node:fs until the end of the test. */
function replace(functions: object): void {
  const { accessSync, lstatSync } = nodeFs
  const put = (by: object): void => {
    Object.assign(nodeFs, by)
    syncBuiltinESMExports()
  }
  onTestFinished(() => put({ accessSync, lstatSync }))
  put(functions)
}

/** Returns the first untrusted entry, relative to the test's folder; undefined if all are trusted. */
function untrusted(path: string): string | undefined {
  const trust = pathTrust(path)
  return 'untrusted' in trust ? trust.untrusted.path.replace(`${base}/`, '') : undefined
}

describe('a path is trusted', () => {
  test('when the caller owns the file and every folder, and returns its target', () => {
    const file = made('a/b/file')
    expect(pathTrust(file)).toEqual({ path: file })
  })

  test('when it is /dev/null, which is always empty', () => {
    expect(pathTrust('/dev/null')).toEqual({ path: '/dev/null' })
    linked('config', '/dev/null')
    expect(pathTrust(join(base, 'config'))).toEqual({ path: '/dev/null' })
  })

  test('when its last component is absent', () => {
    made('a/')
    expect(pathTrust(join(base, 'a/new'))).toEqual({ path: join(base, 'a/new') })
  })

  test('in a sticky, world-writable folder when the caller owns the entry', () => {
    made('shared/', { mode: 0o1777 })
    const file = made('shared/mine/file')
    expect(pathTrust(file)).toEqual({ path: file })
  })

  test('through relative and absolute symbolic links, and resolves them as the kernel does', () => {
    const file = made('real/deep/file')
    made('real/other')
    linked('relative', 'real/deep')
    linked('absolute', join(base, 'real'))
    expect(pathTrust(join(base, 'relative/file'))).toEqual({ path: file })
    expect(pathTrust(join(base, 'absolute/deep/file'))).toEqual({ path: file })
    // `..` after a link is the parent of the link's target.
    expect(pathTrust(`${base}/relative/../other`)).toEqual({ path: join(base, 'real/other') })
  })

  test('when it is relative to the working folder', () => {
    const file = made('here/file')
    const before = process.cwd()
    process.chdir(join(base, 'here'))
    try {
      expect(pathTrust('file')).toEqual({ path: file })
      expect(pathTrust('./../here//file')).toEqual({ path: file })
    } finally {
      process.chdir(before)
    }
  })

  test.runIf(isRoot)("when root's own group can write", () => {
    expect(untrusted(made('file', { mode: 0o664, gid: 0 }))).toBeUndefined()
  })
})

describe('a path is not trusted', () => {
  test.each([
    ['everyone can write to the file', 'file', 0o646],
    ['everyone can write to the file, even with the sticky bit', 'file', 0o1646],
    ['everyone can write to a folder', 'open/', 0o757],
  ])('when %s', (_, name, mode) => {
    const path = made(name, { mode })
    const file = name.endsWith('/') ? made(`${name}file`) : path
    fs.chmodSync(path, mode)
    expect(untrusted(file)).toBe(name.replace('/', ''))
  })

  test('when it is a device that others can write to, other than /dev/null', () => {
    expect(pathTrust('/dev/zero')).toMatchObject({ untrusted: { path: '/dev/zero', mode: 0o666 } })
  })

  test('when a folder far above the file is world-writable', () => {
    const file = made('a/b/c/d/file')
    fs.chmodSync(join(base, 'a'), 0o777)
    expect(untrusted(file)).toBe('a')
  })

  test.runIf(isRoot).each([
    ['a file', 'file', 'file'],
    ['a folder', 'theirs/', 'theirs/file'],
    ['a sticky folder', 'sticky/', 'sticky/file'],
  ])('when %s belongs to another user', (_, name, path) => {
    made(name)
    const file = made(path)
    const owned = join(base, name)
    fs.chownSync(owned, stranger, stranger)
    fs.chmodSync(owned, name === 'sticky/' ? 0o1777 : 0o755)
    expect(untrusted(file)).toBe(name.replace('/', ''))
  })

  test.runIf(isRoot)('when a group other than that of root can write', () => {
    const trust = pathTrust(made('file', { mode: 0o664, gid: 1234 }))
    expect(trust).toEqual({
      untrusted: { path: join(base, 'file'), kind: 'file', uid: 0, gid: 1234, mode: 0o664 },
    })
  })

  test.runIf(isRoot)(
    'when another user owns an entry of a sticky folder: the file or a symbolic link',
    () => {
      const own = made('own')
      made('shared/', { mode: 0o1777 })
      made('shared/file', { uid: stranger })
      linked('shared/link', own, stranger)
      expect(untrusted(join(base, 'shared/file'))).toBe('shared/file')
      expect(untrusted(join(base, 'shared/link'))).toBe('shared/link')
    },
  )

  test.runIf(isRoot)("when a group-writable sticky folder contains another user's link", () => {
    made('shared/', { mode: 0o1775, gid: 1234 })
    linked('shared/link', made('own'), stranger)
    expect(untrusted(join(base, 'shared/link'))).toBe('shared/link')
  })

  test.runIf(isRoot)(
    "unless the other user's link is in a folder of the caller, where it cannot be changed",
    () => {
      const own = made('own')
      linked('link', own, stranger)
      expect(pathTrust(join(base, 'link'))).toEqual({ path: own })
    },
  )

  test('when a symbolic link leads through a folder that others can write to', () => {
    made('open/', { mode: 0o777 })
    made('open/file')
    linked('link', 'open/file')
    expect(untrusted(join(base, 'link'))).toBe('open')
  })

  test('when it leaves such a folder again through ..', () => {
    made('open/', { mode: 0o777 })
    made('file')
    expect(untrusted(`${base}/open/../file`)).toBe('open')
  })

  test('when its last component is absent from a folder that others can write to', () => {
    made('open/', { mode: 0o777 })
    expect(untrusted(join(base, 'open/new'))).toBe('open')
  })
})

test('follows 40 symbolic links, as Linux does, and no more', () => {
  const file = made('end')
  linked('link1', 'end')
  for (let at = 2; at <= 41; at++) linked(`link${at}`, `link${at - 1}`)
  expect(pathTrust(join(base, 'link40'))).toEqual({ path: file })
  expect(() => pathTrust(join(base, 'link41'))).toThrow(expect.objectContaining({ code: 'ELOOP' }))
})

test('returns an entry of the root folder with one slash', () => {
  expect(pathTrust('/')).toEqual({ path: '/' })
  expect(pathTrust('/proc')).toEqual({ path: '/proc' })
  linked('slash', '/')
  expect(pathTrust(join(base, 'slash'))).toEqual({ path: '/' })
  linked('root', '/proc')
  expect(pathTrust(join(base, 'root'))).toEqual({ path: '/proc' })
})

test('trusts no path below a root folder of another user', () => {
  const file = made('file')
  const { lstatSync } = nodeFs
  replace({
    lstatSync: (path: string, options: object) =>
      path === '/' ? stats('folder', 0o40755, 12_345, 0) : lstatSync(path, options),
  })
  expect(pathTrust(file)).toEqual({
    untrusted: { path: '/', kind: 'folder', uid: 12_345, gid: 0, mode: 0o755 },
  })
})

test('trusts a path below a root folder that is mounted read-only, whatever its mode', () => {
  const file = made('file')
  const { lstatSync, accessSync } = nodeFs
  replace({
    lstatSync: (path: string, options: object) =>
      path === '/' ? stats('folder', 0o40777, 0, 0) : lstatSync(path, options),
    accessSync: (path: string, mode: number) => {
      if (path === '/') throw Object.assign(new Error('read-only'), { code: 'EROFS' })
      accessSync(path, mode)
    },
  })
  expect(pathTrust(file)).toEqual({ path: file })
})

test.runIf(isRoot)('follows links of the caller and of the owner of a shared folder, and no others', () => {
  const file = made('file')
  made('shared/', { mode: 0o1777, uid: 12_345 })
  linked('shared/own', file)
  linked('shared/of-owner', file, 12_345)
  const foreign = linked('shared/foreign', file, stranger)
  expect(linkTrust(join(base, 'shared/own'))).toEqual({ path: file })
  expect(linkTrust(join(base, 'shared/of-owner'))).toEqual({ path: file })
  expect(linkTrust(foreign)).toMatchObject({ untrusted: { path: foreign, uid: stranger } })
})

const stats = (kind: 'file' | 'folder' | 'link', mode: number, uid: number, gid: number) =>
  ({
    isDirectory: () => kind === 'folder',
    isSymbolicLink: () => kind === 'link',
    mode,
    uid,
    gid,
  }) as fs.Stats
const own = process.geteuid!()

test.each([
  ["root's file", stats('file', 0o100600, 0, 0), true],
  ["the caller's file", stats('file', 0o100600, own, own), true],
  ["another user's file", stats('file', 0o100600, 4321, own), false],
  ['a file that another group can read', stats('file', 0o100640, own, 1234), true],
  ['a file that another group can write', stats('file', 0o100660, own, 1234), false],
  ["a file that root's group can write", stats('file', 0o100660, own, 0), true],
  ['a file that everyone can write', stats('file', 0o100602, own, 0), false],
  ['a folder that everyone can write', stats('folder', 0o40777, own, 0), false],
  ['a sticky folder that everyone can write', stats('folder', 0o41777, own, 0), true],
  ["another user's sticky folder", stats('folder', 0o41777, 4321, 0), false],
  ['a sticky file that everyone can write', stats('file', 0o101777, own, 0), false],
])('%s: trusted is %s', (_, entry, trusted) => {
  expect(isTrusted(entry)).toBe(trusted)
})

test('an ordinary user trusts files of the user and of root', () => {
  const geteuid = vi.spyOn(process as Required<typeof process>, 'geteuid').mockReturnValue(4321)
  onTestFinished(() => void geteuid.mockRestore())
  expect(isTrusted(stats('file', 0o100600, 4321, 4321))).toBe(true)
  expect(isTrusted(stats('file', 0o100600, 0, 0))).toBe(true)
  expect(isTrusted(stats('file', 0o100600, 1234, 4321))).toBe(false)
})

test.each(['file', 'folder', 'link'] as const)(
  'names the kind, owner and permission bits of a %s',
  (kind) => {
    expect(untrustedEntry('/x', stats(kind, 0o101666, 1, 2))).toEqual({
      path: '/x',
      kind: kind === 'link' ? 'symbolic link' : kind,
      uid: 1,
      gid: 2,
      mode: 0o1666,
    })
  },
)

test('reports link loops, missing folders, and files in place of folders as system errors', () => {
  linked('one', 'two')
  linked('two', 'one')
  made('file')
  expect(() => pathTrust(join(base, 'one'))).toThrow(expect.objectContaining({ code: 'ELOOP' }))
  expect(() => pathTrust(join(base, 'missing/file'))).toThrow(expect.objectContaining({ code: 'ENOENT' }))
  expect(() => pathTrust(join(base, 'file/below'))).toThrow(expect.objectContaining({ code: 'ENOTDIR' }))
})

test.runIf(isRoot)('an ordinary user trusts only root and the user', () => {
  fs.chmodSync(base, 0o755)
  const files = [made('roots'), made('own', { uid: stranger }), made('thirds', { uid: 1234 })]
  const script = `import { pathTrust } from ${JSON.stringify(join(import.meta.dirname, 'trusted-path.ts'))}
    process.stdout.write(JSON.stringify(${JSON.stringify(files)}.map((path) => 'untrusted' in pathTrust(path))))`
  const answer = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    uid: stranger,
    gid: stranger,
  })
  expect(JSON.parse(answer.toString())).toEqual([false, false, true])
})

// A pod's ConfigMap: a read-only mount of mode 0777, in which links lead to the folder of the current version.
test.skipIf(!isRoot)(
  'trusts a root-owned, world-writable folder on a read-only mount, as for a ConfigMap in a pod',
  () => {
    const mount = made('volume/', { mode: 0o777 })
    const policy = made('volume/..2026/policy.yaml')
    linked('volume/..data', '..2026')
    linked('volume/policy.yaml', '..data/policy.yaml')
    expect(untrusted(join(mount, 'policy.yaml'))).toBe('volume')
    execFileSync('mount', ['--bind', mount, mount])
    try {
      execFileSync('mount', ['-o', 'remount,bind,ro', mount])
      expect(pathTrust(join(mount, 'policy.yaml'))).toEqual({ path: policy })
      expect(untrusted(join(mount, 'policy.yaml'))).toBeUndefined()
    } finally {
      execFileSync('umount', [mount])
    }
    expect(untrusted(join(mount, 'policy.yaml'))).toBe('volume')
  },
)

test.each([
  ['on a read-only mount', 'EROFS', own, true],
  ['that this user may not write', 'EACCES', own, false],
  ['of another user on a read-only mount', 'EROFS', 4321, false],
])('a file that everyone can write, %s (%s, owner %i): trusted is %s', (_, code, uid, trusted) => {
  const { lstatSync } = nodeFs
  const file = made('file')
  replace({
    accessSync: () => {
      throw Object.assign(new Error(code), { code })
    },
    lstatSync: (path: string, options: object) =>
      path === file ? stats('file', 0o100666, uid, 0) : lstatSync(path, options),
  })
  expect('path' in pathTrust(file)).toBe(trusted)
})
