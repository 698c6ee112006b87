import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { localTransport } from '../../src/node/local.ts'
import { shellNode } from '../../src/node/shell-node.ts'
import type { NodeAccess } from '../../src/pki/node-access.ts'
import type { KeyFile } from '../../src/rotation/old-keys.ts'
import { SiteOldKeyFiles } from '../../src/rotation-io/old-key-files.ts'
import { Certificates } from '../../src/site/certificates.ts'
import { FileReading } from '../../src/site/file-reading.ts'
import { readPrivateKeyFile } from '../../src/x509/keys.ts'

// Keys in a folder on this machine, through the shell that every node has.

const root = mkdtempSync(join(tmpdir(), 'kcert-old-key-files-'))
const node = shellNode({ name: 'here', transport: localTransport(), clock: () => new Date() })
afterAll(async () => {
  await node.close()
  rmSync(root, { recursive: true, force: true })
})

const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }) as string
const made = () => pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
const [old, other] = [made(), made()] as const
const spkiOf = (text: string): string => readPrivateKeyFile(Buffer.from(text)).publicKey!.sha256
const wanted = new Set([spkiOf(old)])

let count = 0
let folder: string
const at = (name: string): string => join(folder, 'copies', 'by-digest', name)

beforeEach(() => {
  folder = join(root, String(count++))
  mkdirSync(join(folder, 'copies', 'by-digest'), { recursive: true })
})

function filesOn(access: NodeAccess = node): SiteOldKeyFiles {
  const certificates = new Certificates()
  return new SiteOldKeyFiles({ node: () => access, certificates, reading: new FileReading(certificates) })
}

async function keysIn(files: SiteOldKeyFiles): Promise<readonly KeyFile[]> {
  return (await files.find('here', { folders: [folder], besideCas: [] }, wanted)).keys
}

test('finds the key in every subfolder and encoding, but no other key, link or certificate', async () => {
  const sec1 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  writeFileSync(at('a'), old)
  writeFileSync(at('b'), other)
  writeFileSync(join(folder, 'left.key'), sec1.export({ type: 'sec1', format: 'pem' }) as string)
  writeFileSync(join(folder, 'note'), 'no key at all')
  symlinkSync(at('a'), join(folder, 'link'))
  const { keys } = await filesOn().find(
    'here',
    { folders: [folder, join(root, 'nowhere')], besideCas: [] },
    new Set([...wanted, spkiOf(pem(sec1))]),
  )
  expect(keys.map(({ path }) => path).sort()).toEqual([at('a'), join(folder, 'left.key')].sort())
})

test('names an encrypted key in the folders of kcert and next to a CA, in PEM and DER, but not a plain one next to a CA', async () => {
  const sealed = { cipher: 'aes-256-cbc', passphrase: 'geheim', format: 'pem' } as const
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const beside = (name: string) => join(root, `${name}-${count}.key`)
  writeFileSync(at('a'), privateKey.export({ ...sealed, type: 'pkcs8' }))
  writeFileSync(at('b'), privateKey.export({ ...sealed, format: 'der', type: 'pkcs8' }))
  // A cipher that kcert cannot decrypt: PBES1 with single DES.
  const byDes = '3020301a06092a864886f70d010503300d040800112233445566770201010402ffff'
  writeFileSync(at('c'), Buffer.from(byDes, 'hex'))
  writeFileSync(join(folder, 'spki'), createPublicKey(privateKey).export({ format: 'der', type: 'spki' }))
  writeFileSync(join(folder, 'ca.key'), privateKey.export({ ...sealed, type: 'pkcs1' }))
  writeFileSync(beside('ca'), privateKey.export({ ...sealed, type: 'pkcs1' }))
  writeFileSync(beside('front-proxy-ca'), old)
  const { keys, encrypted } = await filesOn().find(
    'here',
    { folders: [folder], besideCas: [beside('ca'), beside('front-proxy-ca'), beside('none')] },
    wanted,
  )
  expect(keys).toEqual([])
  const places = [at('a'), at('b'), at('c'), join(folder, 'ca.key'), beside('ca')]
  expect([...encrypted].sort()).toEqual(places.sort())
})

test('ignores a file next to a CA that is too large for a key', async () => {
  writeFileSync(at('a'), old)
  const large = join(root, `bundle-${count}`)
  writeFileSync(large, ' '.repeat(100_000))
  const { keys, encrypted } = await filesOn().find('here', { folders: [folder], besideCas: [large] }, wanted)
  expect([keys.map(({ path }) => path), encrypted]).toEqual([[at('a')], []])
})

test('destroy overwrites the bytes on the disk with zeros before removing the file', async () => {
  writeFileSync(at('a'), old)
  // A hard link shows the new content of the same bytes.
  linkSync(at('a'), join(root, `witness-${count}`))
  const files = filesOn()
  const [found] = await keysIn(files)
  expect(Buffer.from(await files.read('here', found!)).toString()).toBe(old)
  await files.destroy('here', found!)
  expect(existsSync(at('a'))).toBe(false)
  expect(readFileSync(join(root, `witness-${count}`))).toEqual(Buffer.alloc(old.length))
  // Again, as after a crash that follows the removal.
  await files.destroy('here', found!)
  expect(await keysIn(files)).toEqual([])
})

test('after a stop between overwriting and removing, the next run finds and removes the file', async () => {
  writeFileSync(at('a'), old)
  const cut: NodeAccess = Object.assign(Object.create(node) as NodeAccess, {
    name: 'here',
    removeFile: () => Promise.reject(new Error('killed')),
    readFiles: node.readFiles.bind(node),
    listFolder: node.listFolder.bind(node),
    run: node.run.bind(node),
  })
  const killed = filesOn(cut)
  const [found] = await keysIn(killed)
  await expect(killed.destroy('here', found!)).rejects.toThrow('killed')
  expect(readFileSync(at('a'))).toEqual(Buffer.alloc(old.length))
  const files = filesOn()
  const [rest, ...none] = await keysIn(files)
  expect([rest!.path, rest!.spki, none]).toEqual([at('a'), undefined, []])
  await files.destroy('here', rest!)
  expect(existsSync(at('a'))).toBe(false)
})

test('does not change a file that was replaced after the search', async () => {
  writeFileSync(at('a'), old)
  const files = filesOn()
  const [found] = await keysIn(files)
  writeFileSync(at('a'), other)
  await expect(files.destroy('here', found!)).rejects.toMatchObject({ code: 'KCERT_NODE_FILE_CHANGED' })
  expect(readFileSync(at('a'), 'utf8')).toBe(other)
})
