import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { localTransport } from '../../src/node/local.ts'
import { shellNode } from '../../src/node/shell-node.ts'
import { backUp, readBackup, restore } from '../../src/pki/node-backup.ts'
import { systemClock } from '../../src/system/clock.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'
import { sha256 } from './contract.ts'

const root = temporaryFolder('node-backup')
const node = shellNode({ name: 'cp1', transport: localTransport(), clock: systemClock })
afterAll(() => node.close())

let count = 0
function pki(): { at: (name: string) => string; folder: string; paths: string[] } {
  const here = join(root, `${++count}`)
  mkdirSync(here)
  const at = (name: string): string => join(here, name)
  writeFileSync(at('ca.key'), 'key')
  chmodSync(at('ca.key'), 0o600)
  writeFileSync(at('ca.crt'), 'crt')
  chmodSync(at('ca.crt'), 0o644)
  symlinkSync('pair-1.pem', at('current.pem'))
  return { at, folder: at('kcert/before'), paths: ['ca.key', 'ca.crt', 'current.pem', 'new.crt'].map(at) }
}

test('files, links and what is not there come back as they were', async () => {
  const { at, folder, paths } = pki()
  const { entries } = await backUp(node, paths, folder)
  expect(entries.map(({ was }) => was)).toEqual(['file', 'file', 'link', 'absent'])
  expect(statSync(at('kcert')).mode & 0o777).toBe(0o755)
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  writeFileSync(at('ca.key'), 'new key')
  rmSync(at('ca.crt'))
  rmSync(at('current.pem'))
  symlinkSync('pair-2.pem', at('current.pem'))
  writeFileSync(at('new.crt'), 'new')
  for (const entry of entries) expect(await restore(node, entry, 'anything')).toBe(true)
  for (const entry of entries) expect(await restore(node, entry, 'anything')).toBe(false)
  expect(readFileSync(at('ca.key'), 'utf8')).toBe('key')
  expect(statSync(at('ca.key')).mode & 0o777).toBe(0o600)
  expect(statSync(at('ca.crt')).mode & 0o777).toBe(0o644)
  expect(readlinkSync(at('current.pem'))).toBe('pair-1.pem')
  expect(lstatSync(at('new.crt'), { throwIfNoEntry: false })).toBeUndefined()
})

test('a second time keeps what the index says, and adds what it lacks', async () => {
  const { at, folder, paths } = pki()
  await backUp(node, paths.slice(0, 1), folder)
  writeFileSync(at('ca.key'), 'already changed by kcert')
  const { entries } = await backUp(node, paths, folder)
  expect(entries).toMatchObject([{ sha256: sha256('key') }, { sha256: sha256('crt') }, {}, {}])
  expect(await readBackup(node, folder)).toEqual(await backUp(node, paths, folder))
})

test('copies without an index count for nothing and are made anew', async () => {
  const { at, folder, paths } = pki()
  await backUp(node, paths, folder)
  rmSync(join(folder, 'index.json'))
  expect(await readBackup(node, folder)).toBeUndefined()
  writeFileSync(at('ca.crt'), 'other')
  const { entries } = await backUp(node, paths, folder)
  expect(entries[1]).toMatchObject({ sha256: sha256('other') })
})

test('a restore refuses what somebody else changed, and a copy that was touched', async () => {
  const { at, folder, paths } = pki()
  const { entries } = await backUp(node, paths, folder)
  writeFileSync(at('ca.crt'), 'edited')
  await expect(restore(node, entries[1]!, { sha256: sha256('ours') })).rejects.toMatchObject({
    code: 'KCERT_NODE_FILE_CHANGED',
  })
  writeFileSync(join(folder, 'files', at('ca.crt')), 'touched')
  await expect(restore(node, entries[1]!, 'anything')).rejects.toMatchObject({
    code: 'KCERT_NODE_FILE_NOT_WRITTEN',
  })
  expect(readFileSync(at('ca.crt'), 'utf8')).toBe('edited')
  expect(readdirSync(at('.')).filter((name) => name.includes('kcert-tmp'))).toEqual([])
})

test('an index that is none is damage', async () => {
  const { folder, paths } = pki()
  await backUp(node, paths, folder)
  for (const text of ['{', '{}', 'null']) {
    writeFileSync(join(folder, 'index.json'), text)
    await expect(readBackup(node, folder)).rejects.toMatchObject({ code: 'KCERT_BACKUP_DAMAGED' })
  }
})
