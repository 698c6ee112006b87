import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { writeNewFiles } from './new-files.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kcert-new-files-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const fileOf = (name: string, text = `of ${name}`) => ({ path: join(folder, name), text })

test('writes many files completely, readable by all, and leaves no other file', async () => {
  const names = Array.from({ length: 300 }, (_, index) => `${index}.crt`)
  expect(await writeNewFiles(names.map((name) => fileOf(name)))).toEqual(names.map(() => undefined))
  expect(readdirSync(folder).sort()).toEqual([...names].sort())
  for (const name of names) expect(readFileSync(join(folder, name), 'utf8')).toBe(`of ${name}`)
  expect(statSync(join(folder, '7.crt')).mode & 0o777).toBe(0o644)
})

test('keeps existing files, reports those that cannot be written, and writes the others', async () => {
  writeFileSync(join(folder, 'b'), 'mine')
  const failures = await writeNewFiles([fileOf('a'), fileOf('b'), fileOf('no-folder/c'), fileOf('d')])
  const codes = [undefined, 'KCERT_FILE_EXISTS', 'KCERT_FILE_NOT_WRITTEN', undefined]
  expect(failures.map((failure) => failure?.code)).toEqual(codes)
  expect(readFileSync(join(folder, 'b'), 'utf8')).toBe('mine')
  expect(readdirSync(folder).sort()).toEqual(['a', 'b', 'd'])
})
