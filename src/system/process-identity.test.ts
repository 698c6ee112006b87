import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { hasEnded, startedTicksOf } from './process-identity.ts'

test('a process has ended when it is gone, or when another one has its ID', async () => {
  const child = spawn('sleep', ['30'])
  await once(child, 'spawn')
  const ticks = startedTicksOf(child.pid!)
  expect(hasEnded(child.pid!, ticks)).toBe(false)
  expect(hasEnded(child.pid!, '1')).toBe(true)
  child.kill()
  await once(child, 'exit')
  expect(hasEnded(child.pid!, ticks)).toBe(true)
})

// hidepid hides processes of other users from those without CAP_SYS_PTRACE and the group 0.
test.skipIf(process.platform !== 'linux' || process.getuid?.() !== 0)(
  'a process whose start cannot be read has not ended',
  async () => {
    const child = spawn('sleep', ['30'], { uid: 65_534 })
    await once(child, 'spawn')
    const program = `import { hasEnded } from ${JSON.stringify(new URL('process-identity.ts', import.meta.url).href)}
console.log(hasEnded(${child.pid}, ${JSON.stringify(startedTicksOf(child.pid!))}))`
    const hidden = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    const weak = [
      'setpriv',
      '--regid=65534',
      '--clear-groups',
      '--bounding-set=-sys_ptrace,-kill',
      process.execPath,
    ]
    const node = [...weak, '--input-type=module', '-e', program]
    const { stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', hidden, 'sh', ...node], {
      encoding: 'utf8',
    })
    child.kill()
    expect([stdout, stderr]).toEqual(['false\n', ''])
  },
)
