import { chmodSync, chownSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../test/scripts/temporary-folder.ts'
import { scriptsOf } from './program-scripts.ts'

// Compiled code is read from a cache folder. The owner of a parent folder could replace it between the check and the read.

const folder = temporaryFolder('code-cache')
let count = 0

/** Returns a cache with the code of a script of the same length, because V8 compares only lengths, and a script to run. */
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
  // The folder was checked, and no code in it has been read.
  renameSync(join(at, 'cache/kcert'), join(at, 'before'))
  renameSync(evil, join(at, 'cache/kcert'))
  return running.load('a.js') as { readonly who: unknown }
}

test("the caller's compiled code runs without a comparison with the script, so its owner must be checked", () => {
  expect(swappedCache(() => {}).who).toBe('bad')
})

test('does not run world-writable code from a swapped folder', () => {
  expect(swappedCache((kept) => chmodSync(kept, 0o666)).who).toBe('own')
})

test.runIf(process.geteuid?.() === 0)("does not run another user's code from a swapped folder", () => {
  expect(swappedCache((kept) => chownSync(kept, 65_534, 65_534)).who).toBe('own')
})

test('does not follow a link in place of the code', () => {
  const target = join(folder, 'elsewhere')
  expect(
    swappedCache((kept) => {
      renameSync(kept, target)
      symlinkSync(target, kept)
    }).who,
  ).toBe('own')
})
