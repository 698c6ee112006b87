import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { client, createCa } from './small-pki.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { hasTmux, Terminal } from './tmux.ts'

// Prompts in terminals of every width, in colour and without. csr-questions.test.ts tests that each has a flag, and the effect of
// answers.

const folder = temporaryFolder('prompts')

/** A pair that others may read, in the folder of a node below this one. */
beforeAll(() => {
  const store = join(folder, 'tree/var/lib/kubelet/pki')
  mkdirSync(store, { recursive: true })
  const node = client('system:node:w1', createCa(), {
    subject: { commonName: 'system:node:w1', organization: ['system:nodes'] },
  })
  writeFileSync(join(store, 'kubelet-client-2026-11-01-00-00-00.pem'), node.pem + node.keyPem, {
    mode: 0o644,
  })
})

function madeFolder(name: string): string {
  const path = join(folder, name)
  mkdirSync(path)
  return path
}

function open(columns: number, args: string, env = '', at = folder): Terminal {
  return new Terminal(
    columns,
    `env -u COLUMNS -u NO_COLOR -u FORCE_COLOR -u CI ${env} '${process.execPath}' '${resolve('bin/run.js')}' ${args}`,
    at,
  )
}

/** Returns the parameters of the colour escapes on the screen: "31", or "38", "5", "10" for 256 colours. */
function colours(screen: string): string[] {
  return [...screen.matchAll(/\x1b\[([\d;]*)m/g)].flatMap(([, asked = '']) => asked.split(';'))
}

describe.skipIf(!hasTmux)('on a terminal (skipped without tmux)', () => {
  test.each([60, 80, 120, 200])(
    'of %i columns shows full questions, accepts keys, and prints the answers as flags',
    async (columns) => {
      const there = open(columns, 'csr create', '', madeFolder(`w${columns}`))
      const first = await there.shows(/Who is the certificate for\?/)
      const question = first.split('\n').findIndex((line) => line.includes('Who is the certificate for?'))
      const choices = first
        .split('\n')
        .slice(question + 1)
        .filter((line) => line.trim() !== '')
      expect(choices.length).toBeGreaterThan(3)
      there.type('Enter')
      await there.shows(/Name of the user/)
      there.type('ann', 'Enter')
      await there.shows(/Groups/)
      there.type('dev', 'Enter')
      await there.shows(/Output format/)
      there.type('Enter')
      await there.shows(/File for the new private key/)
      there.type('Enter')
      await there.shows(/Output file/)
      there.type('Enter')
      const last = await there.shows(/^ended \d+$/m)
      expect(last).toMatch(/^ended 0$/m)
      // Wrapped only by the terminal, so that it can be copied in one piece.
      expect(last.replaceAll('\n', '')).toContain(
        'kcert csr create --user ann --org dev --key-out ann-key.pem --out ann.csr',
      )
      expect(readFileSync(join(folder, `w${columns}/ann.csr`), 'utf8')).toContain('BEGIN CERTIFICATE REQUEST')
      // The answered question appears once: no earlier drawing remains.
      expect(last.match(/Who is the certificate for\?/g)).toHaveLength(1)
    },
  )

  test('uses only the sixteen colours of a theme, without black and white, so that text is readable on light and dark', async () => {
    const there = open(100, 'csr create')
    await there.shows(/Who is the certificate for\?/)
    const seen = colours(there.coloured())
    expect(seen.some((one) => /^3[1-6]$/.test(one))).toBe(true)
    for (const one of seen) expect(one).toMatch(/^(?:0|1|2|3|4|22|23|24|39|49|3[1-6]|9[1-6])?$/)
    there.type('C-c')
    expect(await there.shows(/^ended \d+$/m)).toMatch(/^ended 3$/m)
  })

  test.each(['NO_COLOR=1', 'TERM=dumb'])('asks without colour with %s', async (env) => {
    const there = open(100, 'csr create', env)
    await there.shows(/Who is the certificate for\?/)
    expect(
      colours(there.coloured()).filter((one) => /[349]\d/.test(one) && !/^(?:39|49)$/.test(one)),
    ).toEqual([])
    there.type('C-c')
    await there.shows(/^ended 3$/m)
  })

  test.each([60, 200])(
    'of %i columns shows a change before it asks for confirmation, and "no" changes nothing',
    async (columns) => {
      const store = join(folder, 'tree/var/lib/kubelet/pki')
      const before = readdirSync(store)
      const there = open(columns, 'kubelet doctor --root tree --fix')
      const asked = await there.shows(/Repair \d+ findings/)
      expect(asked.replaceAll('\n', '')).toContain('kubelet-client-2026-11-01-00-00-00.pem')
      there.type('C-c')
      const ended = await there.shows(/^ended \d+$/m)
      expect(ended).not.toContain('KCERT_DEFECT')
      expect(ended).toMatch(/^ended 3$/m)
      expect(readdirSync(store)).toEqual(before)
    },
  )
})
