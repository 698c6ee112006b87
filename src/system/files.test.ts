import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Source, UnreadableSource } from '../inspection/source.ts'
import { largestFileBytes, readFile } from './files.ts'
import { readFolder } from './folders.ts'
import { isFifo, readDescriptor, readFifo } from './pipes.ts'

// root can read every file, so these tests run as user nobody (65534).
const nobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}

function askedByOrdinaryUser(expression: string): unknown {
  const modules = ['files', 'folders'].map(
    (name) => `import * as ${name} from '${join(import.meta.dirname, name)}.ts'`,
  )
  const script = [...modules, `process.stdout.write(JSON.stringify(${expression}))`].join('\n')
  const program = made('ask.mts', script)
  return JSON.parse(execFileSync(process.execPath, [program], nobody).toString())
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'kcert-files-'))
  chmodSync(folder, 0o755)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function made(name: string, content: string | Uint8Array = name): string {
  const path = join(folder, name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, content)
  return path
}

function text(read: Source | UnreadableSource): string {
  return 'bytes' in read ? Buffer.from(read.bytes).toString() : `${read.reason}: ${read.detail}`
}

function walked(path: string): string[] {
  return [...readFolder(path)].map((read) => `${read.name.replace(`${folder}/`, '')} = ${text(read)}`)
}

describe('readFile', () => {
  test('returns the content, mode and absolute path of a file', () => {
    const path = made('plain.pem', 'content')
    chmodSync(path, 0o640)
    expect(readFile(path)).toEqual({ name: path, bytes: Buffer.from('content'), file: { path, mode: 0o640 } })
  })

  test('returns the target of a symbolic link as written, because the check of -current.pem needs it', () => {
    made('kubelet-client-2026.pem', 'pair')
    const link = join(folder, 'kubelet-client-current.pem')
    symlinkSync('kubelet-client-2026.pem', link)
    const read = readFile(link) as Source
    expect(text(read)).toBe('pair')
    expect(read.file?.linkTarget).toBe('kubelet-client-2026.pem')
  })

  test('reads a file larger than the buffer completely, also when the system does not report its size', () => {
    const large = Buffer.alloc(700_001, 'x')
    expect((readFile(made('large.pem', large)) as Source).bytes).toEqual(large)
    expect(text(readFile('/proc/self/status'))).toMatch(/^Name:/)
  })

  test('returns an empty source for an empty file', () => {
    expect((readFile(made('empty.pem', '')) as Source).bytes).toHaveLength(0)
  })

  test('reports a missing file, a dangling link and a link loop as such', () => {
    symlinkSync('gone.pem', join(folder, 'dangling.pem'))
    symlinkSync('circle.pem', join(folder, 'circle.pem'))
    made('file.pem')
    expect(text(readFile(join(folder, 'none.pem')))).toBe('not-found: does not exist')
    expect(text(readFile(join(folder, 'file.pem/below')))).toBe('not-found: does not exist')
    expect(text(readFile(join(folder, 'dangling.pem')))).toBe(
      'dangling-link: points to gone.pem, which does not exist',
    )
    expect(text(readFile(join(folder, 'circle.pem')))).toMatch(/^dangling-link: .*circle/)
  })

  test('does not read a file above the limit', () => {
    const path = made('huge.pem', '')
    truncateSync(path, largestFileBytes + 1)
    expect(text(readFile(path))).toBe(
      'too-large: is larger than 20 MiB, the most that kcert reads of one file',
    )
  })

  test('reads a requested FIFO until its writer closes it, and stops waiting at the limit', async () => {
    const fifo = join(folder, 'password')
    execFileSync('mkfifo', [fifo])
    expect([isFifo(fifo), isFifo(folder), isFifo(`${fifo}.none`)]).toEqual([true, false, false])
    expect((await readFifo(fifo, 40)).length).toBe(0)
    spawn('bash', ['-c', `printf 'one ' > ${fifo}`])
    expect(Buffer.from(await readFifo(fifo, 120_000)).toString()).toBe('one ')
  })

  test('never opens a FIFO, a device, a socket or a folder', async () => {
    const fifo = join(folder, 'fifo')
    execFileSync('mkfifo', [fifo])
    const socket = join(folder, 'socket')
    const server = createServer().listen(socket)
    await new Promise((listening) => server.once('listening', listening))
    expect(text(readFile(fifo))).toBe('not-a-file: is a FIFO, which kcert does not read')
    expect(text(readFile('/dev/zero'))).toBe('not-a-file: is a device, which kcert does not read')
    expect(text(readFile(socket))).toBe('not-a-file: is a socket, which kcert does not read')
    expect(text(readFile(folder))).toBe('not-a-file: is a folder, which kcert does not read')
    server.close()
  })

  test('reports a file that this user may not read', () => {
    const path = made('secret.key')
    chmodSync(path, 0)
    expect(askedByOrdinaryUser(`files.readFile('${path}')`)).toMatchObject({
      reason: 'permission',
      detail: 'this user may not read it',
    })
  })

  test('reads an open descriptor without opening it again', async () => {
    const script = [
      `import { readDescriptor } from '${join(import.meta.dirname, 'pipes.ts')}'`,
      'process.stdout.write(Buffer.from((await readDescriptor("/dev/fd/5", 5)).bytes))',
    ].join('\n')
    const program = made('read-five.mts', script)
    const out = execFileSync('bash', ['-c', `"${process.execPath}" "${program}" 5< <(printf 'from a pipe')`])
    expect(out.toString()).toBe('from a pipe')
    expect(text(await readDescriptor('/dev/fd/999', 999))).toMatch(/^io: bad file descriptor.*EBADF/)
  })
})

describe('readFolder', () => {
  test('walks all levels in order of names, and names each file below the folder as given', () => {
    for (const name of ['walk/b.pem', 'walk/a/2.pem', 'walk/a/1.pem', 'walk/.kube/config']) made(name)
    expect(walked(join(folder, 'walk/'))).toEqual([
      'walk/.kube/config = walk/.kube/config',
      'walk/a/1.pem = walk/a/1.pem',
      'walk/a/2.pem = walk/a/2.pem',
      'walk/b.pem = walk/b.pem',
    ])
    const [first] = readFolder(join(folder, 'walk'))
    expect(first).toMatchObject({
      root: join(folder, 'walk'),
      file: { path: join(folder, 'walk/.kube/config') },
    })
  })

  test('lists each file of a mounted ConfigMap once, also in its folders', () => {
    made('volume/..2026_11_21/ca.crt', 'ca')
    made('volume/..2026_11_21/tls/tls.crt', 'leaf')
    symlinkSync('..2026_11_21', join(folder, 'volume/..data'))
    symlinkSync('..data/ca.crt', join(folder, 'volume/ca.crt'))
    symlinkSync('..data/tls', join(folder, 'volume/tls'))
    symlinkSync('..data/..', join(folder, 'volume/up'))
    expect(walked(join(folder, 'volume'))).toEqual(['volume/tls/tls.crt = leaf', 'volume/ca.crt = ca'])
  })

  test('follows links to other folders, reads each folder once, and terminates', () => {
    made('outside/x.pem')
    made('inside/y.pem')
    made('inside/ssl/ca.crt')
    symlinkSync('../outside', join(folder, 'inside/out'))
    symlinkSync('ssl', join(folder, 'inside/zpki'))
    symlinkSync('.', join(folder, 'inside/again'))
    symlinkSync('..', join(folder, 'inside/up'))
    symlinkSync('/', join(folder, 'inside/all'))
    symlinkSync('../inside', join(folder, 'outside/back'))
    symlinkSync('../outside/x.pem', join(folder, 'inside/z.pem'))
    expect(walked(join(folder, 'inside'))).toEqual([
      'inside/out/x.pem = outside/x.pem',
      'inside/zpki/ca.crt = inside/ssl/ca.crt',
      'inside/y.pem = inside/y.pem',
      'inside/z.pem = outside/x.pem',
    ])
  })

  test('walks a folder that is named through a link', () => {
    made('real/a.pem')
    symlinkSync('real', join(folder, 'named'))
    expect(walked(join(folder, 'named'))).toEqual(['named/a.pem = real/a.pem'])
  })

  test('reports a link to a folder that was already read, instead of an empty folder', () => {
    made('twice/data/pki/ca.crt')
    mkdirSync(join(folder, 'twice/etc'))
    symlinkSync('../data/pki', join(folder, 'twice/etc/pki'))
    const found = [...readFolder(join(folder, 'twice'))].map((one) => [
      one.name.slice(folder.length),
      'reason' in one ? one.reason : 'read',
    ])
    expect(found).toEqual([
      ['/twice/data/pki/ca.crt', 'read'],
      ['/twice/etc/pki', 'seen-before'],
    ])
  })

  test('skips FIFOs, sockets, and unfinished files of kcert, but reports a dangling link', () => {
    made('odd/.ca.crt.0123456789ab.kcert-tmp')
    execFileSync('mkfifo', [join(folder, 'odd/fifo')])
    symlinkSync('/dev/zero', join(folder, 'odd/zero'))
    symlinkSync('gone', join(folder, 'odd/kubelet-client-current.pem'))
    expect(walked(join(folder, 'odd'))).toEqual([
      'odd/kubelet-client-current.pem = dangling-link: points to gone, which does not exist',
    ])
  })

  test('does not read pseudo file systems of the kernel, whether named or found below a folder', () => {
    expect(walked('/proc')).toEqual([])
    expect(walked('/sys')).toEqual([])
  })

  test('skips large programs and archives, and reads large texts', () => {
    made('mixed/etcd', Buffer.concat([Buffer.from('\x7fELF\0\0'), Buffer.alloc(2_000_000)]))
    made('mixed/secrets.yaml', 'kind: List\n'.repeat(200_000))
    made('mixed/windows.conf', Buffer.from(`\ufeff${'users: []\n'.repeat(2000)}`, 'utf16le'))
    const read = [...readFolder(join(folder, 'mixed'))]
    expect(read.map(({ name }) => name)).toEqual(
      ['secrets.yaml', 'windows.conf'].map((name) => join(folder, 'mixed', name)),
    )
    expect((read[0] as Source).bytes).toHaveLength(2_200_000)
  })

  test('reports a file above the limit that may be a certificate store', () => {
    made('stores/all.yaml', 'kind: Secret\n'.repeat(500))
    truncateSync(join(folder, 'stores/all.der'.replace('der', 'yaml')), largestFileBytes + 1)
    // The zeros after the text are beyond the part that is examined.
    expect(walked(join(folder, 'stores'))).toEqual([
      'stores/all.yaml = too-large: is larger than 20 MiB, the most that kcert reads of one file',
    ])
  })

  test('reports what this user may not enter or read, and continues', () => {
    made('closed/pki/ca.key')
    made('closed/sa.key')
    made('closed/z.pem')
    chmodSync(join(folder, 'closed/pki'), 0)
    chmodSync(join(folder, 'closed/sa.key'), 0)
    const seen = askedByOrdinaryUser(
      `[...folders.readFolder('${folder}/closed')].map(({ name, reason }) => [name.slice(${folder.length + 1}), reason])`,
    )
    expect(seen).toEqual([
      ['closed/pki', 'permission'],
      ['closed/sa.key', 'permission'],
      ['closed/z.pem', null],
    ])
  })

  test('reports a name that is not UTF-8, and continues', () => {
    mkdirSync(join(folder, 'latin'))
    writeFileSync(Buffer.concat([Buffer.from(join(folder, 'latin/caf')), Buffer.from([0xe9])]), 'x')
    expect(walked(join(folder, 'latin'))).toEqual(['latin/caf\ufffd = io: its name is not UTF-8'])
  })
})
