import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { requestFlags } from '../../src/app/csr/request-flags.ts'
import { requestQuestions } from '../../src/app/csr/request-questions.ts'
import { readPem } from '../../src/x509/pem.ts'
import { CertificateRequest } from '../../src/x509/request.ts'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

const folder = temporaryFolder('csr-questions')
const enter = '\r'
const down = '\u001b[B'

test('has a flag for every question', () => {
  expect(requestQuestions.length).toBeGreaterThan(10)
  for (const { flag } of requestQuestions) expect(Object.keys(requestFlags)).toContain(flag)
  const purposes = requestQuestions[0]!
  for (const { value } of 'choices' in purposes ? purposes.choices : [])
    expect(Object.keys(requestFlags)).toContain(value)
})

test('asks no question without a terminal', () => {
  expect(kcert(['csr', 'create'])).toMatchObject({
    stdout: '',
    stderr: expect.stringMatching(/^KCERT_USAGE: /),
    exit: 2,
  })
})

const hasTerminal = spawnSync('script', ['--version']).status === 0

/** Runs `kcert csr create` on a separate terminal. Each answer is typed when its question appears. */
function answering(
  dialogue: readonly (readonly [question: string, keys: string])[],
): Promise<{ shown: string; exit: number | null }> {
  return new Promise((resolve) => {
    const command = `${process.execPath} ${join(process.cwd(), 'bin/run.js')} csr create`
    const child = spawn('script', ['-qefc', command, '/dev/null'], {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: '/nonexistent', TERM: 'xterm', COLUMNS: '120', LINES: '40' },
    })
    let shown = ''
    let searched = 0
    const left = [...dialogue]
    child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString()
      const [question, keys] = left[0] ?? []
      const at = question === undefined ? -1 : shown.indexOf(question, searched)
      if (at < 0) return
      left.shift()
      searched = at + question!.length
      child.stdin.write(keys!)
    })
    child.on('close', (exit) => resolve({ shown, exit }))
  })
}

describe.skipIf(!hasTerminal)('on a terminal (skipped without script(1))', () => {
  test('creates a request from answers, and prints them as flags', async () => {
    const { shown, exit } = await answering([
      ['Who is the certificate for?', enter],
      ['Name of the user', `ann${enter}`],
      ['Groups', `dev, ops${enter}`],
      ['Output format', enter],
      ['File for the new private key', enter],
      ['Output file', enter],
    ])
    expect(exit).toBe(0)
    expect(shown).toContain(
      'without questions: kcert csr create --user ann --org dev --org ops --key-out ann-key.pem --out ann.csr',
    )
    const request = CertificateRequest.parse(readPem(readFileSync(join(folder, 'ann.csr'))).blocks[0]!.der)
    expect(request.subject.text).toBe('CN=ann,O=dev+O=ops')
    expect(readFileSync(join(folder, 'ann-key.pem'), 'utf8')).toMatch(/^-----BEGIN PRIVATE KEY-----/)
    expect(shown).not.toContain('PRIVATE KEY-----')
  })

  test('repeats the question after a wrong answer', async () => {
    const { shown, exit } = await answering([
      ['Who is the certificate for?', down + down + down + enter],
      ['Name of the Service', `web${enter}`],
      ['write it as NAME.NAMESPACE', `.shop${enter}`],
      ['DNS names', enter],
      ['IP addresses', `10.0.0.300${enter}`],
      ['is not an IP address', `\u007f${enter}`],
      ['Output format', down + enter],
      ['Signer', enter],
      ['File for the new private key', enter],
      ['Output file', enter],
    ])
    expect({ exit, shown }).toEqual({ exit: 0, shown })
    expect(readFileSync(join(folder, 'web.shop.yaml'), 'utf8')).toContain('signerName: example.com/serving\n')
  })

  test('Ctrl-C changes nothing, and is not an error', async () => {
    const { shown, exit } = await answering([
      ['Who is the certificate for?', enter],
      ['Name of the user', '\u0003'],
    ])
    expect(exit).toBe(3)
    expect(shown).not.toContain('KCERT_')
    expect(existsSync(join(folder, '-key.pem'))).toBe(false)
  })
})
