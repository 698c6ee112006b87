import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { KcertError } from '../errors/kcert-error.ts'
import type { NodeAccess } from '../pki/node-access.ts'
import type { CopySnapshot } from '../rotation/snapshot.ts'
import { Copies, readIndex } from './copies.ts'

const folder = '/var/lib/kcert/copies'
const index = `${folder}/index.jsonl`
const caFile = '/etc/kubernetes/pki/ca.crt'

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
const at = (text: string): string => `${folder}/by-digest/${digest(text)}`

/** A node with these files: text, a link, or another answer of the node. It records every change, and when it was called. */
function nodeWith(files: Readonly<Record<string, string | object>> = {}) {
  const kept = new Map<string, string | object>(Object.entries(files))
  const changes: unknown[] = []
  const reads: unknown[] = []
  let open = 0
  let mostAtOnce = 0
  const found = (path: string): object => {
    const file = kept.get(path)
    if (file === undefined) return { path, found: 'absent' }
    if (typeof file === 'object') return { path, ...file }
    return { path, found: 'file', content: Buffer.from(file), sha256: digest(file), mode: 0o640 }
  }
  const put = (path: string, text: string, options: unknown): void => {
    changes.push([path, text, options])
    kept.set(path, text)
  }
  const access = {
    name: 'cp1',
    readFiles: async (paths: readonly string[], call: unknown) => {
      reads.push([...paths, call])
      mostAtOnce = Math.max(mostAtOnce, ++open)
      await new Promise((resolve) => setTimeout(resolve, 1))
      open--
      return paths.map(found)
    },
    statFiles: async (paths: readonly string[], { sha256 = false } = {}) =>
      paths.map((path) => {
        const facts = found(path) as { sha256?: string }
        return sha256 ? facts : { ...facts, sha256: undefined }
      }),
    makeFolder: async (path: string, options: unknown) => void changes.push(['folder', path, options]),
    removeFolder: async (path: string) => void changes.push(['no folder', path]),
    writeFile: async (path: string, text: string, options: unknown) => put(path, text, options),
    copyFile: async (from: string, to: string, options: unknown) => {
      const text = kept.get(from)
      if (typeof text !== 'string') throw new KcertError('KCERT_NODE_FILE_CHANGED', `${from} is not there`)
      put(to, text, options)
    },
    removeFile: async (path: string, options: unknown) => {
      changes.push(['removed', path, options])
      kept.delete(path)
    },
  } as unknown as NodeAccess
  return { copies: new Copies(() => access), access, kept, changes, reads, mostAtOnce: () => mostAtOnce }
}

const line = (copy: unknown): string => `${JSON.stringify(copy)}\n`
const copyOf = (text: string, more = {}) => ({
  phase: 5,
  node: 'cp1',
  of: { path: caFile },
  digest: digest(text),
  mode: 0o640,
  ...more,
})
const folders = [
  ['folder', folder, { mode: 0o700 }],
  ['folder', `${folder}/by-digest`, { mode: 0o700 }],
]

test('copies a file under its digest before adding a line to the index', async () => {
  const { copies, changes } = nodeWith({ [caFile]: 'old' })
  await copies.keepFile('cp1', caFile, 5)
  expect(changes).toEqual([
    ...folders,
    [at('old'), 'old', { replaces: 'anything', sha256: digest('old'), mode: 0o600 }],
    [index, line(copyOf('old')), { replaces: 'absent', mode: 0o600 }],
  ])
  expect(await copies.on('cp1')).toEqual([copyOf('old')])
})

test('creates the folders of the copies once', async () => {
  const { copies, changes } = nodeWith({ [caFile]: 'old', '/b': 'b' })
  await copies.keepFile('cp1', caFile, 5)
  await copies.keepFile('cp1', '/b', 5)
  expect(changes.filter((change) => (change as string[])[0] === 'folder')).toEqual(folders)
})

test.each([
  [
    'the flags and the version of a definition',
    { found: 'file', sha256: digest('old'), mode: 0o640 },
    { flags: { v: null }, version: 'v1.36.3' },
  ],
  [
    'the target of a link',
    { found: 'file', sha256: digest('old'), mode: 0o640, linkTarget: 'x' },
    { linksTo: 'x' },
  ],
])('the line of a copy contains %s', async (_, file, more) => {
  const { copies, kept, access } = nodeWith({ [caFile]: file })
  Object.assign(access, { copyFile: async () => {} })
  const said = 'flags' in more ? more : {}
  await copies.keepFiles('cp1', [{ path: caFile, ...(said as object) }], 5)
  expect(JSON.parse(String(kept.get(index)))).toEqual(copyOf('old', more))
})

test('records a missing file in the index', async () => {
  const { copies } = nodeWith()
  await copies.keepFile('cp1', caFile, 5)
  expect(await copies.on('cp1')).toEqual([{ phase: 5, node: 'cp1', of: { path: caFile } }])
})

test('treats a file as missing when the node does not report it', async () => {
  const { copies, access } = nodeWith()
  Object.assign(access, { statFiles: async () => [] })
  await copies.keepFile('cp1', caFile, 5)
  expect(await copies.on('cp1')).toEqual([{ phase: 5, node: 'cp1', of: { path: caFile } }])
})

test.each([
  ['is unreadable', { found: 'unreadable', reason: 'Permission denied' }, 'Permission denied'],
  ['is a folder', { found: 'folder', sha256: 'x' }, 'it is a directory or a device'],
  ['has no digest', { found: 'file', sha256: undefined }, 'it is a directory or a device'],
])('does not copy a path that %s, and writes nothing', async (_, file, why) => {
  const { copies, changes } = nodeWith({ [caFile]: file })
  await expect(copies.keepFile('cp1', caFile, 5)).rejects.toMatchObject({
    code: 'KCERT_NODE_REFUSED',
    message: `${caFile} on node "cp1" cannot be copied`,
    why,
  })
  expect(changes).toEqual([])
})

const ofPath = { phase: 5, node: 'cp1', of: { path: caFile } }
const secret = { kind: 'Secret', namespace: 'a', name: 'b' }
const ofObject = { phase: 5, node: 'cp1', of: { object: secret } }

test.each([
  ['the same file and phase', ofPath, false],
  ['another phase', { ...ofPath, phase: 4 }, true],
  ['another file', { ...ofPath, of: { path: '/other' } }, true],
  ['an object', ofObject, true],
])('a file is copied %s: %j', async (_, copy, isAdded) => {
  for (const keep of ['keepFile', 'keepFiles'] as const) {
    const { copies } = nodeWith({ [index]: line(copy) })
    if (keep === 'keepFile') await copies.keepFile('cp1', caFile, 5)
    else await copies.keepFiles('cp1', [{ path: caFile }], 5)
    expect(await copies.on('cp1')).toEqual(isAdded ? [copy, ofPath] : [copy])
  }
})

test('does not copy files from the folder of the copies', async () => {
  const { copies, changes, reads } = nodeWith({ [index]: '' })
  await copies.keepFile('cp1', `${folder}/by-digest/x`, 5)
  expect([changes, reads]).toEqual([[], []])
  await copies.keepFile('cp1', `${folder}-of-mine`, 5)
  expect(changes).not.toEqual([])
})

test('copies several files with one change to the index', async () => {
  const { copies, changes, kept } = nodeWith({ [caFile]: 'old', '/b': 'b', [index]: line(ofObject) })
  await copies.keepFiles('cp1', [{ path: caFile }, { path: '/b', flags: { v: '2' } }], 5)
  const lines = [ofObject, copyOf('old'), copyOf('b', { of: { path: '/b' }, flags: { v: '2' } })]
  expect(await copies.on('cp1')).toEqual(lines)
  const writes = changes.filter((change) => (change as string[])[0] === index)
  expect(writes).toEqual([
    [index, kept.get(index), { replaces: { sha256: digest(line(ofObject)) }, mode: 0o600 }],
  ])
  await copies.keepFiles('cp1', [{ path: caFile }], 5)
  expect(changes.filter((change) => (change as string[])[0] === index)).toHaveLength(1)
})

test('changes an index one action at a time, even when one of them fails', async () => {
  const { copies, mostAtOnce } = nodeWith({ '/bad': { found: 'folder' }, '/b': 'b' })
  const outcomes = await Promise.allSettled([
    copies.keepFile('cp1', '/bad', 5),
    copies.keepFile('cp1', '/b', 5),
    copies.keepFiles('cp1', [{ path: '/c' }], 5),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
  expect(mostAtOnce()).toBe(1)
  expect((await copies.on('cp1')).map(({ of }) => of)).toEqual([{ path: '/b' }, { path: '/c' }])
})

test('copies an object as JSON, and records only the name of a missing object', async () => {
  const { copies, changes } = nodeWith()
  const object = { apiVersion: 'v1', kind: 'Secret', data: {} }
  const text = `${JSON.stringify(object)}\n`
  await copies.keepObject('cp1', secret as never, object as never, 5)
  await copies.keepObject('cp1', { ...secret, name: 'gone' } as never, undefined, 5)
  const copied = { phase: 5, node: 'cp1', of: { object: secret }, digest: digest(text) }
  const gone = { phase: 5, node: 'cp1', of: { object: { ...secret, name: 'gone' } } }
  expect(changes).toEqual([
    ...folders,
    [at(text), text, { replaces: 'anything', mode: 0o600 }],
    [index, line(copied), { replaces: 'absent', mode: 0o600 }],
    [index, line(copied) + line(gone), { replaces: { sha256: digest(line(copied)) }, mode: 0o600 }],
  ])
})

test.each([
  ['the same object and phase', ofObject, false],
  ['another phase', { ...ofObject, phase: 4 }, true],
  ['another kind', { ...ofObject, of: { object: { ...secret, kind: 'ConfigMap' } } }, true],
  ['another namespace', { ...ofObject, of: { object: { ...secret, namespace: 'z' } } }, true],
  ['another name', { ...ofObject, of: { object: { ...secret, name: 'z' } } }, true],
  ['a file', ofPath, true],
])('copies an object again next to a copy of %s: %j', async (_, copy, isAdded) => {
  const { copies } = nodeWith({ [index]: line(copy) })
  await copies.keepObject('cp1', secret as never, undefined, 5)
  expect(await copies.on('cp1')).toEqual(isAdded ? [copy, ofObject] : [copy])
})

test('renames the index to contain its digest, and only if it has not changed', async () => {
  const { copies, changes } = nodeWith({ [index]: line(ofPath) })
  await copies.putAside('cp1')
  const sha256 = digest(line(ofPath))
  expect(changes).toEqual([
    [
      `${folder}/index-${sha256.slice(0, 12)}.jsonl`,
      line(ofPath),
      { replaces: 'anything', sha256, mode: 0o600 },
    ],
    ['removed', index, { holds: { sha256 } }],
  ])
})

test.each([
  ['absent', []],
  ['a folder', [{ found: 'folder', sha256: 'x' }]],
  ['without a digest', [{ found: 'file' }]],
  ['not reported', undefined],
])('does not rename an index that is %s', async (_, facts) => {
  const { copies, access, changes } = nodeWith()
  Object.assign(access, { statFiles: async () => facts ?? [] })
  await copies.putAside('cp1')
  expect(changes).toEqual([])
})

test('returns the bytes of a copy when they match its digest', async () => {
  const { copies } = nodeWith({ [at('old')]: 'old' })
  expect(Buffer.from(await copies.bytes('cp1', digest('old'))).toString()).toBe('old')
})

test.each([
  ['is missing', {}],
  ['contains something else', { [at('old')]: 'other' }],
  ['is a folder', { [at('old')]: { found: 'folder', sha256: digest('old') } }],
])('a copy that %s is damaged', async (_, files) => {
  await expect(nodeWith(files).copies.bytes('cp1', digest('old'))).rejects.toMatchObject({
    code: 'KCERT_BACKUP_DAMAGED',
    message: `${at('old')} on node "cp1" is missing or was changed`,
    why: 'without the copy this change has no rollback; check the folder on node cp1',
    next: `ls -lR ${folder}`,
  })
})

test('treats a copy as damaged when the node does not report it', async () => {
  const { copies, access } = nodeWith()
  Object.assign(access, { readFiles: async () => [] })
  await expect(copies.bytes('cp1', digest('old'))).rejects.toMatchObject({ code: 'KCERT_BACKUP_DAMAGED' })
})

test('a rehearsal restores each copy once to a scratch folder, and removes the folder', async () => {
  const lines = [copyOf('old'), copyOf('old', { phase: 6 }), copyOf('b'), ofPath]
  const { copies, changes } = nodeWith({
    [index]: lines.map(line).join(''),
    [at('old')]: 'old',
    [at('b')]: 'b',
  })
  expect(await copies.rehearse('cp1')).toBeUndefined()
  const restored = (text: string) => [
    [`${folder}/.scratch/${digest(text)}`, text, { replaces: 'anything', sha256: digest(text), mode: 0o600 }],
    ['removed', `${folder}/.scratch/${digest(text)}`, { holds: { sha256: digest(text) } }],
  ]
  expect(changes).toEqual([
    ['folder', `${folder}/.scratch`, { mode: 0o700 }],
    ...restored('old'),
    ...restored('b'),
    ['no folder', `${folder}/.scratch`],
  ])
})

test.each([
  ['a file', copyOf('b', { of: { path: '/b' } }), '/b'],
  ['an object', { ...copyOf('b'), of: { object: secret } }, 'b'],
])('a rehearsal names %s whose copy does not restore', async (_, broken, name) => {
  const { copies, changes } = nodeWith({
    [index]: [copyOf('old'), broken].map((copy) => line(copy)).join(''),
    [at('old')]: 'old',
  })
  expect(await copies.rehearse('cp1')).toBe(`the copy of ${name} does not restore: ${at('b')} is not there`)
  expect(changes.at(-1)).toEqual(['no folder', `${folder}/.scratch`])
})

test('a rehearsal that the node interrupts has no result, and removes the scratch folder', async () => {
  const { copies, access, changes } = nodeWith({ [index]: line(copyOf('old')) })
  Object.assign(access, { copyFile: () => Promise.reject(new TypeError('broken')) })
  await expect(copies.rehearse('cp1')).rejects.toThrow('broken')
  expect(changes.at(-1)).toEqual(['no folder', `${folder}/.scratch`])
})

test.each([
  ['no index', {}],
  ['no copy of an existing file', { [index]: line(ofPath) }],
])('a node with %s has nothing to rehearse', async (_, files) => {
  const { copies, changes } = nodeWith(files)
  expect(await copies.rehearse('cp1')).toBe('no copies exist')
  expect(changes).toEqual([])
})

test('reads an index of up to 8 MiB', async () => {
  const { access, reads } = nodeWith()
  expect(await readIndex(access)).toEqual({ copies: [], text: '', replaces: 'absent' })
  expect(reads).toEqual([[index, { largestBytes: 8 * 1024 * 1024 }]])
})

test.each([
  ['unreadable', [{ found: 'unreadable', reason: 'too large' }], 'too large'],
  ['a folder', [{ found: 'folder', reason: 'x' }], 'it is not a regular file'],
  ['not reported', [], 'it is not a regular file'],
])('an index that is %s is damaged', async (_, files, why) => {
  const { access } = nodeWith()
  Object.assign(access, { readFiles: async () => files })
  await expect(readIndex(access)).rejects.toMatchObject({
    code: 'KCERT_BACKUP_DAMAGED',
    message: `${index} on node "cp1" is not a valid index of copies`,
    why: `${why}; without the index it is unknown which file each copy belongs to. Check it on node cp1, then move the folder away`,
    next: `ls -lR ${folder}`,
  })
})

const object = (of: object): unknown => ({ phase: 1, node: 'cp1', of: { object: of } })
const file = (more: object): unknown => ({ ...copyOf('old'), ...more })

test.each([
  [file({}), true],
  [object({ kind: 'Secret', name: 'a' }), true],
  [file({ digest: undefined }), true],
  [null, false],
  ['text', false],
  [file({ phase: '5' }), false],
  [file({ phase: 5.5 }), false],
  [file({ node: 5 }), false],
  [file({ node: undefined }), false],
  [file({ digest: 5 }), false],
  [file({ digest: `${digest('old')}0` }), false],
  [file({ digest: `/${digest('old')}` }), false],
  [file({ digest: digest('old').toUpperCase().replace(/\d/g, 'A') }), false],
  [file({ of: null }), false],
  [file({ of: {} }), false],
  [file({ of: { path: 'relative' } }), false],
  [file({ of: { path: 5 } }), false],
  [file({ of: { path: null, object: { kind: 'Secret', name: 'a' } } }), false],
  [object({ kind: 'Secret' }), false],
  [object({ name: 'a' }), false],
  [object({ kind: 5, name: 'a' }), false],
  [file({ of: { object: null } }), false],
])('a line %j in the index has the format that kcert writes: %s', async (copy, isWhole) => {
  const { access } = nodeWith({ [index]: line(copy) })
  const read = readIndex(access)
  if (isWhole) expect((await read).copies).toEqual([JSON.parse(line(copy)) as CopySnapshot])
  else
    await expect(read).rejects.toMatchObject({
      why: 'line 1 does not have the format that kcert writes; without the index it is unknown which file each copy belongs to. Check it on node cp1, then move the folder away',
    })
})
