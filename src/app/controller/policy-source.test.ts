import { chmodSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { terminalContext } from '../../../test/fakes/terminal-context.ts'
import { PolicySource } from './policy-source.ts'

const folder = mkdtempSync(join(tmpdir(), 'kcert-policy-source-'))
afterAll(() => rmSync(folder, { recursive: true }))
const clock = (): Date => new Date('2026-11-26T10:00:00Z')
const context = { ...terminalContext({ input: false }).context, clock }
const file = join(folder, 'policy.yaml')
const policyOf = (...names: string[]): string =>
  `apiVersion: kcert/v1\nkind: ApprovalPolicy\nrules:\n${names.map((name) => `- builtin: ${name}\n`).join('')}`

beforeEach(() => writeFileSync(file, policyOf('kubelet-serving'), { mode: 0o600 }))

const namesOf = ({ current: { policies } }: PolicySource): string[] => policies.map(({ name }) => name)

test('reads a replaced file, once two reads in a row return the same', async () => {
  const source = await PolicySource.open(file, context)
  const before = source.current
  expect(await source.poll()).toBeUndefined()
  expect(source.current).toBe(before)
  writeFileSync(file, policyOf('kubelet-serving', 'kubelet-client'))
  expect(await source.poll()).toBeUndefined()
  expect(await source.poll()).toBe('replaced')
  expect(namesOf(source)).toEqual(['kubelet-serving', 'kubelet-client'])
  expect(source.current).not.toBe(before)
})

test('never uses the first part of a file that is being written', async () => {
  const source = await PolicySource.open(file, context)
  const whole = policyOf('kubelet-client', 'kubelet-serving')
  writeFileSync(file, whole.slice(0, whole.indexOf('- builtin: kubelet-serving')))
  expect(await source.poll()).toBeUndefined()
  writeFileSync(file, whole)
  expect(await source.poll()).toBeUndefined()
  expect(namesOf(source)).toEqual(['kubelet-serving'])
  expect(await source.poll()).toBe('replaced')
  expect(namesOf(source)).toEqual(['kubelet-client', 'kubelet-serving'])
})

test('a failed read is between two equal reads', async () => {
  const source = await PolicySource.open(file, context)
  const part = policyOf('kubelet-client')
  writeFileSync(file, part)
  expect(await source.poll()).toBeUndefined()
  rmSync(file)
  expect(await source.poll()).toBe('failed')
  writeFileSync(file, part, { mode: 0o600 })
  expect(await source.poll()).toBeUndefined()
  expect(namesOf(source)).toEqual(['kubelet-serving'])
  expect(await source.poll()).toBe('replaced')
})

test('keeps the last policy while the file is malformed, gone, or changeable by others, and reports it once', async () => {
  const source = await PolicySource.open(file, context)
  const faults: (readonly [() => void, string])[] = [
    [() => writeFileSync(file, 'rules: 7\n'), 'KCERT_POLICY_INVALID'],
    [() => rmSync(file), 'KCERT_FILE_NOT_FOUND'],
    [
      () => {
        writeFileSync(file, policyOf('kubelet-client'))
        chmodSync(file, 0o666)
      },
      'KCERT_FILE_UNTRUSTED',
    ],
    [
      () => {
        chmodSync(file, 0o600)
        writeFileSync(file, `${policyOf('kubelet-client')}${'# more\n'.repeat(80_000)}`)
      },
      'KCERT_FILE_TOO_LARGE',
    ],
  ]
  for (const [spoil, code] of faults) {
    spoil()
    await source.poll()
    await source.poll()
    expect(source.failure).toMatchObject({ code })
    expect(await source.poll()).toBeUndefined()
    expect(namesOf(source)).toEqual(['kubelet-serving'])
  }
  chmodSync(file, 0o600)
  writeFileSync(file, policyOf('kubelet-serving'))
  expect(await source.poll()).toBe('usable')
  expect(source.failure).toBeUndefined()
})

test('follows the links of a ConfigMap volume', async () => {
  const at = (name: string): string => join(folder, name)
  for (const [name, policy] of [
    ['v1', 'kubelet-serving'],
    ['v2', 'kubelet-client'],
  ] as const)
    writeFileSync(at(name), policyOf(policy), { mode: 0o600 })
  symlinkSync('v1', at('data'))
  const source = await PolicySource.open(at('data'), context)
  symlinkSync('v2', at('data.new'))
  renameSync(at('data.new'), at('data'))
  await source.poll()
  expect(await source.poll()).toBe('replaced')
  expect(namesOf(source)).toEqual(['kubelet-client'])
})

test('built-in policies never change, and a pipe is refused', async () => {
  const source = await PolicySource.open('kubelet-serving', context)
  expect(await source.poll()).toBeUndefined()
  await expect(PolicySource.open('-', context)).rejects.toMatchObject({ code: 'KCERT_USAGE' })
  await expect(PolicySource.open('/dev/fd/0', context)).rejects.toMatchObject({ code: 'KCERT_USAGE' })
})
