import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { AppendFile } from './append-file.ts'

function pathIn(): string {
  const folder = fs.mkdtempSync(join(tmpdir(), 'kcert-append-'))
  onTestFinished(() => fs.rmSync(folder, { recursive: true }))
  return join(folder, 'issuance-log')
}

const text = (file: AppendFile) => Buffer.from(file.read()).toString('utf8')

test('reads a missing file as empty, and creates it with mode 0600', () => {
  const path = pathIn()
  const file = new AppendFile(path)
  expect(text(file)).toBe('')
  expect(fs.existsSync(path)).toBe(false)
  file.append(Buffer.from('one\n'))
  file.append(Buffer.from('two\n'))
  expect(text(file)).toBe('one\ntwo\n')
  expect(fs.statSync(path).mode & 0o777).toBe(0o600)
})

test('truncates the file to a length', () => {
  const file = new AppendFile(pathIn())
  file.append(Buffer.from('one\ntw'))
  file.cut(4)
  expect(text(file)).toBe('one\n')
})

test('neither reads nor writes a FIFO, and does not wait for its other end', () => {
  const path = pathIn()
  execFileSync('mkfifo', [path])
  const file = new AppendFile(path)
  expect(() => file.read()).toThrow(`${path} cannot be read`)
  expect(() => file.append(Buffer.from('x'))).toThrow(`${path} could not be written`)
})

test('reports a missing folder and a full disk, and leaves no partial write on a full disk', () => {
  const path = pathIn()
  expect(() => new AppendFile(`${path}/x/y`).append(Buffer.from('x'))).toThrow('could not be written')
  const full = new AppendFile('/dev/full')
  expect(() => full.append(Buffer.from('x'))).toThrow('/dev/full could not be written')
})

test('with a kind, checks at each use that no other user can change the file', () => {
  const path = pathIn()
  const file = new AppendFile(path, 'journal')
  expect(text(file)).toBe('')
  file.append(Buffer.from('one\n'))
  expect(text(file)).toBe('one\n')
  fs.chmodSync(path, 0o666)
  const refusal = expect.objectContaining({ code: 'KCERT_FILE_UNTRUSTED' })
  expect(() => file.read()).toThrow(refusal)
  expect(() => file.append(Buffer.from('two\n'))).toThrow(refusal)
  expect(() => file.cut(1)).toThrow(refusal)
  expect(fs.readFileSync(path, 'utf8')).toBe('one\n')
})

test.skipIf(process.getuid?.() !== 0)(
  'follows no link of another user in a folder that all users can write to (skipped for users who cannot give links away)',
  () => {
    const path = pathIn()
    const shared = `${path}.d`
    const link = join(shared, 'issuance-log')
    fs.mkdirSync(shared)
    fs.chmodSync(shared, 0o1777)
    fs.symlinkSync('../issuance-log', link)
    const file = new AppendFile(link)
    file.append(Buffer.from('one\n'))
    fs.lchownSync(link, 65534, 0)
    const refusal = expect.objectContaining({
      code: 'KCERT_FILE_EXISTS',
      message: `${link} is a symbolic link, which another user created in a folder that all users can write to`,
    })
    expect(() => file.append(Buffer.from('two\n'))).toThrow(refusal)
    expect(() => file.cut(0)).toThrow(refusal)
    fs.unlinkSync(path)
    expect(() => file.append(Buffer.from('three\n'))).toThrow(refusal)
    expect(fs.existsSync(path)).toBe(false)
  },
)
