import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// What the commands of rotate-ca say before they reach a cluster. What they do there is in test/rotation and test/lab.

const folder = temporaryFolder('rotate-ca')
const commands = [
  [],
  ['plan'],
  ['status'],
  ['verify'],
  ['rollback'],
  ['runbook', 'DIR', '--phase', '1'],
  ['recover'],
]

function rotateCa(...args: string[]) {
  return kcert(['rotate-ca', ...args], { cwd: folder, env: { KUBECONFIG: join(folder, 'none.conf') } })
}

test.each(commands)('rotate-ca %s: its help has the exit codes and three examples at least', (...words) => {
  const { stdout, exit } = rotateCa(...words, '--help')
  expect(exit).toBe(0)
  expect(stdout).toMatch(/EXIT CODES\n {2}0 {2}/)
  expect(stdout.match(/^ +\$ kcert rotate-ca/gm)?.length).toBeGreaterThanOrEqual(3)
})

test.each(commands)('rotate-ca %s: without an inventory it says what writes one', (...words) => {
  const { stdout, stderr, exit } = rotateCa(...words)
  expect({ stdout, exit }).toEqual({ stdout: '', exit: 2 })
  expect(stderr).toContain('KCERT_FILE_NOT_FOUND: there is no inventory kcert.yaml')
  expect(stderr).toContain('next: kcert rotate-ca discover writes one')
})

test.each([
  [['--phase', '13'], '--phase "13" is no phase'],
  [['--phase', '0'], '--phase "0" is no phase'],
  [['--phase', '6-2'], '--phase "6-2" is no phase'],
  [['--phase', '3', '--all'], '--phase=3 cannot also be provided'],
  [['--through', '12', '--all'], 'cannot also be provided'],
  [['--ca', 'etcd'], '--ca "etcd" names no CA that is rotated'],
  [['--pace', 'fast'], '--pace "fast" is no duration'],
  [['--ca-cert', 'ca.crt'], '--ca-key'],
  [['plam'], 'plam'],
])('%s is wrong usage, and says why', (args, text) => {
  const { stdout, stderr, exit } = rotateCa(...args)
  expect({ stdout, exit }).toEqual({ stdout: '', exit: 2 })
  expect(stderr).toContain(text)
})

test('a CA of the operator that cannot sign is refused before anything is read', () => {
  const cn = ['--cn', 'old', '--out', 'ca.crt', '--key-out', 'ca.key']
  expect(kcert(['ca', 'init', ...cn], { cwd: folder }).exit).toBe(0)
  expect(kcert(['key', 'generate', '--out', 'other.key'], { cwd: folder }).exit).toBe(0)
  const { stderr, exit } = rotateCa('--phase', '1', '--ca-cert', 'ca.crt', '--ca-key', 'other.key')
  expect(stderr).toContain('KCERT_CA_UNFIT')
  expect(exit).toBe(3)
})

test('an evidence file that is there is not overwritten, nor ever the inventory', () => {
  mkdirSync(join(folder, 'lab'), { recursive: true })
  writeFileSync(join(folder, 'evidence.json'), '{}')
  const existing = rotateCa('verify', '--evidence', 'evidence.json')
  expect([existing.exit, existing.stderr]).toEqual([5, expect.stringContaining('KCERT_FILE_EXISTS')])
  writeFileSync(join(folder, 'lab/kcert.yaml'), '')
  const own = rotateCa('verify', '--inventory', 'lab/kcert.yaml', '--evidence', 'lab/kcert.yaml', '--force')
  expect([own.exit, own.stderr]).toEqual([5, expect.stringContaining('--inventory')])
})
