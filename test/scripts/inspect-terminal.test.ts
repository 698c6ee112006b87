import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { client, createCa, folderWith, sessionTime } from './small-pki.ts'
import { hasTmux, Terminal } from './tmux.ts'

// In a real terminal, because its width, its colours and its control characters are tested.

const ca = createCa()
const files = {
  'pki/ca.pem': ca.pem,
  'pki/a-certificate-with-quite-a-long-name.pem': client(
    'system:node:a-node-with-quite-a-long-name.example.com',
    ca,
    {
      subject: {
        commonName: 'system:node:a-node-with-quite-a-long-name.example.com',
        organization: ['system:nodes'],
      },
    },
  ).pem,
  'expired.pem': client('expired', ca, { notAfter: new Date('2026-11-18T09:00:00Z') }).pem,
  '東京.pem': client('東京支社 監視', ca).pem,
}

/** Returns the terminal when the command finishes. */
async function onTerminal(columns: number, line: string): Promise<Terminal> {
  const terminal = new Terminal(columns, line)
  await terminal.shows(/^ended \d+$/m)
  return terminal
}

function command(...args: string[]): string {
  const words = [process.execPath, resolve('bin/run.js'), 'inspect', ...args, '--at', sessionTime]
  return `env -u COLUMNS -u NO_COLOR -u FORCE_COLOR ${words.map((word) => `'${word}'`).join(' ')}`
}

describe.skipIf(!hasTmux)('on a terminal (skipped without tmux)', () => {
  test.each([60, 80, 120, 200])('of %i columns shows every name and path in full', async (columns) => {
    const folder = folderWith(files)
    const lines = (await onTerminal(columns, command(folder))).lines()
    const start = lines.findIndex((line) => line.startsWith('STATUS'))
    const rows = lines.slice(start, lines.indexOf('', start))
    const name = 'kubelet-client'
    // Text that the terminal itself wraps is copied as one line.
    expect(rows.join('')).toContain(name)
    expect(rows.join('')).toContain('pki/a-certificate-with-quite-a-long-name.pem')
    expect(rows.find((row) => row.startsWith('expired'))).toMatch(/^expired {2,}3d ago /)
    expect(rows.filter((row) => row.startsWith('valid '))).toHaveLength(2)
    expect(lines.at(-1)).toBe('ended 3')
  })

  test('colours states, and NO_COLOR disables colours', async () => {
    const folder = folderWith(files)
    const red = /\x1b\[(?:1m\x1b\[)?(?:1;)?31m/
    expect((await onTerminal(100, command(folder))).coloured()).toMatch(red)
    const plain = command(folder).replace('env ', 'env NO_COLOR=1 ').replace('-u NO_COLOR ', '')
    expect((await onTerminal(100, plain)).coloured()).not.toMatch(/\x1b\[[\d;]*3[1-6]m/)
  })

  test('--watch redraws in place, and Ctrl-C ends it with the last verdict', async () => {
    const folder = folderWith({ 'expired.pem': files['expired.pem'] })
    const terminal = new Terminal(100, command(folder, '--watch', '--every', '0.1s'))
    await terminal.shows(/^every 0\.1s/m)
    terminal.type('C-c')
    await terminal.shows(/^ended \d+$/m)
    const lines = terminal.lines()
    expect(lines.filter((line) => line.startsWith('every 0.1s, now 2026-11-21'))).toHaveLength(1)
    expect(lines.at(-1)).toBe('ended 3')
  })

  test('a hostile name does not move the cursor', async () => {
    const folder = folderWith({
      'a.pem': client('\x1b[2J\x1b[H\x1b]0;owned\x07evil', ca).pem,
      'b.pem': files['expired.pem'],
    })
    const lines = (await onTerminal(150, command(join(folder, '.')))).lines()
    expect(lines.some((line) => line.includes('\\u001b[2J\\u001b[H\\u001b]0;owned\\u0007evil'))).toBe(true)
    expect(lines.some((line) => line.startsWith('STATUS'))).toBe(true)
  })
})
