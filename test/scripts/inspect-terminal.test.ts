import { execFileSync, spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { displayWidth } from '../../src/output/width.ts'
import { authority, client, folderWith, sessionTime } from './small-pki.ts'

// In a real terminal, for its width, its colours and its control characters are what this is about.

const hasTmux = spawnSync('tmux', ['-V']).status === 0
const socket = `kcert-test-${process.pid}`
const tmux = (...args: string[]) =>
  execFileSync('tmux', ['-L', socket, '-f', '/dev/null', ...args], { encoding: 'utf8' })

const ca = authority()
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

// A server whose last session has ended is ending too, and a session begun in that moment ends with it.
beforeAll(() => {
  if (hasTmux) tmux('new-session', '-d', '-s', 'kept', 'sleep 3600')
})

afterAll(() => {
  spawnSync('tmux', ['-L', socket, 'kill-server'], { stdio: 'ignore' })
})

interface Screen {
  readonly lines: string[]
  readonly coloured: string
}

async function onTerminal(
  columns: number,
  command: string,
  until: RegExp,
  keys: string[] = [],
): Promise<Screen> {
  const session = `s${columns}${Math.random().toString(36).slice(2)}`
  // The shell's own exit tells that everything was written; the pane stays to be looked at.
  tmux(
    'new-session',
    '-d',
    '-s',
    session,
    '-x',
    String(columns),
    '-y',
    '60',
    `${command}; echo "ended $?"; sleep 60`,
  )
  try {
    await shows(session, until)
    for (const key of keys) tmux('send-keys', '-t', session, key)
    await shows(session, /^ended \d+$/m)
    return {
      lines: tmux('capture-pane', '-p', '-t', session).trimEnd().split('\n'),
      coloured: tmux('capture-pane', '-p', '-e', '-t', session),
    }
  } finally {
    tmux('kill-session', '-t', session)
  }
}

async function shows(session: string, wanted: RegExp): Promise<void> {
  for (let attempt = 0; attempt < 300; attempt++) {
    if (wanted.test(tmux('capture-pane', '-p', '-t', session))) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`not shown: ${wanted}\n${tmux('capture-pane', '-p', '-t', session)}`)
}

function command(...args: string[]): string {
  const words = [process.execPath, resolve('bin/run.js'), 'inspect', ...args, '--at', sessionTime]
  return `env -u COLUMNS -u NO_COLOR -u FORCE_COLOR ${words.map((word) => `'${word}'`).join(' ')}`
}

describe.skipIf(!hasTmux)('on a terminal (skipped without tmux)', () => {
  test.each([60, 80, 120, 200])('of %i columns no row of a table wraps', async (columns) => {
    const folder = folderWith(files)
    const { lines } = await onTerminal(columns, command(folder), /^ended/m)
    const start = lines.findIndex((line) => line.startsWith('STATUS'))
    const rows = lines.slice(start, lines.indexOf('', start))
    expect(rows).toHaveLength(4)
    for (const row of rows) expect(displayWidth(row)).toBeLessThanOrEqual(columns)
    expect(rows[1]).toMatch(/^expired {2,}3d ago /)
    expect(rows.filter((row) => row.startsWith('ok '))).toHaveLength(2)
    expect(lines.at(-1)).toBe('ended 3')
  })

  test('states are coloured, and NO_COLOR takes the colours away', async () => {
    const folder = folderWith(files)
    const red = /\x1b\[(?:1m\x1b\[)?(?:1;)?31m/
    expect((await onTerminal(100, command(folder), /^ended/m)).coloured).toMatch(red)
    const plain = command(folder).replace('env ', 'env NO_COLOR=1 ').replace('-u NO_COLOR ', '')
    expect((await onTerminal(100, plain, /^ended/m)).coloured).not.toMatch(/\x1b\[[\d;]*3[1-6]m/)
  })

  test('--watch draws over itself, and Ctrl-C ends it with the last verdict', async () => {
    const folder = folderWith({ 'expired.pem': files['expired.pem'] })
    const { lines } = await onTerminal(100, command(folder, '--watch', '--every', '0.1s'), /^every 0\.1s/m, [
      'C-c',
    ])
    expect(lines.filter((line) => line.startsWith('every 0.1s, now 2026-11-21'))).toHaveLength(1)
    expect(lines.at(-1)).toBe('ended 3')
  })

  test('a hostile name moves nothing', async () => {
    const folder = folderWith({
      'a.pem': client('\x1b[2J\x1b[H\x1b]0;owned\x07evil', ca).pem,
      'b.pem': files['expired.pem'],
    })
    const { lines } = await onTerminal(150, command(join(folder, '.')), /^ended/m)
    expect(lines.some((line) => line.includes('\\u001b[2J\\u001b[H\\u001b]0;owned\\u0007evil'))).toBe(true)
    expect(lines.some((line) => line.startsWith('STATUS'))).toBe(true)
  })
})
