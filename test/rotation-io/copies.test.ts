import { expect, test } from 'vitest'
import { Copies } from '../../src/rotation-io/copies.ts'
import { SiteObserver } from '../../src/rotation-io/observer.ts'
import { MemoryNode } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

const path = '/etc/kubernetes/pki/ca.crt'
const index = '/var/lib/kcert/copies/index.jsonl'

test('keeps copies under a renamed index, and the next rotation copies the files again', async () => {
  const file = (text: string) => ({ bytes: Buffer.from(text), mode: 0o644 })
  const node = new MemoryNode('cp1', { files: new Map([[path, file('first')]]) } as never)
  const copies = new Copies(() => node.access)
  await copies.keepFile('cp1', path, 5)
  const [before] = await copies.on('cp1')
  await copies.putAside('cp1')
  expect(await copies.on('cp1')).toEqual([])
  const past = [...node.files.keys()].filter((one) => /\/copies\/index-[0-9a-f]{12}\.jsonl$/.test(one))
  expect(past).toHaveLength(1)
  expect(JSON.parse(node.files.get(past[0]!)!.content.toString())).toEqual(before)
  expect(Buffer.from(await copies.bytes('cp1', before!.digest!)).toString()).toBe('first')
  await node.access.writeFile(path, 'second', { replaces: 'anything' })
  await copies.keepFile('cp1', path, 5)
  const [after] = await copies.on('cp1')
  expect(Buffer.from(await copies.bytes('cp1', after!.digest!)).toString()).toBe('second')
  // A missing index is not an error: a run that was killed may find none.
  await copies.putAside('cp1')
  await copies.putAside('cp1')
  expect(node.files.has(index)).toBe(false)
})

const digest = 'a'.repeat(64)
const line = JSON.stringify({ phase: 1, node: 'cp1', of: { path }, digest })

test.each([
  ['a line that is not JSON', `${line}\n{"phase":\n`, 'line 2 does not have the format that kcert writes'],
  ['a line that is not an object', `null\n`, 'line 1 does not have the format that kcert writes'],
  [
    'a line without a phase',
    `${JSON.stringify({ node: 'cp1', of: { path } })}\n`,
    'line 1 does not have the format',
  ],
  [
    'a line without a place',
    `${JSON.stringify({ phase: 1, node: 'cp1', of: {} })}\n`,
    'line 1 does not have the format',
  ],
  [
    'a digest that is a path',
    `${line.replace(digest, '../../../etc/shadow')}\n`,
    'line 1 does not have the format',
  ],
  ['a last line without its end', line, 'its last line is incomplete'],
])('both readers treat an index with %s as damaged', async (_, text, why) => {
  const node = new MemoryNode('cp1', {
    files: new Map([[index, { bytes: Buffer.from(text), mode: 0o600 }]]),
  } as never)
  const damage = { code: 'KCERT_BACKUP_DAMAGED', why: expect.stringContaining(why) }
  await expect(new Copies(() => node.access).on('cp1')).rejects.toMatchObject(damage)
  const site = (await sitesOf(new Map([['cp1', node]])))()
  await expect(new SiteObserver(site).observe(['copies'])).rejects.toMatchObject(damage)
})

test('treats an unreadable index as damaged, not as missing', async () => {
  const node = new MemoryNode('cp1', { files: new Map() } as never)
  const unreadable = { path: index, found: 'unreadable', reason: 'Permission denied' } as const
  const access = { ...node.access, readFiles: async () => [unreadable] }
  const damage = { code: 'KCERT_BACKUP_DAMAGED', why: expect.stringContaining('Permission denied') }
  await expect(new Copies(() => access).on('cp1')).rejects.toMatchObject(damage)
})

test('both readers read an index to its last line', async () => {
  const node = new MemoryNode('cp1', {
    files: new Map([[index, { bytes: Buffer.from(`${line}\n`), mode: 0o600 }]]),
  } as never)
  const copies = [JSON.parse(line)]
  expect(await new Copies(() => node.access).on('cp1')).toEqual(copies)
  const site = (await sitesOf(new Map([['cp1', node]])))()
  expect((await new SiteObserver(site).observe(['copies'])).copies).toEqual(copies)
})
