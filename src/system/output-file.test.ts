import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { replaceKeepingBackup, writeKeyFile, writePublicFile } from './output-file.ts'

function folder(): string {
  const path = fs.mkdtempSync(join(tmpdir(), 'kcert-output-'))
  onTestFinished(() => fs.rmSync(path, { recursive: true }))
  return path
}

const modeOf = (path: string) => fs.statSync(path).mode & 0o7777

test.each([0o000, 0o077, 0o777])(
  'creates a key with mode 0600 and a certificate with mode 0644 under umask %o',
  (umask) => {
    const at = folder()
    const before = process.umask(umask)
    try {
      writeKeyFile(join(at, 'key'), 'k', { replace: false })
      writePublicFile(join(at, 'crt'), 'c', { replace: false })
    } finally {
      process.umask(before)
    }
    expect([modeOf(join(at, 'key')), modeOf(join(at, 'crt'))]).toEqual([0o600, 0o644])
  },
)

test('sets mode 0600 of a key before its first byte, also when it replaces a world-readable file', () => {
  const path = join(folder(), 'key')
  fs.writeFileSync(path, 'old', { mode: 0o666 })
  fs.chmodSync(path, 0o666)
  const seen: number[] = []
  const calls = {
    ...fs,
    writeSync: ((descriptor: number, ...rest: [Uint8Array, number, number, number]) => {
      seen.push(fs.fstatSync(descriptor).mode & 0o7777)
      return fs.writeSync(descriptor, ...rest)
    }) as typeof fs.writeSync,
  }
  writeKeyFile(path, 'new', { replace: true }, calls)
  expect(seen).toEqual([0o600])
  expect([modeOf(path), fs.readFileSync(path, 'utf8')]).toEqual([0o600, 'new'])
})

const obstacles: readonly [kind: string, make: (path: string) => void][] = [
  ['a symbolic link', (path) => fs.symlinkSync(`${path}.target`, path)],
  ['a FIFO', (path) => execFileSync('mkfifo', [path])],
  ['a folder', (path) => fs.mkdirSync(path)],
]

test.each(obstacles)('does not write a key to %s, whether or not it may replace files', (kind, make) => {
  const at = folder()
  const path = join(at, 'key')
  make(path)
  const before = fs.lstatSync(path)
  expect(() => writeKeyFile(path, 'k', { replace: false })).toThrow(
    `${path} exists (${kind}) and is not replaced`,
  )
  expect(() => writeKeyFile(path, 'k', { replace: true })).toThrow(
    `${path} is ${kind}, and a private key is not written to it`,
  )
  expect(fs.lstatSync(path).ino).toBe(before.ino)
  expect(fs.readdirSync(at)).toEqual(['key'])
})

test('does not follow a link that takes the place of a key file just before the write', () => {
  const at = folder()
  const [path, target] = [join(at, 'key'), join(at, 'target')]
  fs.writeFileSync(target, 'theirs', { mode: 0o644 })
  const calls = {
    ...fs,
    renameSync: ((from: string, to: string) => {
      fs.symlinkSync(target, to)
      fs.renameSync(from, to)
    }) as typeof fs.renameSync,
  }
  writeKeyFile(path, 'k', { replace: true }, calls)
  expect(fs.readFileSync(target, 'utf8')).toBe('theirs')
  expect(fs.lstatSync(path).isFile()).toBe(true)
})

test('replaces a file only if allowed, and a certificate behind a link in place', () => {
  const at = folder()
  const [path, link] = [join(at, 'crt'), join(at, 'link')]
  fs.writeFileSync(path, 'old', { mode: 0o640 })
  fs.symlinkSync('crt', link)
  expect(() => writePublicFile(path, 'new', { replace: false })).toThrow('exists and is not replaced')
  expect(() => writeKeyFile(path, 'new', { replace: false })).toThrow('exists and is not replaced')
  writePublicFile(link, 'new', { replace: true })
  expect([fs.readFileSync(path, 'utf8'), modeOf(path), fs.lstatSync(link).isSymbolicLink()]).toEqual([
    'new',
    0o640,
    true,
  ])
})

test('keeps the replaced content next to the file, named by the time of replacement', () => {
  const path = join(folder(), 'ca.crt')
  fs.writeFileSync(path, 'old')
  const now = new Date('2026-11-21T08:57:31.250Z')
  expect(replaceKeepingBackup(path, 'new', now)).toBe(`${path}.20261121T085731Z.bak`)
  expect([fs.readFileSync(path, 'utf8'), fs.readFileSync(`${path}.20261121T085731Z.bak`, 'utf8')]).toEqual([
    'new',
    'old',
  ])
  expect(replaceKeepingBackup(path, 'newer', now)).toBe(`${path}.20261121T085731Z.2.bak`)
  expect(fs.readFileSync(`${path}.20261121T085731Z.bak`, 'utf8')).toBe('old')
})

test('creates a backup with no more permissions than the original', () => {
  const path = join(folder(), 'ca.crt')
  fs.writeFileSync(path, 'old', { mode: 0o640 })
  expect(modeOf(replaceKeepingBackup(path, 'new', new Date(0))!)).toBe(0o640)
})
