import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { runHooks } from './after-renewal.ts'

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
