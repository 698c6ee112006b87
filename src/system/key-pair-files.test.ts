import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { FileCalls } from './atomic-file.ts'
import { finishKeyPair, isKeyPairPending, writeKeyPair } from './key-pair-files.ts'

function folder(): string {
  const path = fs.mkdtempSync(join(tmpdir(), 'kcert-pair-'))
  onTestFinished(() => fs.rmSync(path, { recursive: true }))
  return path
}

/**
 * Returns calls of which the given one fails, counted from 1. With `dies`, all later calls fail too, as if the machine had
 * stopped.
 */
function failingCalls(failing: number, dies: boolean): { calls: FileCalls; count: () => number } {
  let count = 0
  const calls = new Proxy(fs as FileCalls, {
    get: (target, name: keyof FileCalls) => {
      return (...args: unknown[]) => {
        count++
        const fails = count === failing || (dies && count > failing)
        if (fails) throw Object.assign(new Error(`EIO at ${name}`), { code: 'EIO' })
        return (target[name] as (...all: unknown[]) => unknown)(...args)
      }
    },
  })
  return { calls, count: () => count }
}

interface Case {
  readonly at: string
  readonly before: boolean
}

function prepare({ at, before }: Case) {
  const [certificate, key] = [join(at, 'ca.pem'), join(at, 'ca-key.pem')]
  if (before) {
    fs.writeFileSync(certificate, 'old certificate', { mode: 0o640 })
    fs.writeFileSync(key, 'old key', { mode: 0o644 })
  }
  const write = (calls?: FileCalls) =>
    writeKeyPair(
      { path: certificate, content: 'new certificate' },
      { path: key, content: 'new key' },
      { replace: before },
      calls,
    )
  const read = (path: string) => (fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : 'none')
  return { certificate, key, write, state: () => `${read(certificate)}, ${read(key)}` }
}

const callsOfOneWrite = (before: boolean): number => {
  const counting = failingCalls(0, false)
  prepare({ at: folder(), before }).write(counting.calls)
  return counting.count()
}

test.each([false, true])('writes a pair, the key with mode 0600 (existing pair: %s)', (before) => {
  const at = folder()
  const { certificate, key, write, state } = prepare({ at, before })
  write()
  expect(state()).toBe('new certificate, new key')
  expect(fs.statSync(key).mode & 0o777).toBe(0o600)
  expect(fs.statSync(certificate).mode & 0o777).toBe(before ? 0o640 : 0o644)
  expect(fs.readdirSync(at).sort()).toEqual(['ca-key.pem', 'ca.pem'])
})

test.each([false, true])(
  'leaves both files old or both new after finishing, whichever call the machine stops at (existing pair: %s)',
  (before) => {
    const old = before ? 'old certificate, old key' : 'none, none'
    const seen = new Set<string>()
    for (let failing = 1; failing <= callsOfOneWrite(before); failing++) {
      const { certificate, write, state } = prepare({ at: folder(), before })
      try {
        write(failingCalls(failing, true).calls)
      } catch {
        // The machine stopped.
      }
      seen.add(`finished: ${finishKeyPair(certificate)}`)
      expect([old, 'new certificate, new key'], `stopped at call ${failing}`).toContain(state())
      seen.add(state())
      expect(isKeyPairPending(certificate)).toBe(false)
    }
    expect([...seen].sort()).toEqual(
      [
        old,
        'new certificate, new key',
        'finished: undefined',
        'finished: finished',
        'finished: forgotten',
      ].sort(),
    )
  },
)

test.each([false, true])(
  'leaves both files unchanged when a call fails, unless the error came after both were new (existing pair: %s)',
  (before) => {
    const old = before ? 'old certificate, old key' : 'none, none'
    for (let failing = 1; failing <= callsOfOneWrite(before); failing++) {
      const { certificate, write, state } = prepare({ at: folder(), before })
      let failed = false
      try {
        write(failingCalls(failing, false).calls)
      } catch {
        failed = true
      }
      finishKeyPair(certificate)
      expect(
        failed ? [old, 'new certificate, new key'] : ['new certificate, new key'],
        `call ${failing}`,
      ).toContain(state())
    }
  },
)

test('finishes the pair later when the certificate cannot be written and the new key cannot be removed', () => {
  const { certificate, key, write, state } = prepare({ at: folder(), before: false })
  const calls = new Proxy(fs as FileCalls, {
    get: (target, name: keyof FileCalls) => {
      return (...args: unknown[]) => {
        const isRefused =
          (name === 'linkSync' && args[1] === certificate) || (name === 'unlinkSync' && args[0] === key)
        if (isRefused) throw Object.assign(new Error('EIO'), { code: 'EIO' })
        return (target[name] as (...all: unknown[]) => unknown)(...args)
      }
    },
  })
  expect(() => write(calls)).toThrow(`${certificate} could not be written`)
  expect(state()).toBe('none, new key')
  expect([finishKeyPair(certificate), state()]).toEqual(['finished', 'new certificate, new key'])
})

test('touches neither file when one exists and replacing is not allowed', () => {
  for (const there of ['ca.pem', 'ca-key.pem']) {
    const at = folder()
    fs.writeFileSync(join(at, there), 'mine')
    const { write } = prepare({ at, before: false })
    expect(write).toThrow(`${join(at, there)} exists and is not replaced`)
    expect(fs.readdirSync(at)).toEqual([there])
  }
})

const nobody = 65534
const isRoot = process.getuid?.() === 0

/** Writes a note that would put another certificate in place. The digest of any readable file satisfies it. */
function plant(at: string): { note: string; certificate: string } {
  const [note, certificate, key] = ['.ca.pem.pair.kcert-tmp', 'ca.pem', 'ca-key.pem'].map((name) =>
    join(at, name),
  ) as [string, string, string]
  fs.writeFileSync(certificate, 'old certificate')
  fs.writeFileSync(key, 'old key')
  const keySha256 = createHash('sha256').update('old key').digest('hex')
  fs.writeFileSync(note, JSON.stringify({ certificate: 'planted', keyPath: key, keySha256, mode: 0o644 }))
  return { note, certificate }
}

test.runIf(isRoot).each([
  ['of another user', (note: string) => fs.chownSync(note, nobody, nobody)],
  ['that other users can write to', (note: string) => fs.chmodSync(note, 0o666)],
  ['in a folder of another user', (note: string) => fs.chownSync(join(note, '..'), nobody, nobody)],
])('does not finish a pair from a note %s', (_, spoil) => {
  const { note, certificate } = plant(folder())
  spoil(note)
  expect(() => finishKeyPair(certificate)).toThrow(
    expect.objectContaining({
      code: 'KCERT_FILE_UNTRUSTED',
      message: `the unfinished write ${note} can be changed by other users`,
      next: `mv ${note} ${note}.stale`,
    }),
  )
  expect(fs.readFileSync(certificate, 'utf8')).toBe('old certificate')
  fs.renameSync(note, `${note}.stale`)
  expect(finishKeyPair(certificate)).toBeUndefined()
})

test('does not follow a link in place of a note, neither to finish a pair nor to write one', () => {
  const at = folder()
  const { note, certificate } = plant(at)
  const target = join(at, 'target')
  fs.renameSync(note, target)
  fs.symlinkSync(target, note)
  const before = fs.readFileSync(target, 'utf8')
  expect(finishKeyPair(certificate)).toBeUndefined()
  expect(prepare({ at, before: true }).write).toThrow(`${note} is a symbolic link`)
  expect(fs.readFileSync(target, 'utf8')).toBe(before)
})

test.runIf(isRoot)("does not take the owner and mode of a new note from another user's note", () => {
  const at = folder()
  const { note } = plant(at)
  fs.chownSync(note, nobody, nobody)
  fs.chmodSync(note, 0o666)
  const { write } = prepare({ at, before: true })
  const calls = new Proxy(fs as FileCalls, {
    get: (target, name: keyof FileCalls) => (name === 'unlinkSync' ? () => {} : target[name]),
  })
  write(calls)
  expect(fs.statSync(note)).toMatchObject({ uid: 0, mode: 0o100600 })
})

test('finishes a pair whose key name is not ASCII', () => {
  const at = folder()
  const [certificate, key] = [join(at, 'ca.pem'), join(at, 'schlüssel.pem')]
  const calls = new Proxy(fs as FileCalls, {
    get: (target, name: keyof FileCalls) => (name === 'unlinkSync' ? () => {} : target[name]),
  })
  writeKeyPair(
    { path: certificate, content: 'new' },
    { path: key, content: 'key' },
    { replace: false },
    calls,
  )
  fs.unlinkSync(certificate)
  expect([finishKeyPair(certificate), fs.readFileSync(certificate, 'utf8')]).toEqual(['finished', 'new'])
})

test('discards an invalid note', () => {
  const at = folder()
  const certificate = join(at, 'ca.pem')
  for (const note of ['', 'x', '{}', '{"certificate":1,"keyPath":2,"keySha256":3}', 'null']) {
    fs.writeFileSync(join(at, '.ca.pem.pair.kcert-tmp'), note)
    expect(finishKeyPair(certificate)).toBe('forgotten')
  }
  expect(fs.readdirSync(at)).toEqual([])
})
