import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { isTemporaryName } from '../../src/system/leftovers.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import { readPrivateKeyFile } from '../../src/x509/keys.ts'
import { kcert } from '../scripts/program.ts'
import { crashPoints } from './crash-points.ts'
import { WritingCommands } from './writing-commands.ts'

// `npm run crash-points` does the same with every error at every call, and writes docs/reliability.md.

const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'kcert-crash-'))
afterAll(() => rmSync(root, { recursive: true }))

test('stopped after any call that changes a file, or with an error in one, every command leaves old or new files, and its next run succeeds', async () => {
  const template = join(root, 'template')
  const writers = await WritingCommands.in(template)
  let stops = 0
  for (const command of writers.commands) {
    const tally = await crashPoints(command, template, join(root, 'work'), { everyError: false })
    expect(tally.losses, command.name).toEqual([])
    stops += tally.stops
  }
  await writers.close()
  expect(stops).toBeGreaterThan(400)
  // About nine hundred runs of the program.
}, 1_800_000)

// strace counts each of these calls separately.
const calls = ['fchmod', 'pwrite64', 'fsync', 'rename', 'link', 'unlink']
const killAt = (call: string, at: number): string[] => [
  ...['-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls.join(',')}`],
  ...['-e', `inject=${call}:signal=SIGKILL:when=${at}`],
]
const canTrace = spawnSync('strace', [...killAt('link', 9999), 'true']).status === 0

test.skipIf(!canTrace).each([
  { line: ['key', 'generate', '--out', 'ca.key'], each: 1, atLeast: 4 },
  { line: ['ca', 'init', '--cn', 'x', '--out', 'ca.pem', '--key-out', 'ca.key'], each: 4, atLeast: 7 },
])(
  'killed in the middle of its system calls, the program leaves the same: $line (skipped where strace cannot trace)',
  ({ line, each, atLeast }) => {
    let kills = 0
    const points = calls.flatMap((call) =>
      Array.from({ length: 20 }, (_, index) => ({ call, at: 1 + index * each })),
    )
    const over = new Set<string>()
    for (const { call, at } of points) {
      if (over.has(call)) continue
      const folder = join(root, `killed-${line[0]}-${call}-${at}`)
      mkdirSync(folder)
      expect(kcert(line, { cwd: folder }).exit).toBe(0)
      const old = contents(folder)
      const command = [process.execPath, resolve('bin/run.js'), ...line, '--force']
      const { signal } = spawnSync('strace', [...killAt(call, at), ...command], {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: '/nonexistent' },
      })
      if (signal !== 'SIGKILL') {
        over.add(call)
        continue
      }
      kills++
      for (const name of readdirSync(folder)) {
        const text = readFileSync(join(folder, name), 'utf8')
        if (text.includes('PRIVATE KEY')) expect(statSync(join(folder, name)).mode & 0o077, name).toBe(0)
        if (isTemporaryName(name) || text === old.get(name)) continue
        if (name.endsWith('.key')) expect(readPrivateKeyFile(Buffer.from(text)).keyObject).toBeDefined()
        if (name.endsWith('.pem')) expect(readCertificates(Buffer.from(text))).toHaveLength(1)
      }
      for (const name of old.keys()) expect(existsSync(join(folder, name)), name).toBe(true)
      // The next run repairs the files, removes leftovers, and does its work.
      expect(kcert([...line, '--force'], { cwd: folder }).exit).toBe(0)
      expect(readdirSync(folder).filter(isTemporaryName)).toEqual([])
      if (line[0] === 'ca')
        expect(kcert(['inspect', 'ca.pem', 'ca.key', '-o', 'json'], { cwd: folder }).stdout).toContain(
          '"matches": true',
        )
    }
    expect(kills).toBeGreaterThan(atLeast)
  },
)

function contents(folder: string): Map<string, string> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}
