import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fileFunctions } from '../../src/node/node-script.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'

const folder = temporaryFolder('file-functions')

test('file functions work in a script without a session, where kc_fail is redefined', () => {
  const source = join(folder, 'source')
  writeFileSync(source, 'content')
  const digest = createHash('sha256').update('content').digest('hex')
  const script = `${fileFunctions}
kc_fail() { echo "$1"; exit 9; }
cd '${folder}'
kc_mkdir "$PWD/new" 755
kc_write "$PWD/new/file" n1 absent ${digest} 640 '' "$PWD/source"
kc_link "$PWD/new/link" n2 file absent
kc_remove "$PWD/source" sum:${digest}
(kc_write "$PWD/new/file" n3 absent 0 640 '' "$PWD/new/link")
kc_rmdir "$PWD/nothing"
`
  const path = join(folder, 'new/file')
  expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' })).toBe(
    `wrote absent\npath ${path}\nwrote\nremoved\nchanged\nabsent\n`,
  )
  expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual(['content', 0o640])
  expect(readlinkSync(join(folder, 'new/link'))).toBe('file')
  expect(existsSync(source)).toBe(false)
})
