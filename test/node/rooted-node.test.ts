import { hash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { localTransport } from '../../src/node/local.ts'
import { rootedNode } from '../../src/node/rooted-node.ts'
import { shellNode } from '../../src/node/shell-node.ts'
import type { NodeAccess } from '../../src/pki/node-access.ts'

// A disk image may be hostile: none of its links may lead kcert, which runs as root, to files of this machine.

const secret = 'of this machine'
let shell: NodeAccess
let place: string
let outside: string
let root: string
let node: NodeAccess

beforeAll(() => {
  shell = shellNode({ name: 'disk', transport: localTransport(), clock: () => new Date() })
})
afterAll(() => shell.close())

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'kcert-root-[1]-'))
  outside = join(place, 'outside')
  root = join(place, 'disk')
  mkdirSync(join(outside, 'pki'), { recursive: true })
  for (const name of ['file', 'pki/ca.crt']) writeFileSync(join(outside, name), secret)
  mkdirSync(join(root, 'etc/pki'), { recursive: true })
  mkdirSync(join(root, 'data'))
  writeFileSync(join(root, 'data/real'), 'inside')
  node = rootedNode(shell, root)
  return () => rmSync(place, { recursive: true })
})

const content = async (path: string) => {
  const [file] = await node.readFiles([path])
  return file?.found === 'file' ? Buffer.from(file.content).toString() : file?.found
}

test('follows an absolute link inside the folder, and names the link', async () => {
  symlinkSync('/data/real', join(root, 'etc/link'))
  const [file] = await node.readFiles(['/etc/link'])
  expect(file).toMatchObject({ path: '/etc/link', linkTarget: '/data/real', found: 'file' })
  expect(await content('/etc/link')).toBe('inside')
})

test('follows a link to a parent folder', async () => {
  symlinkSync('/data', join(root, 'etc/store'))
  expect(await content('/etc/store/real')).toBe('inside')
  expect(await node.listFolder('/etc/store')).toMatchObject({
    path: '/etc/store',
    entries: [{ name: 'real' }],
  })
  expect(await node.matchPaths(['/etc/store/*', '/etc/store/real'])).toEqual([
    '/etc/store/real',
    '/etc/store/real',
  ])
})

test.each([
  ['an absolute link', (name: string) => join(outside, name)],
  ['a link with ".."', (name: string) => `../../../../../../../../../..${join(outside, name)}`],
])('does not read, list, match or write the outside target of %s', async (_, target) => {
  symlinkSync(target('file'), join(root, 'etc/file'))
  symlinkSync(target('pki'), join(root, 'etc/folder'))
  symlinkSync(target(''), join(root, 'etc/all'))
  expect(await content('/etc/file')).toBe('absent')
  expect(await content('/etc/folder/ca.crt')).toBe('absent')
  expect(await content(`/..${join(outside, 'file')}`)).toBe('absent')
  expect(await node.listFolder('/etc/folder')).toMatchObject({ found: 'absent' })
  expect(await node.matchPaths(['/etc/folder/*.crt', '/etc/*/ca.crt', '/etc/*/pki/ca.crt'])).toEqual([])
  const anything = { replaces: 'anything' } as const
  await expect(node.writeFile('/etc/file', 'x', anything)).rejects.toThrow('could not change')
  await expect(node.writeFile('/etc/folder/ca.crt', 'x', anything)).rejects.toThrow('could not change')
  const sha256 = hash('sha256', secret, 'hex')
  await expect(node.copyFile('/etc/file', '/etc/copy', { ...anything, sha256 })).rejects.toThrow()
  expect(await node.removeFile('/etc/folder/ca.crt', { holds: 'anything' })).toBe(false)
  expect(
    readFileSync(join(outside, 'file'), 'utf8') + readFileSync(join(outside, 'pki/ca.crt'), 'utf8'),
  ).toBe(secret + secret)
})

test('creates folders only below a link inside the folder', async () => {
  symlinkSync(outside, join(root, 'var'))
  await node.makeFolder('/var/lib/kcert', { mode: 0o700 })
  expect(existsSync(join(outside, 'lib'))).toBe(false)
  expect(existsSync(join(root, outside, 'lib/kcert'))).toBe(true)
})

test('writes through a link inside the folder, and keeps the link', async () => {
  symlinkSync('/data/real', join(root, 'etc/link'))
  const { path } = await node.writeFile('/etc/link', 'new', { replaces: { linkTarget: '/data/real' } })
  expect(path).toBe('/data/real')
  expect(readFileSync(join(root, 'data/real'), 'utf8')).toBe('new')
  expect(readlinkSync(join(root, 'etc/link'))).toBe('/data/real')
  await expect(node.writeFile('/etc/link', 'x', { replaces: { linkTarget: '/else' } })).rejects.toThrow(
    'changed after kcert planned',
  )
})

test('replaces and removes a link itself, regardless of its target', async () => {
  symlinkSync(join(outside, 'file'), join(root, 'etc/link'))
  await node.linkFile('/etc/link', '/data/real', { replaces: 'anything' })
  expect(readlinkSync(join(root, 'etc/link'))).toBe('/data/real')
  await node.removeFile('/etc/link', { holds: 'anything' })
  expect(lstatSync(join(root, 'etc/link'), { throwIfNoEntry: false })).toBeUndefined()
})

test('treats link loops as absent, and refuses to write through them', async () => {
  symlinkSync('b', join(root, 'etc/a'))
  symlinkSync('a', join(root, 'etc/b'))
  expect(await content('/etc/a')).toBe('absent')
  expect(await content('/etc/a/file')).toBe('absent')
  await expect(node.writeFile('/etc/a', 'x', { replaces: 'anything' })).rejects.toThrow()
})
