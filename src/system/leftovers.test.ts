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

/** Starts a process that makes a temporary file as kcert does, and returns it with the file's name. */
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

test('what a killed process has left is removed by the next write in the folder, and what a living one writes stays', async () => {
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

test('a folder that cannot be listed stops nothing', () => {
  expect(() => removeLeftovers(join(folder(), 'absent'))).not.toThrow()
})

test('the longest names have a temporary name that the file system takes', () => {
  const at = folder()
  const name = temporaryName('\u{1f511}'.repeat(60))
  writeFileSync(join(at, name), '')
  expect(isTemporaryName(name)).toBe(true)
  expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255)
})
