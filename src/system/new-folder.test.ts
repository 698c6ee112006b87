import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newFolder, writeInto } from './new-folder.ts'

const nobody = 65534
const isRoot = process.getuid?.() === 0
const marker = '.unfinished.kcert-tmp'

/** Creates a folder with an empty folder in it, and next to it a file that must stay. */
function prepare() {
  const base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'kcert-new-folder-')))
  onTestFinished(() => fs.rmSync(base, { recursive: true }))
  const [folder, victim] = [join(base, 'out'), join(base, 'elsewhere', 'victim')]
  fs.mkdirSync(folder, { mode: 0o755 })
  fs.mkdirSync(join(base, 'elsewhere'))
  fs.writeFileSync(victim, 'stays')
  const mark = (...names: string[]) => fs.writeFileSync(join(folder, marker), JSON.stringify(names))
  return { base, folder, victim, mark }
}

function refusalOf(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  return 'nothing was thrown'
}

test('removes the files of an interrupted write, and writes there', () => {
  const { folder, mark } = prepare()
  fs.mkdirSync(join(folder, 'cp1'))
  fs.writeFileSync(join(folder, 'cp1', 'ca.key'), 'half')
  mark('cp1/ca.key', 'cp1/run.sh', 'w1/run.sh', 'README.txt')
  newFolder(folder)
  expect(fs.readdirSync(folder)).toEqual([])
  writeInto(folder, [{ path: 'cp1/ca.key', content: 'whole' }])
  expect(fs.readFileSync(join(folder, 'cp1', 'ca.key'), 'utf8')).toBe('whole')
  expect(fs.readdirSync(folder)).toEqual(['cp1'])
})

test.runIf(isRoot)('refuses a folder of another user, and leaves it unchanged', () => {
  const { folder, mark } = prepare()
  mark('README.txt')
  fs.writeFileSync(join(folder, 'README.txt'), 'theirs')
  fs.chownSync(folder, nobody, nobody)
  expect(refusalOf(() => newFolder(folder))).toMatchObject({
    code: 'KCERT_FILE_UNTRUSTED',
    message: `the output folder ${folder} can be changed by other users`,
    why: expect.stringContaining(`the folder ${folder} has owner 65534`),
    fix: 'name a new folder, below one that only you can change',
  })
  expect(fs.readFileSync(join(folder, 'README.txt'), 'utf8')).toBe('theirs')
  expect(fs.statSync(folder).mode & 0o777).toBe(0o755)
})

test.runIf(isRoot)('refuses a list of unfinished files of another user, and removes nothing', () => {
  const { folder, mark } = prepare()
  mark('README.txt')
  fs.writeFileSync(join(folder, 'README.txt'), 'mine')
  fs.chownSync(join(folder, marker), nobody, nobody)
  expect(refusalOf(() => newFolder(folder))).toMatchObject({
    code: 'KCERT_FILE_UNTRUSTED',
    message: `the unfinished write ${join(folder, marker)} can be changed by other users`,
    next: `mv ${join(folder, marker)} ${join(folder, marker)}.stale`,
  })
  expect(fs.readFileSync(join(folder, 'README.txt'), 'utf8')).toBe('mine')
})

test('does not follow a link in place of the list of unfinished files', () => {
  const { base, folder, mark } = prepare()
  mark('README.txt')
  fs.renameSync(join(folder, marker), join(base, 'list'))
  fs.symlinkSync(join(base, 'list'), join(folder, marker))
  fs.writeFileSync(join(folder, 'README.txt'), 'mine')
  expect(refusalOf(() => newFolder(folder))).toMatchObject({ code: 'KCERT_FILE_EXISTS' })
  expect(fs.readFileSync(join(folder, 'README.txt'), 'utf8')).toBe('mine')
})

test('removes nothing through a link in the folder', () => {
  const { base, folder, victim, mark } = prepare()
  fs.symlinkSync(join(base, 'elsewhere'), join(folder, 'cp1'))
  mark('cp1/victim')
  expect(refusalOf(() => newFolder(folder))).toMatchObject({ code: 'KCERT_FILE_EXISTS' })
  expect(fs.readFileSync(victim, 'utf8')).toBe('stays')
})

test.runIf(isRoot)('removes nothing in a folder of another user', () => {
  const { folder, mark } = prepare()
  fs.mkdirSync(join(folder, 'cp1'))
  fs.writeFileSync(join(folder, 'cp1', 'run.sh'), 'theirs')
  fs.chownSync(join(folder, 'cp1'), nobody, nobody)
  mark('cp1/run.sh')
  expect(refusalOf(() => newFolder(folder))).toMatchObject({ code: 'KCERT_FILE_EXISTS' })
  expect(fs.readFileSync(join(folder, 'cp1', 'run.sh'), 'utf8')).toBe('theirs')
})
