import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { kcert } from './program.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

const at = temporaryFolder('explain-error')
const internal =
  'Error from server: Get "https://192.0.2.21:10250/containerLogs/default/web-0/app": remote error: tls: internal error\n'

test('explains a pasted error, with the commands that distinguish its causes', () => {
  const { stdout, stderr, exit } = kcert(['explain-error', '-'], { stdin: internal, env: { COLUMNS: '100' } })
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' })
  expect(stdout).toContain('"tls: internal error"\n')
  expect(stdout).toContain('evidence in the text: 192.0.2.21:10250 is the port of a kubelet')
  expect(stdout).toContain('   $ kcert csr list --pending --signer kubernetes.io/kubelet-serving\n')
  const prose = stdout.split('\n').filter((line) => !line.trimStart().startsWith('$ '))
  for (const line of prose) expect(line.length).toBeLessThanOrEqual(100)
})

test('prints the same text with and without colours', () => {
  const [plain, coloured] = ['0', '1'].map(
    (level) => kcert(['explain-error', '-'], { stdin: internal, env: { FORCE_COLOR: level } }).stdout,
  )
  expect(coloured).not.toBe(plain)
  expect(stripVTControlCharacters(coloured!)).toBe(plain)
})

test('accepts a file, a text in one or more arguments, and a pipe without "-"', () => {
  writeFileSync(join(at, 'error.log'), internal)
  const asFile = kcert(['explain-error', 'error.log', '-o', 'json'], { cwd: at })
  const document = JSON.parse(asFile.stdout) as { source: string; errors: { id: string }[] }
  expect(violations('ErrorExplanation', document)).toEqual([])
  expect(document).toMatchObject({
    source: 'error.log',
    errors: [{ id: 'alert-internal-error', line: 1, count: 1 }],
  })
  const asWords = kcert(['explain-error', 'remote', 'error:', 'tls:', 'internal', 'error', '-o', 'json'], {
    cwd: at,
  })
  expect(JSON.parse(asWords.stdout)).toMatchObject({
    source: 'argument',
    errors: [{ id: 'alert-internal-error' }],
  })
  expect(kcert(['explain-error', 'CERT_HAS_EXPIRED'], { cwd: at }).exit).toBe(0)
  expect(kcert(['explain-error'], { cwd: at, stdin: internal }).exit).toBe(0)
})

test.each([
  [['explain-error', 'the moon is full'], '', 3, 'kcert knows no message in this text'],
  [['explain-error', '-'], ' \n', 2, 'KCERT_USAGE: there is no text to explain'],
  [['explain-error', './no-such.log'], '', 2, 'KCERT_FILE_NOT_FOUND: ./no-such.log does not exist'],
  [
    ['explain-error', '-'],
    'x'.repeat((20 << 20) + 1),
    2,
    'KCERT_FILE_TOO_LARGE: standard input is longer than 20 MiB',
  ],
])('%j exits with the documented code', (args, stdin, exit, words) => {
  const session = kcert(args, { cwd: at, stdin })
  expect(session.exit).toBe(exit)
  expect(session.stdout + session.stderr).toContain(words)
})
