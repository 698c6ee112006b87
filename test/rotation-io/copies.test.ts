import { expect, test } from 'vitest'
import { Copies } from '../../src/rotation-io/copies.ts'
import { MemoryNode } from './memory-node.ts'

const path = '/etc/kubernetes/pki/ca.crt'
const index = '/var/lib/kcert/copies/index.jsonl'

test('copies that are put aside stay, and the next rotation copies what is there by then', async () => {
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
  // Nothing there to put aside is no error: it is what a run that was killed finds.
  await copies.putAside('cp1')
  await copies.putAside('cp1')
  expect(node.files.has(index)).toBe(false)
})
