import { spawn, spawnSync } from 'node:child_process'
import nodeCrypto, { createHash } from 'node:crypto'
import nodeFs, * as fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { hostname, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import timers from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryName } from './leftovers.ts'
import { acquireLock, lockPath, withLock } from './lock.ts'
import { processNamespace, startedTicksOf, bootId as thisBoot } from './process-identity.ts'

const namespace = processNamespace()

function pathIn(): string {
  const folder = fs.mkdtempSync(join(tmpdir(), 'kcert-lock-'))
  onTestFinished(() => fs.rmSync(folder, { recursive: true }))
  return join(folder, 'ca.pem')
}

/** Returns the name of this process's claim on a dead lock. */
function claimOn(path: string): string {
  const digest = createHash('sha256')
    .update(basename(lockPath(path)))
    .digest('hex')
  return temporaryName(`claim-${digest.slice(0, 16)}`)
}

/** Replaces functions of a built-in module until the end of the test. */
function replace<Module extends object>(module: Module, functions: Partial<Module>): void {
  const before = { ...functions }
  for (const name in before) before[name] = module[name]
  const put = (by: Partial<Module>): void => {
    Object.assign(module, by)
    syncBuiltinESMExports()
  }
  onTestFinished(() => put(before))
  put(functions)
}

/** Returns the durations of all pauses in this test. A pause takes no time. */
function pausesOf(): unknown[] {
  const pauses: unknown[] = []
  replace(timers, {
    setTimeout: async <Value>(ms?: number, value?: Value) => {
      if (pauses.push(ms) > 1000) throw new Error('it waits without end')
      return value as Value
    },
  })
  return pauses
}

test('runs actions under the lock one after the other, and leaves no file', async () => {
  const path = pathIn()
  let inside = 0
  let most = 0
  const act = async () => {
    most = Math.max(most, ++inside)
    await new Promise((resolve) => setTimeout(resolve, 5))
    inside--
  }
  await Promise.all(Array.from({ length: 8 }, () => withLock(path, act)))
  expect(most).toBe(1)
  expect(fs.readdirSync(join(path, '..'))).toEqual([])
})

test('releases the lock when the action fails', async () => {
  const path = pathIn()
  await expect(withLock(path, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await withLock(path, () => 'yes', 0)).toBe('yes')
})

test('waits for a held lock until the time is over', async () => {
  const path = pathIn()
  const pauses = pausesOf()
  const held = await acquireLock(path, 0)
  await expect(acquireLock(path, 100)).rejects.toMatchObject({ code: 'KCERT_LOCKED' })
  expect(pauses).toEqual([25, 25, 25, 25])
  held[Symbol.dispose]()
})

test('gives up waiting for a held lock, and names its holder', async () => {
  const path = pathIn()
  const second = withLock(path, () => withLock(path, () => 'never', 100))
  await expect(second).rejects.toThrow(`${path} is in use by another kcert`)
  await expect(second).rejects.toMatchObject({
    why: expect.stringContaining(`process ${process.pid} on ${hostname()}`),
  })
})

test('takes over the lock of a killed process', async () => {
  const path = pathIn()
  const script = `import { withLock } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))}
    await withLock(${JSON.stringify(path)}, () => { console.log('held'); return new Promise((r) => setTimeout(r, 60_000)) })`
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise((resolve) => holder.stdout.once('data', resolve))
  await expect(withLock(path, () => 'ours', 100)).rejects.toThrow('in use')
  holder.kill('SIGKILL')
  await new Promise((resolve) => holder.once('exit', resolve))
  // Taking over from a dead process needs no waiting time.
  expect(await withLock(path, () => 'ours', 0)).toBe('ours')
})

test('takes over a dead lock whose process id is used again', async () => {
  const path = pathIn()
  const bootId = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const holder = { pid: process.pid, host: hostname(), namespace, bootId, startedTicks: '1', token: 'x' }
  fs.writeFileSync(lockPath(path), JSON.stringify(holder))
  expect(await withLock(path, () => 'ours', 0)).toBe('ours')
})

test.each([
  ['another machine', JSON.stringify({ pid: 1, host: 'elsewhere', bootId: '', startedTicks: '', token: '' })],
  [
    'a container that has the name of this machine',
    JSON.stringify({
      pid: 2 ** 30,
      host: hostname(),
      namespace: 'pid:[1]',
      bootId: '',
      startedTicks: '1',
      token: '',
    }),
  ],
  ['an unreadable holder', 'nonsense'],
])('keeps the lock of %s, and shows the command that moves it away', async (_, content) => {
  const path = pathIn()
  fs.writeFileSync(lockPath(path), content)
  await expect(withLock(path, () => 'ours', 100)).rejects.toMatchObject({
    code: 'KCERT_LOCKED',
    next: expect.stringContaining(`mv ${lockPath(path)} ${lockPath(path)}.stale`),
  })
  expect(fs.readFileSync(lockPath(path), 'utf8')).toBe(content)
})

test('many processes that find the same dead lock count to the same number', () => {
  const path = pathIn()
  const counter = `${path}.counter`
  fs.writeFileSync(counter, '0')
  const bootId = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  fs.writeFileSync(
    lockPath(path),
    JSON.stringify({ pid: 2 ** 30, host: hostname(), namespace, bootId, startedTicks: '1', token: 'x' }),
  )
  const script = `import { readFileSync, writeFileSync } from 'node:fs'
    import { withLock } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))}
    for (let i = 0; i < 10; i++) await withLock(${JSON.stringify(path)}, () => {
      const n = Number(readFileSync(${JSON.stringify(counter)}, 'utf8'))
      writeFileSync(${JSON.stringify(counter)}, String(n + 1))
    })`
  const file = `${path}.mjs`
  fs.writeFileSync(file, script)
  const command = Array.from({ length: 6 }, () => `"${process.execPath}" "${file}" &`).join(' ')
  const { status, stderr } = spawnSync('sh', ['-c', `${command} wait`], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
  expect(fs.readFileSync(counter, 'utf8')).toBe('60')
})

test('takes over the lock when a process died during its own takeover', async () => {
  const path = pathIn()
  const bootId = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const dead = { pid: 2 ** 30, host: hostname(), namespace, bootId, startedTicks: '1', token: 'x' }
  fs.writeFileSync(lockPath(path), JSON.stringify(dead))
  const script = `import { withLock } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))}
    await withLock(${JSON.stringify(path)}, () => {})`
  // The process is killed in the call that removes the dead lock, so its claim remains.
  const preload = `${path}.cjs`
  fs.writeFileSync(
    preload,
    `const fs = require('node:fs')
    const unlinkSync = fs.unlinkSync
    fs.unlinkSync = (name) => (name.endsWith('.lock.kcert-tmp') ? process.kill(process.pid, 'SIGKILL') : unlinkSync(name))
    require('node:module').syncBuiltinESMExports()`,
  )
  const { signal } = spawnSync(process.execPath, ['-r', preload, '--input-type=module', '-e', script])
  expect(signal).toBe('SIGKILL')
  expect(fs.readdirSync(join(path, '..')).filter((name) => name.startsWith('.claim-'))).toHaveLength(1)
  expect(await withLock(path, () => 'ours', 0)).toBe('ours')
})

const dead = {
  pid: 2 ** 30,
  host: hostname(),
  namespace,
  bootId: thisBoot(),
  startedTicks: '1',
  token: 'x',
}

test('leaves a dead lock to a running process that claims it, and takes over when that process is gone', async () => {
  const path = pathIn()
  const lock = lockPath(path)
  fs.writeFileSync(lock, JSON.stringify(dead))
  const claim = join(dirname(path), claimOn(path))
  const other = join(dirname(path), temporaryName('claim-0123456789abcdef'))
  fs.writeFileSync(claim, '')
  fs.writeFileSync(other, '')
  // No waiting time: withdrawals do not count as waiting.
  const ours = withLock(path, () => 'ours', 0)
  await new Promise((resolve) => setTimeout(resolve, 150))
  expect(fs.readFileSync(lock, 'utf8')).toBe(JSON.stringify(dead))
  fs.rmSync(claim)
  expect(await ours).toBe('ours')
  expect(fs.readdirSync(dirname(path))).toEqual([basename(other)])
})

test('does not wait forever for a claim that remains', async () => {
  const path = pathIn()
  const pauses = pausesOf()
  fs.writeFileSync(join(dirname(path), claimOn(path)), '')
  fs.writeFileSync(lockPath(path), JSON.stringify(dead))
  await expect(withLock(path, () => 'ours', 0)).rejects.toMatchObject({ code: 'KCERT_LOCKED' })
  expect(fs.readFileSync(lockPath(path), 'utf8')).toBe(JSON.stringify(dead))
  expect(pauses).toHaveLength(200)
})

test('refuses a held lock at once when the caller does not wait, and makes no claim on it', async () => {
  const path = pathIn()
  const written: unknown[] = []
  const { writeFileSync } = nodeFs
  const held = await acquireLock(path, 0)
  replace(nodeFs, {
    writeFileSync: (file, ...rest) => {
      written.push(file)
      writeFileSync(file, ...rest)
    },
  })
  const second = acquireLock(path, 0)
  held[Symbol.dispose]()
  await expect(second).rejects.toMatchObject({ code: 'KCERT_LOCKED' })
  expect(written).toEqual([expect.stringContaining('/.lock.')])
})

test('acquires a lock that its holder releases at the same moment', async () => {
  const path = pathIn()
  const { linkSync } = nodeFs
  const held = await acquireLock(path, 0)
  replace(nodeFs, {
    linkSync: (...args) => {
      try {
        linkSync(...args)
      } finally {
        held[Symbol.dispose]()
      }
    },
  })
  expect(await withLock(path, () => 'ours', 0)).toBe('ours')
})

test('acquires a lock that its holder releases when the wait is over', async () => {
  const path = pathIn()
  const { openSync } = nodeFs
  const held = await acquireLock(path, 0)
  let reads = 0
  replace(nodeFs, {
    openSync: (file, ...rest) => {
      // The second read is for the name of the holder.
      if (file === lockPath(path) && ++reads === 2) fs.unlinkSync(file)
      return openSync(file, ...rest)
    },
  })
  expect(await withLock(path, () => 'ours', 0)).toBe('ours')
  held[Symbol.dispose]()
})

test('keeps the lock of a process that took over first', async () => {
  const path = pathIn()
  const alive = JSON.stringify({ ...dead, pid: process.pid, startedTicks: startedTicksOf(process.pid) })
  fs.writeFileSync(lockPath(path), JSON.stringify(dead))
  const { readdirSync } = nodeFs
  replace(nodeFs, {
    readdirSync: ((folder: string) => {
      fs.writeFileSync(lockPath(path), alive)
      return readdirSync(folder)
    }) as typeof readdirSync,
  })
  await expect(withLock(path, () => 'ours', 0)).rejects.toMatchObject({ code: 'KCERT_LOCKED' })
  expect(fs.readFileSync(lockPath(path), 'utf8')).toBe(alive)
})

test('reports a dead lock that cannot be removed', async () => {
  const path = pathIn()
  fs.writeFileSync(lockPath(path), JSON.stringify(dead))
  const { unlinkSync } = nodeFs
  replace(nodeFs, {
    unlinkSync: (file) => {
      if (file === lockPath(path)) throw new Error('EPERM: operation not permitted, unlink')
      unlinkSync(file)
    },
  })
  await expect(withLock(path, () => 'ours', 0)).rejects.toMatchObject({
    code: 'KCERT_FILE_NOT_WRITTEN',
    message: `cannot lock ${path}`,
    why: 'EPERM: operation not permitted, unlink',
  })
})

test.each([
  ['lock', () => temporaryName('lock'), 'ours'],
  ['claim', claimOn, 'KCERT_FILE_NOT_WRITTEN'],
])('does not write through a symbolic link in place of its new %s', async (_, nameOf, outcome) => {
  const path = pathIn()
  const target = `${path}.target`
  fs.writeFileSync(target, 'theirs')
  fs.writeFileSync(lockPath(path), JSON.stringify(dead))
  replace(nodeCrypto, {
    randomBytes: ((size: number) => Buffer.alloc(size)) as typeof nodeCrypto.randomBytes,
  })
  fs.symlinkSync(target, join(dirname(path), nameOf(path)))
  expect(await withLock(path, () => 'ours', 0).catch(({ code }) => code)).toBe(outcome)
  expect(fs.readFileSync(target, 'utf8')).toBe('theirs')
})

test('takes over a lock of an earlier boot, and leaves no file', async () => {
  const path = pathIn()
  const own = { pid: process.pid, startedTicks: startedTicksOf(process.pid) }
  fs.writeFileSync(lockPath(path), JSON.stringify({ ...dead, ...own, bootId: 'earlier' }))
  expect(await withLock(path, () => fs.statSync(lockPath(path)).mode & 0o777, 0)).toBe(0o600)
  expect(fs.readdirSync(dirname(path))).toEqual([])
})

test.each([
  ['another machine, with all else equal', { ...dead, host: 'elsewhere' }],
  ['process id 0', { ...dead, pid: 0 }],
  ['a negative process id', { ...dead, pid: -1 }],
  ['a process id that is not a number', { ...dead, pid: '1073741824' }],
  ['nothing', null],
])('does not take over the lock of %s', async (_, holder) => {
  const path = pathIn()
  fs.writeFileSync(lockPath(path), JSON.stringify(holder))
  await expect(withLock(path, () => 'ours', 0)).rejects.toMatchObject({ code: 'KCERT_LOCKED' })
  expect(fs.readFileSync(lockPath(path), 'utf8')).toBe(JSON.stringify(holder))
})

test('keeps a lock that another process put in its place', async () => {
  const path = pathIn()
  await withLock(path, () => fs.writeFileSync(lockPath(path), 'theirs'))
  expect(fs.readFileSync(lockPath(path), 'utf8')).toBe('theirs')
})

test('locks a file whose name has the maximum length', async () => {
  expect(await withLock(join(dirname(pathIn()), 'a'.repeat(255)), () => 'ours', 0)).toBe('ours')
})

test('reports a folder in which no file can be created', async () => {
  const path = `${pathIn()}/not/there`
  await expect(withLock(path, () => 'x')).rejects.toMatchObject({
    code: 'KCERT_FILE_NOT_WRITTEN',
    message: `cannot lock ${path}`,
    why: expect.stringContaining('ENOENT'),
    next: `ls -ld ${dirname(path)}`,
  })
})

test.each([
  ['a FIFO', (lock: string) => void spawnSync('mkfifo', [lock])],
  [
    'a symbolic link to a FIFO',
    (lock: string) => {
      spawnSync('mkfifo', [`${lock}.fifo`])
      fs.symlinkSync(`${lock}.fifo`, lock)
    },
  ],
  ['a folder', (lock: string) => fs.mkdirSync(lock)],
  ['a dangling symbolic link', (lock: string) => fs.symlinkSync('/nonexistent', lock)],
])('refuses %s in place of a lock file at once', async (_, make) => {
  const path = pathIn()
  make(lockPath(path))
  const pauses = pausesOf()
  await expect(withLock(path, () => 'ours')).rejects.toMatchObject({
    code: 'KCERT_LOCKED',
    why: `${lockPath(path)} is not a lock file of kcert`,
  })
  expect(pauses).toEqual([])
})
