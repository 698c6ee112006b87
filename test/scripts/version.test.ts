import { expect, test } from 'vitest'
import { kcert } from './program.ts'

test('prints the versions of kcert and Node.js as kubectl does', () => {
  const { exit, stdout } = kcert(['version', '--client'])
  expect(exit).toBe(0)
  expect(stdout).toMatch(/^Client Version: \d+\.\d+\.\d+\nNode Version: v\d+\.\d+\.\d+\nPlatform: \w+\/\w+\n/)
})

test('prints them as JSON', () => {
  const { stdout } = kcert(['version', '-o', 'json'])
  expect(JSON.parse(stdout)).toMatchObject({
    apiVersion: 'kcert/v1',
    kind: 'Version',
    nodeVersion: process.version,
  })
})
