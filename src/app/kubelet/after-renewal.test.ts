import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { checkPidFile, runHooks } from './after-renewal.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'kcert-after-renewal-')))
afterAll(() => rmSync(folder, { recursive: true }))
const pidFile = join(folder, 'web.pid')

const signal = () => runHooks({ signal: 'TERM', pidFile }, {}, () => {})

test('sends the signal to the process of a PID file, unless other users can change the file', async () => {
  const child = spawn('sleep', ['60'])
  const exited = once(child, 'exit')
  writeFileSync(pidFile, `${child.pid}\n`)
  chmodSync(pidFile, 0o666)
  await expect(signal()).rejects.toMatchObject({
    code: 'KCERT_HOOK_FAILED',
    why: expect.stringMatching(/^the PID file .* can be changed by other users: the file .* mode 0666/),
  })
  expect([child.exitCode, child.signalCode]).toEqual([null, null])
  chmodSync(pidFile, 0o644)
  await signal()
  expect(await exited).toEqual([null, 'SIGTERM'])
})

test.each(['', '0', '-1', '1.5', 'x', '12345678901'])(
  'sends no signal for the process ID %j',
  async (text) => {
    writeFileSync(pidFile, text, { mode: 0o644 })
    await expect(signal()).rejects.toMatchObject({ why: 'the file contains no process ID' })
  },
)

test('checks before the first renewal whether other users can change the PID file or its folder', () => {
  const shared = join(folder, 'shared')
  mkdirSync(shared)
  chmodSync(shared, 0o777)
  const refused = expect.objectContaining({
    code: 'KCERT_FILE_UNTRUSTED',
    fix: expect.stringContaining('use --exec instead of --signal'),
  })
  expect(() => checkPidFile(join(shared, 'later.pid'))).toThrow(refused)
  chmodSync(shared, 0o755)
  checkPidFile(join(shared, 'later.pid'))
  checkPidFile(join(folder, 'later/web.pid'))
  writeFileSync(pidFile, '1')
  chmodSync(pidFile, 0o666)
  expect(() => checkPidFile(pidFile)).toThrow(refused)
})
