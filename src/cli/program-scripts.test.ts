import { chmodSync, chownSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../test/scripts/temporary-folder.ts'
import { scriptsOf } from './program-scripts.ts'

// Compiled code is looked up in a folder, and who owns a folder above it could put another one in its place in between.

const folder = temporaryFolder('code-cache')
let count = 0

/** Returns a cache with the code of a script of the same length, as V8 compares nothing else, and one script to run. */
function swappedCache(prepare: (kept: string) => void): { readonly who: unknown } {
  const at = join(folder, String(++count))
  const scripts = (who: string, cache: string) => {
    const dist = join(at, `dist-${who}/`)
    mkdirSync(dist, { recursive: true })
    writeFileSync(`${dist}a.js`, `exports.who = '${who}'\n`)
    mkdirSync(join(at, cache), { mode: 0o700 })
    return scriptsOf(dist, 'build', { XDG_CACHE_HOME: join(at, cache) })
  }
  const poisoning = scripts('bad', 'evil')
  poisoning.load('a.js')
  poisoning.keepCode()
  const evil = join(at, 'evil/kcert')
  const [kept = ''] = readdirSync(evil)
  prepare(join(evil, kept))
  const running = scripts('own', 'cache')
  // The folder was looked at, and no code of it has been read.
  renameSync(join(at, 'cache/kcert'), join(at, 'before'))
  renameSync(evil, join(at, 'cache/kcert'))
  return running.load('a.js') as { readonly who: unknown }
}

test('code of the caller is run without being compiled, so whose it is decides', () => {
  expect(swappedCache(() => {}).who).toBe('bad')
})

test('code that others may write is not run from a folder that was swapped in', () => {
  expect(swappedCache((kept) => chmodSync(kept, 0o666)).who).toBe('own')
})

test.runIf(process.geteuid?.() === 0)(
  'code of another user is not run from a folder that was swapped in',
  () => {
    expect(swappedCache((kept) => chownSync(kept, 65_534, 65_534)).who).toBe('own')
  },
)

test('a link in the place of the code is not followed', () => {
  const target = join(folder, 'elsewhere')
  expect(
    swappedCache((kept) => {
      renameSync(kept, target)
      symlinkSync(target, kept)
    }).who,
  ).toBe('own')
})
