import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { NodeAccess } from '../pki/node-access.ts'
import { printedLog } from './component-log.ts'

let folder = ''
let container = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kcert-log-'))
  container = join(folder, 'kube-system_kube-apiserver-cp1_0123/kube-apiserver')
  mkdirSync(container, { recursive: true })
})

afterEach(() => rmSync(folder, { recursive: true }))

/** Runs the script in the shell of this machine, with the pods' logs in a folder of the test. */
const node = {
  run: async (argv: readonly string[]) => {
    const [program, ...rest] = argv.map((word) => word.replaceAll('/var/log/pods', folder))
    return { status: 0, stdout: execFileSync(program!, rest), stderr: '' }
  },
} as unknown as NodeAccess

const process = { program: 'kube-apiserver', pid: 1, argv: [] } as never

async function lines(count = 10): Promise<readonly string[]> {
  const text = await printedLog(node, process, { pattern: 'TLS handshake', sinceMs: 0, lines: count })
  return text.split('\n').filter((line) => line !== '')
}

test('returns lines from before a log rotation, oldest first', async () => {
  writeFileSync(join(container, '0.log.20261123-070000.gz'), 'not read')
  writeFileSync(join(container, '0.log.20261123-071000'), '1 TLS handshake error\n2 other\n')
  writeFileSync(join(container, '0.log'), '3 TLS handshake error\n')
  expect(await lines()).toEqual(['1 TLS handshake error', '3 TLS handshake error'])
  expect(await lines(1)).toEqual(['3 TLS handshake error'])
})

test('reads a single log that was not rotated', async () => {
  writeFileSync(join(container, '0.log'), '1 TLS handshake error\n')
  writeFileSync(join(container, '0.log.tmp'), '2 TLS handshake error\n')
  expect(await lines()).toEqual(['1 TLS handshake error'])
})
