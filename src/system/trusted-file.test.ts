import nodeFs, * as fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { bytesIfThere } from './required-file.ts'
import { checkSshConfig, checkTrusted, readTrustedFile, trustedPath, unfinishedNote } from './trusted-file.ts'

const isRoot = process.getuid?.() === 0
const base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'kcert-trusted-file-')))
afterAll(() => fs.rmSync(base, { recursive: true }))

function made(name: string, mode = 0o644): string {
  const path = join(base, name)
  fs.writeFileSync(path, name)
  fs.chmodSync(path, mode)
  return path
}

function refusalOf(path: string, owner = process.geteuid!(), mode = '0666') {
  return {
    code: 'KCERT_FILE_UNTRUSTED',
    message: `the approval policy ${path} can be changed by other users`,
    why: `the file ${path} has owner ${owner}, group ${fs.statSync(path).gid}, mode ${mode}; a file that decides what kcert does, and every folder above it, must belong to root or the caller and be writable by no one else`,
  }
}

function errorOf(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  return 'nothing was thrown'
}

test('returns the target of a trusted path, and the bytes of a trusted file', () => {
  const path = made('policy')
  const link = join(base, 'link')
  fs.symlinkSync('policy', link)
  expect(trustedPath('approval policy', link)).toBe(path)
  expect(trustedPath('approval policy', join(base, 'absent'))).toBe(join(base, 'absent'))
  const source = readTrustedFile('approval policy', link)
  expect(source).toMatchObject({ name: link, file: { path } })
  expect(Buffer.from((source as { bytes: Uint8Array }).bytes).toString()).toBe('policy')
})

test('refuses a file that others can change, in each of the three checks', () => {
  const path = made('writable', 0o666)
  const refusal = { ...refusalOf(path), next: `chmod go-w ${path}` }
  const descriptor = fs.openSync(path, 'r')
  try {
    for (const check of [
      () => trustedPath('approval policy', path),
      () => readTrustedFile('approval policy', path),
      () => checkTrusted('approval policy', path, descriptor),
    ])
      expect(errorOf(check)).toMatchObject(refusal)
  } finally {
    fs.closeSync(descriptor)
  }
})

test.runIf(isRoot)('advises to copy a file of another user, and shows its mode in four digits', () => {
  const path = made('theirs')
  fs.chownSync(path, 65534, 65534)
  fs.chmodSync(path, 0o44)
  const next = `install -m 600 ${path} ~/theirs`
  expect(errorOf(() => trustedPath('approval policy', path))).toMatchObject({
    ...refusalOf(path, 65534, '0044'),
    next,
  })
})

test('accepts an open descriptor of a trusted file or a pipe, and refuses a closed one', () => {
  const path = made('open')
  const descriptor = fs.openSync(path, 'r')
  checkTrusted('approval policy', path, descriptor)
  fs.closeSync(descriptor)
  const folder = join(base, 'folder')
  fs.mkdirSync(folder)
  fs.chmodSync(folder, 0o777)
  const other = fs.openSync(folder, 'r')
  // Not a regular file: a pipe that the shell created for the caller may have any mode.
  checkTrusted('approval policy', folder, other)
  fs.closeSync(other)
  expect(errorOf(() => checkTrusted('approval policy', path, 1_000_000))).toMatchObject({
    code: 'KCERT_FILE_UNREADABLE',
    message: expect.stringContaining(path),
  })
})

test('reports a missing folder as an error of the path, and as the reason for the file', () => {
  const path = join(base, 'missing/policy')
  expect(errorOf(() => trustedPath('approval policy', path))).toMatchObject({
    code: 'KCERT_FILE_NOT_FOUND',
    message: expect.stringContaining(path),
  })
  const absent = join(base, 'absent')
  for (const name of [path, absent]) {
    const source = readTrustedFile('approval policy', name)
    expect(source).toEqual({ name, reason: 'not-found', detail: 'does not exist' })
  }
})

test('returns the bytes of a file if it exists, and throws for one that cannot be read', () => {
  const read = (name: string, limit = 100) => bytesIfThere(readTrustedFile('approval policy', name, limit))
  expect(read(join(base, 'absent'))).toBeUndefined()
  const path = made('there')
  expect(Buffer.from(read(path)!).toString()).toBe('there')
  expect(errorOf(() => read(path, 2))).toMatchObject({ code: 'KCERT_FILE_TOO_LARGE' })
})

test('advises a command in place of a PID file that others can change', () => {
  const path = made('pid', 0o666)
  expect(errorOf(() => trustedPath('PID file', path))).toMatchObject({
    code: 'KCERT_FILE_UNTRUSTED',
    fix: 'use --exec instead of --signal, or a PID file in a folder that only you can change',
    next: undefined,
  })
})

test('closes every descriptor that it opened', () => {
  const path = made('closed')
  const before = fs.readdirSync('/proc/self/fd').length
  for (let i = 0; i < 20; i++) readTrustedFile('approval policy', path)
  expect(fs.readdirSync('/proc/self/fd').length).toBeLessThan(before + 10)
})

test('refuses a file that others can change since its path was checked', () => {
  const path = made('swapped')
  const { openSync } = nodeFs
  onTestFinished(() => {
    nodeFs.openSync = openSync
    syncBuiltinESMExports()
  })
  nodeFs.openSync = (...args) => {
    fs.chmodSync(path, 0o666)
    return openSync(...args)
  }
  syncBuiltinESMExports()
  expect(errorOf(() => readTrustedFile('approval policy', path))).toMatchObject(refusalOf(path))
})

test('refuses an ssh configuration that others can change; none is not a file', () => {
  checkSshConfig(made('ssh_config'))
  const path = made('none', 0o666)
  expect(errorOf(() => checkSshConfig(path))).toMatchObject({
    code: 'KCERT_FILE_UNTRUSTED',
    message: `the ssh configuration ${path} can be changed by other users`,
  })
  const before = process.cwd()
  process.chdir(base)
  try {
    checkSshConfig('none')
  } finally {
    process.chdir(before)
  }
})

test('advises to redirect a copy where standard input is a file that others can change', () => {
  const descriptor = fs.openSync(made('input', 0o666), 'r')
  const error = errorOf(() => checkTrusted('approval policy', 'standard input', descriptor))
  fs.closeSync(descriptor)
  expect(error).toMatchObject({
    fix: 'read it, and if its contents are right, copy it to a folder that only you can change, and redirect the copy',
    next: undefined,
  })
})

test('reports a note of an unfinished write that is too large to read', () => {
  const path = made('note')
  expect(unfinishedNote(path)).toBe('note')
  fs.truncateSync(path, 2 ** 30)
  expect(errorOf(() => unfinishedNote(path))).toMatchObject({ code: 'KCERT_FILE_TOO_LARGE' })
})
