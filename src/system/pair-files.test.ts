import * as fs from 'node:fs'
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { pairFiles } from './pair-files.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kcert-pairs-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const at = (name: string): string => join(folder, name)
const names = [
  'mkdirSync',
  'openSync',
  'writeSync',
  'fsyncSync',
  'linkSync',
  'unlinkSync',
  'symlinkSync',
  'renameSync',
] as const

const real: Readonly<Record<string, unknown>> = { ...fs }

/** Returns the system's calls, where the call with this number and all later ones fail, as if the machine had crashed. */
function failingFrom(number: number) {
  let count = 0
  const calls = { ...real }
  for (const name of names) {
    const call = real[name] as (...args: unknown[]) => unknown
    calls[name] = (...args: unknown[]) => {
      if (++count >= number) throw new Error(`power cut before ${name}`)
      return call(...args)
    }
  }
  return { files: pairFiles(calls as unknown as typeof fs), isReached: () => count >= number }
}

/** Performs one renewal, as `PairStore.update` does. */
function renew(files: ReturnType<typeof pairFiles>, text: string, name: string): void {
  files.writeNew(at(name), text)
  files.pointLink(at('a-current.pem'), at(name), at('a-updated.pem'))
}

test('after a stop at any call, the link leads to the complete old or new pair, and the next renewal works', () => {
  renew(pairFiles(), 'pair 0', 'a-0.pem')
  let current = 'pair 0'
  const seen = new Set<string>()
  for (let number = 1; ; number++) {
    const text = `pair ${number}`
    const { files, isReached } = failingFrom(number)
    try {
      renew(files, text, `a-${number}.pem`)
    } catch {
      // The effect of a power failure.
    }
    const found = readFileSync(at('a-current.pem'), 'utf8')
    expect([current, text]).toContain(found)
    seen.add(found === text ? 'new' : 'old')
    if (!isReached()) break
    renew(pairFiles(), `after ${number}`, `a-after-${number}.pem`)
    current = readFileSync(at('a-current.pem'), 'utf8')
    expect(current).toBe(`after ${number}`)
    expect(existsSync(at('a-updated.pem'))).toBe(false)
  }
  expect(seen).toEqual(new Set(['old', 'new']))
  // Partial files remain only where a crash left their names.
  expect(readdirSync(folder).filter((name) => name.endsWith('.pem')).length).toBeGreaterThan(10)
})

test('a reader always finds a pair during twenty renewals', () => {
  renew(pairFiles(), 'pair', 'a-0.pem')
  const observing = { ...real }
  let observations = 0
  for (const name of names) {
    const call = real[name] as (...args: unknown[]) => unknown
    observing[name] = (...args: unknown[]) => {
      const result = call(...args)
      expect(readFileSync(at('a-current.pem'), 'utf8')).toBe('pair')
      observations++
      return result
    }
  }
  const files = pairFiles(observing as unknown as typeof fs)
  for (let number = 1; number < 20; number++) renew(files, 'pair', `a-${number}.pem`)
  expect(observations).toBeGreaterThan(100)
})

test('creates a pair with mode 0600, its folder with mode 0755, and an absolute link', () => {
  const deep = join(folder, 'b', 'c')
  pairFiles().writeNew(join(deep, 'x.pem'), 'text')
  pairFiles().pointLink(join(deep, 'x-current.pem'), join(deep, 'x.pem'), join(deep, 'x-updated.pem'))
  expect(statSync(join(deep, 'x.pem')).mode & 0o777).toBe(0o600)
  expect(statSync(deep).mode & 0o777).toBe(0o755 & ~process.umask())
  expect(readlinkSync(join(deep, 'x-current.pem'))).toBe(join(deep, 'x.pem'))
  expect(lstatSync(join(deep, 'x-current.pem')).isSymbolicLink()).toBe(true)
})

test('nudge notifies watchers of a file, and changes neither content nor times', async () => {
  pairFiles().writeNew(at('x.pem'), 'one')
  const before = statSync(at('x.pem'))
  const watcher = fs.watch(at('x.pem'))
  const changed = new Promise((done) => watcher.once('change', done))
  pairFiles().nudge(at('x.pem'))
  await changed
  watcher.close()
  const after = statSync(at('x.pem'))
  expect(Math.abs(after.mtimeMs - before.mtimeMs)).toBeLessThan(1)
  expect(readFileSync(at('x.pem'), 'utf8')).toBe('one')
  pairFiles().nudge(at('gone.pem'))
  expect(pairFiles().namesIn(at('gone'))).toEqual([])
})

test('does not overwrite an existing pair', () => {
  pairFiles().writeNew(at('x.pem'), 'one')
  expect(() => pairFiles().writeNew(at('x.pem'), 'two')).toThrow(/exists and is not replaced/)
  expect(readFileSync(at('x.pem'), 'utf8')).toBe('one')
})
