import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { NodeAccess, ReadFile } from '../../src/pki/node-access.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'

// The contract of every adapter. The node is this machine, reached through the adapter, so the test can read its files directly.

const folder = temporaryFolder('node')
let count = 0

export function sha256(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex')
}

export function nodeContract(title: string, open: () => Promise<NodeAccess>): void {
  describe(title, () => {
    let node: NodeAccess
    let here: string
    const at = (name: string): string => join(here, name)

    beforeAll(async () => {
      node = await open()
    })

    beforeEach(() => {
      here = join(folder, `${++count}`)
      mkdirSync(here)
    })

    afterAll(async () => {
      await node.close()
    })

    test('reads files with content, mode, owner and digest, in the requested order', async () => {
      const bytes = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 256))
      writeFileSync(at('key'), bytes, { mode: 0o600 })
      writeFileSync(at('empty'), '', { mode: 0o644 })
      const [empty, absent, key] = await node.readFiles([at('empty'), at('absent'), at('key')])
      expect(absent).toEqual({ path: at('absent'), found: 'absent' })
      expect(empty).toMatchObject({ found: 'file', sizeBytes: 0, mode: 0o644, sha256: sha256('') })
      const { uid, gid, mtime } = statSync(at('key'))
      expect(key).toMatchObject({ found: 'file', mode: 0o600, uid, gid, sha256: sha256(bytes) })
      expect(Buffer.from((key as ReadFile).content)).toEqual(bytes)
      expect(Math.abs((key as ReadFile).modifiedAt.getTime() - mtime.getTime())).toBeLessThan(1000)
    })

    test('reads a file of 1 MiB completely, and reports a larger one as unreadable', async () => {
      const content = Buffer.alloc(1024 * 1024, 'kcert')
      writeFileSync(at('large'), content)
      writeFileSync(at('larger'), Buffer.concat([content, Buffer.from('!')]))
      const [large, larger] = await node.readFiles([at('large'), at('larger')])
      expect((large as ReadFile).sha256).toBe(sha256(content))
      expect(larger).toMatchObject({ found: 'unreadable', reason: 'larger than kcert reads' })
    })

    test('follows and names links, treats dangling links as absent, and does not open folders and FIFOs', async () => {
      writeFileSync(at('kubelet-client-2026.pem'), 'pair')
      symlinkSync('kubelet-client-2026.pem', at('current'))
      symlinkSync('gone', at('dangling'))
      execFileSync('mkfifo', [at('fifo')])
      const [link, dangling, fifo, dir] = await node.readFiles([
        at('current'),
        at('dangling'),
        at('fifo'),
        here,
      ])
      expect(link).toMatchObject({
        found: 'file',
        linkTarget: 'kubelet-client-2026.pem',
        sha256: sha256('pair'),
      })
      expect(dangling).toEqual({
        path: at('dangling'),
        found: 'absent',
        linkTarget: 'gone',
        linkedAt: expect.any(Date),
      })
      expect(fifo).toMatchObject({ found: 'special' })
      expect(dir).toMatchObject({ found: 'folder' })
    })

    const oddNames = [
      'with space',
      "it's",
      '$(touch x)',
      '`id`',
      'a"b\\c',
      '-n',
      'zwei\nZeilen',
      'käse*',
      ';&|',
    ]

    test.each(oddNames)('treats the name %j only as a name', async (name) => {
      await node.writeFile(at(name), 'content', { replaces: 'absent', mode: 0o640 })
      expect(readFileSync(at(name), 'utf8')).toBe('content')
      expect(readdirSync(here)).toEqual([name])
      expect(await node.statFiles([at(name)], { sha256: true })).toMatchObject([
        { path: at(name), found: 'file', mode: 0o640, sha256: sha256('content') },
      ])
    })

    test('lists a folder with hidden names, kinds and link targets', async () => {
      writeFileSync(at('a b'), '', { mode: 0o600 })
      writeFileSync(at('.hidden'), 'four')
      mkdirSync(at('folder'), { mode: 0o700 })
      symlinkSync('a b', at('link'))
      const listing = await node.listFolder(here)
      expect(listing).toMatchObject({
        found: 'folder',
        entries: [
          { name: '.hidden', kind: 'file', sizeBytes: 4 },
          { name: 'a b', kind: 'file', mode: 0o600 },
          { name: 'folder', kind: 'folder', mode: 0o700 },
          { name: 'link', kind: 'link', linkTarget: 'a b' },
        ],
      })
      expect(await node.listFolder(at('none'))).toMatchObject({ found: 'absent' })
      expect(await node.listFolder(at('a b'))).toMatchObject({ found: 'not-a-folder' })
      expect(await node.listFolder(at('folder'))).toMatchObject({ found: 'folder', entries: [] })
    })

    test('matches paths by patterns, and returns nothing for a pattern without a match', async () => {
      for (const pod of ['p1', 'p 2']) {
        mkdirSync(at(pod))
        writeFileSync(join(at(pod), 'ca.crt'), '')
      }
      expect(await node.matchPaths([`${here}/p*/ca.crt`, `${here}/none*`])).toEqual([
        join(at('p 2'), 'ca.crt'),
        join(at('p1'), 'ca.crt'),
      ])
    })

    test('creates a file with its mode, and leaves no other name', async () => {
      const written = await node.writeFile(at('ca.key'), 'key', { replaces: 'absent' })
      expect(written).toEqual({ path: at('ca.key'), sha256: sha256('key'), changed: true, before: 'absent' })
      expect(statSync(at('ca.key')).mode & 0o7777).toBe(0o600)
      expect(readdirSync(here)).toEqual(['ca.key'])
    })

    test('keeps mode and owner of a replaced file unless the call sets them', async () => {
      writeFileSync(at('f'), 'old')
      chmodSync(at('f'), 0o4751)
      const { uid, gid } = statSync(at('f'))
      const kept = await node.writeFile(at('f'), 'new', { replaces: { sha256: sha256('old') } })
      expect(kept).toMatchObject({ changed: true, before: sha256('old') })
      expect(statSync(at('f'))).toMatchObject({ uid, gid, mode: 0o104751 })
      await node.writeFile(at('f'), 'new', { replaces: 'anything', mode: 0o400, owner: { uid, gid } })
      expect(statSync(at('f')).mode & 0o7777).toBe(0o400)
    })

    test('does not write content again that a file already has', async () => {
      await node.writeFile(at('f'), 'new', { replaces: 'absent', mode: 0o644 })
      const { ino } = statSync(at('f'))
      const again = await node.writeFile(at('f'), 'new', { replaces: 'absent', mode: 0o644 })
      expect(again).toMatchObject({ changed: false, before: sha256('new') })
      expect(statSync(at('f')).ino).toBe(ino)
    })

    test('replaces a key and its certificate together, and keeps modes and links', async () => {
      mkdirSync(at('real'))
      for (const [name, mode] of [
        ['a.key', 0o640],
        ['a.crt', 0o644],
        ['real/b.crt', 0o600],
      ] as const) {
        writeFileSync(at(name), 'old')
        chmodSync(at(name), mode)
      }
      symlinkSync('real/b.crt', at('b.crt'))
      const options = { replaces: { sha256: sha256('old') } }
      const written = await node.writeFile(at('a.crt'), 'cert', {
        ...options,
        key: { path: at('a.key'), content: 'key', ...options },
      })
      expect(written).toMatchObject({ path: at('a.crt'), changed: true, before: sha256('old') })
      const key = { path: at('b.key'), replaces: 'absent', content: 'key' } as const
      await node.writeFile(at('b.crt'), 'cert', { ...options, key })
      const states = ['a.crt', 'a.key', 'b.key', 'real/b.crt'].map((name) => [
        readFileSync(at(name), 'utf8'),
        statSync(at(name)).mode & 0o7777,
      ])
      expect(states).toEqual([
        ['cert', 0o644],
        ['key', 0o640],
        ['key', 0o600],
        ['cert', 0o600],
      ])
      expect(lstatSync(at('b.crt')).isSymbolicLink()).toBe(true)
      expect(readdirSync(here).sort()).toEqual(['a.crt', 'a.key', 'b.crt', 'b.key', 'real'])
      expect(readdirSync(at('real'))).toEqual(['b.crt'])
    })

    test('replaces neither a key nor its certificate when the certificate has changed', async () => {
      for (const name of ['a.crt', 'a.key']) writeFileSync(at(name), 'edited')
      const key = { path: at('a.key'), replaces: 'anything', content: 'key' } as const
      await expect(
        node.writeFile(at('a.crt'), 'cert', { replaces: { sha256: sha256('old') }, key }),
      ).rejects.toMatchObject({ code: 'KCERT_NODE_FILE_CHANGED' })
      await expect(
        node.writeFile(at('a.crt'), 'cert', {
          replaces: 'anything',
          key: { ...key, path: at('none/a.key') },
        }),
      ).rejects.toMatchObject({ code: 'KCERT_NODE_FILE_NOT_WRITTEN' })
      await expect(
        node.writeFile(at('a.crt'), 'cert', { replaces: 'anything', key: { ...key, replaces: 'absent' } }),
      ).rejects.toMatchObject({ code: 'KCERT_NODE_FILE_CHANGED' })
      for (const name of ['a.crt', 'a.key']) expect(readFileSync(at(name), 'utf8')).toBe('edited')
      expect(readdirSync(here).sort()).toEqual(['a.crt', 'a.key'])
    })

    test.each([
      ['another content', () => writeFileSync(at('f'), 'edited'), { sha256: sha256('old') }],
      ['nothing', () => {}, { sha256: sha256('old') }],
      ['a file where there was none', () => writeFileSync(at('f'), 'edited'), 'absent'],
    ] as const)('a write refuses when there is %s, and touches nothing', async (_what, arrange, replaces) => {
      arrange()
      const before = readdirSync(here)
      await expect(node.writeFile(at('f'), 'new', { replaces })).rejects.toMatchObject({
        code: 'KCERT_NODE_FILE_CHANGED',
      })
      expect(readdirSync(here)).toEqual(before)
      if (before.length > 0) expect(readFileSync(at('f'), 'utf8')).toBe('edited')
    })

    test('a write through a link replaces its target', async () => {
      mkdirSync(at('real'))
      writeFileSync(join(at('real'), 'ca.crt'), 'old')
      symlinkSync('real/ca.crt', at('ca.crt'))
      const { path } = await node.writeFile(at('ca.crt'), 'new', { replaces: { sha256: sha256('old') } })
      expect(path).toBe(join(realpathSync(here), 'real/ca.crt'))
      expect(lstatSync(at('ca.crt')).isSymbolicLink()).toBe(true)
      expect(readFileSync(at('ca.crt'), 'utf8')).toBe('new')
    })

    test('reports a write into a missing folder, or over a folder', async () => {
      mkdirSync(at('folder'))
      for (const [path, why] of [
        [at('none/f'), /folder does not exist/],
        [at('folder'), /a folder or a device/],
      ] as const) {
        await expect(node.writeFile(path, 'x', { replaces: 'anything' })).rejects.toMatchObject({
          code: 'KCERT_NODE_FILE_NOT_WRITTEN',
          why: expect.stringMatching(why),
        })
      }
    })

    test('refuses a key whose path leads to the file of its certificate', async () => {
      writeFileSync(at('both.pem'), 'both')
      symlinkSync('both.pem', at('a.key'))
      const key = { path: at('a.key'), replaces: 'anything', content: 'key' } as const
      await expect(
        node.writeFile(at('both.pem'), 'cert', { replaces: 'anything', key }),
      ).rejects.toMatchObject({
        code: 'KCERT_NODE_FILE_NOT_WRITTEN',
        why: 'the path of its key leads to the same file',
      })
      expect(readFileSync(at('both.pem'), 'utf8')).toBe('both')
      expect(readdirSync(here).sort()).toEqual(['a.key', 'both.pem'])
    })

    test('the next write removes old leftovers also in a folder behind a link', async () => {
      mkdirSync(at('real'))
      symlinkSync('real', at('pki'))
      writeFileSync(at('real/.kcert.aaaa.kcert-tmp'), 'a key')
      utimesSync(at('real/.kcert.aaaa.kcert-tmp'), 0, 0)
      await node.writeFile(at('pki/f'), 'x', { replaces: 'absent' })
      expect(readdirSync(at('real'))).toEqual(['f'])
    })

    test('the next write removes old leftovers of a killed shell', async () => {
      writeFileSync(at('.kcert.aaaa.kcert-tmp'), 'a key')
      writeFileSync(at('.kcert.bbbb.kcert-tmp'), 'somebody is writing')
      mkdirSync(at('.kcert.aaaab.kcert-tmp'))
      writeFileSync(at('.kcert.aaaab.kcert-tmp/a.key'), 'a key')
      for (const name of ['.kcert.aaaa.kcert-tmp', '.kcert.aaaab.kcert-tmp']) utimesSync(at(name), 0, 0)
      await node.writeFile(at('f'), 'x', { replaces: 'absent' })
      expect(readdirSync(here)).toEqual(['.kcert.bbbb.kcert-tmp', 'f'])
    })

    test('copies a key and its certificate together, and refuses if either source has changed', async () => {
      for (const name of ['a.crt', 'a.key']) writeFileSync(at(name), `new ${name}`)
      for (const name of ['old.crt', 'old.key']) writeFileSync(at(name), name)
      const replaces = { sha256: sha256('new a.key') }
      const key = { path: at('a.key'), replaces, from: at('old.key'), sha256: sha256('old.key') }
      const options = { replaces: { sha256: sha256('new a.crt') }, sha256: sha256('old.crt') }
      for (const wrong of [
        { ...options, key: { ...key, sha256: sha256('another') } },
        { ...options, key, sha256: sha256('another') },
      ]) {
        await expect(node.copyFile(at('old.crt'), at('a.crt'), wrong)).rejects.toMatchObject({
          code: 'KCERT_NODE_FILE_NOT_WRITTEN',
        })
        expect(readFileSync(at('a.key'), 'utf8')).toBe('new a.key')
      }
      await node.copyFile(at('old.crt'), at('a.crt'), { ...options, key })
      expect(readFileSync(at('a.key'), 'utf8')).toBe('old.key')
      expect(readFileSync(at('a.crt'), 'utf8')).toBe('old.crt')
      expect(readdirSync(here).sort()).toEqual(['a.crt', 'a.key', 'old.crt', 'old.key'])
    })

    test('copies a file on the node, and refuses if the source has changed', async () => {
      writeFileSync(at('ca.key'), 'key', { mode: 0o600 })
      const copied = await node.copyFile(at('ca.key'), at('copy'), {
        replaces: 'absent',
        sha256: sha256('key'),
      })
      expect(copied.changed).toBe(true)
      expect(readFileSync(at('copy'), 'utf8')).toBe('key')
      expect(statSync(at('copy')).mode & 0o777).toBe(0o600)
      await expect(
        node.copyFile(at('ca.key'), at('other'), { replaces: 'absent', sha256: sha256('another') }),
      ).rejects.toMatchObject({ code: 'KCERT_NODE_FILE_NOT_WRITTEN' })
      expect(readdirSync(here)).toEqual(['ca.key', 'copy'])
    })

    test('replaces a link in one step, and only if it has the expected target', async () => {
      const link = (target: string, replaces: Parameters<NodeAccess['linkFile']>[2]['replaces']) =>
        node.linkFile(at('current.pem'), target, { replaces })
      expect(await link('one.pem', 'absent')).toBe(true)
      expect(await link('two.pem', { linkTarget: 'one.pem' })).toBe(true)
      expect(await link('two.pem', { linkTarget: 'one.pem' })).toBe(false)
      await expect(link('three.pem', { linkTarget: 'one.pem' })).rejects.toMatchObject({
        code: 'KCERT_NODE_FILE_CHANGED',
        why: 'it is now a symbolic link to two.pem; the next run plans with this content',
      })
      expect(readlinkSync(at('current.pem'))).toBe('two.pem')
      expect(readdirSync(here)).toEqual(['current.pem'])
    })

    test('moves and removes files only if they are unchanged', async () => {
      writeFileSync(at('a'), 'a')
      const holds = { sha256: sha256('a') }
      renameSync(at('a'), at('b'))
      writeFileSync(at('c'), 'c')
      await expect(node.removeFile(at('c'), { holds })).rejects.toMatchObject({
        code: 'KCERT_NODE_FILE_CHANGED',
      })
      expect(await node.removeFile(at('b'), { holds })).toBe(true)
      expect(await node.removeFile(at('b'), { holds })).toBe(false)
      expect(readdirSync(here)).toEqual(['c'])
    })

    test('creates folders with their mode, and removes empty ones', async () => {
      await node.makeFolder(at('pki/kcert'), { mode: 0o700 })
      await node.makeFolder(at('pki/kcert'), { mode: 0o755 })
      expect(statSync(at('pki/kcert')).mode & 0o777).toBe(0o700)
      expect(statSync(at('pki')).mode & 0o777).toBe(0o755)
      await expect(node.removeFolder(at('pki'))).rejects.toMatchObject({
        code: 'KCERT_NODE_FILE_NOT_WRITTEN',
      })
      expect(await node.removeFolder(at('pki/kcert'))).toBe(true)
      expect(await node.removeFolder(at('pki/kcert'))).toBe(false)
    })

    test('passes arguments and input to a program unchanged, and returns output, errors and status', async () => {
      const odd = ['a b', "'", '"$HOME"', '', '*', 'zwei\nZeilen', '\\n', 'ä']
      const printed = await node.run(['printf', '<%s>', ...odd])
      expect(Buffer.from(printed.stdout).toString()).toBe(odd.map((word) => `<${word}>`).join(''))
      const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) % 256))
      const echoed = await node.run(['sh', '-c', 'cat; echo "no such thing" >&2; exit 3'], { stdin: bytes })
      expect({ ...echoed, stdout: sha256(echoed.stdout) }).toEqual({
        status: 3,
        stdout: sha256(bytes),
        stderr: 'no such thing',
      })
      expect((await node.run(['no-such-program-here'])).status).toBe(127)
      expect((await node.run(['sh', '-c', 'kill -9 $$'])).status).toBe(137)
    })

    test.each(['a timeout', 'an abort'])('%s ends the started program and its children', async (how) => {
      let hasBegun = false
      // Repeat with more time if the time ran out before the program started.
      for (let timeoutMs = 1_000; !hasBegun; timeoutMs *= 4) {
        const seconds = `6${process.pid}${++count}`
        const stubborn = `trap '' TERM; sleep ${seconds} & wait`
        const controller = new AbortController()
        const running = node.run(
          ['sh', '-c', stubborn],
          how === 'a timeout' ? { timeoutMs } : { signal: controller.signal },
        )
        let isOver = false
        const failed = expect(running)
          .rejects.toMatchObject(
            how === 'a timeout' ? { code: 'KCERT_NODE_UNREACHABLE' } : { name: 'AbortError' },
          )
          .finally(() => {
            isOver = true
          })
        await until(() => {
          hasBegun = isRunning(['sleep', seconds])
          return hasBegun || isOver
        })
        controller.abort()
        await failed
        await until(() => !isRunning(['sleep', seconds]))
        expect((await node.run(['true'])).status).toBe(0)
      }
    })

    test('answers many concurrent calls', async () => {
      writeFileSync(at('f'), 'x')
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => node.run(['echo', `${index}`])),
      )
      expect(answers.map(({ stdout }) => Number(Buffer.from(stdout).toString()))).toEqual(
        answers.map((_, index) => index),
      )
    })

    test('finds a process by its program, with its arguments and start time', async () => {
      copyFileSync('/bin/sleep', at('kube-controller-manager'))
      const seconds = `7${process.pid}${++count}`
      const started = Date.now()
      const controller = new AbortController()
      const { signal } = controller
      const running = node.run([at('kube-controller-manager'), seconds], { signal })
      const ended = expect(running).rejects.toMatchObject({ name: 'AbortError' })
      const mine = async () =>
        (await node.processes(['kube-controller-manager', 'etcd'])).filter(({ argv }) => argv[1] === seconds)
      await until(async () => (await mine()).length > 0)
      const [found] = await mine()
      const seen = Date.now()
      expect(found).toMatchObject({
        program: 'kube-controller-manager',
        argv: [at('kube-controller-manager'), seconds],
      })
      expect(found!.startedAt.getTime()).toBeGreaterThan(started - 4_000)
      expect(found!.startedAt.getTime()).toBeLessThan(seen + 4_000)
      expect(readFileSync(`/proc/${found!.pid}/stat`, 'utf8')).toContain(` ${found!.startTicks} `)
      controller.abort()
      await ended
    })

    test("reports the node's clock, space and user", async () => {
      const { aheadMs, roundTripMs } = await node.clock()
      expect(aheadMs.atLeast).toBeLessThanOrEqual(0)
      expect(aheadMs.atMost).toBeGreaterThanOrEqual(0)
      expect(aheadMs.atMost - aheadMs.atLeast).toBeLessThanOrEqual(roundTripMs + 1001)
      const { availableBytes, totalBytes } = await node.freeSpace(here)
      expect(availableBytes).toBeGreaterThan(0)
      expect(totalBytes).toBeGreaterThan(availableBytes)
      const { uid, isRoot, bootId } = await node.identity()
      expect(isRoot).toBe(uid === 0)
      expect(bootId).toBe(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
    })

    test('rejects a path that is not absolute or contains a NUL byte', async () => {
      await expect(node.readFiles(['etc/hosts'])).rejects.toMatchObject({ code: 'KCERT_USAGE' })
      await expect(node.readFiles(['/etc/\0hosts'])).rejects.toMatchObject({ code: 'KCERT_USAGE' })
    })
  })
}

export function isRunning(argv: readonly string[]): boolean {
  return readdirSync('/proc').some((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `${argv.join('\0')}\0`
    } catch {
      return existsSync(`/proc/${pid}/none`)
    }
  })
}

export async function until(claim: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 4_800; tries++) {
    if (await claim()) return
    await wait(50)
  }
  throw new Error('it did not become true within four minutes')
}
