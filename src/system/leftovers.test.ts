import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { writeFileAtomically } from './atomic-file.ts'
import { isTemporaryName, removeLeftovers, temporaryName } from './leftovers.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'kcert-leftovers-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

/** Starts a process that creates a temporary file as kcert does. Returns the process with the file's name. */
async function writer(at: string) {
  const code = `import { temporaryName } from ${JSON.stringify(join(import.meta.dirname, 'leftovers.ts'))}
import { writeFileSync } from 'node:fs'
const name = temporaryName('ca.key')
writeFileSync(${JSON.stringify(at)} + '/' + name, 'PRIVATE KEY')
console.log(name)
setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code])
  const [name] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, name: name.toString().trim() }
}

test('the next write in a folder removes the files of a killed process, and keeps those of a running process', async () => {
  const at = folder()
  const [dead, living] = [await writer(at), await writer(at)]
  onTestFinished(() => void living.child.kill('SIGKILL'))
  dead.child.kill('SIGKILL')
  await once(dead.child, 'exit')
  const own = temporaryName('ca.key')
  const foreign = '.ca.key.00000000-00000000-1-1.0123456789ab.kcert-tmp'
  const others = [own, foreign, '.ca.pem.pair.kcert-tmp', '.ca.key.lock.kcert-tmp', 'ca.kcert-tmp']
  for (const name of others) writeFileSync(join(at, name), 'x')
  expect(readdirSync(at)).toContain(dead.name)
  writeFileAtomically(join(at, 'new'), 'y', { mode: 0o644 })
  expect(readFileSync(join(at, 'new'), 'utf8')).toBe('y')
  expect(readdirSync(at).sort()).toEqual([...others, living.name, 'new'].sort())
})

test('ignores a folder that cannot be listed', () => {
  expect(() => removeLeftovers(join(folder(), 'absent'))).not.toThrow()
})

test('derives a valid temporary name from a name of the maximum length', () => {
  const at = folder()
  const name = temporaryName('\u{1f511}'.repeat(60))
  writeFileSync(join(at, name), '')
  expect(isTemporaryName(name)).toBe(true)
  expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255)
})
