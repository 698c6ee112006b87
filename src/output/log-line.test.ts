import { expect, test } from 'vitest'
import { logLine } from './log-line.ts'

const time = new Date('2026-11-26T10:00:00.123Z')
const hostile = 'x"\n2026-11-26T10:00:00Z info approved csr="y\u202e\u001b[2J'

test('text from a request cannot end the line, add a field or move the cursor', () => {
  const entry = { level: 'info', message: 'skipped', fields: { csr: hostile, none: undefined } } as const
  const text = logLine('text', time, entry)
  expect(text).toBe(
    '2026-11-26T10:00:00.123Z info skipped csr="x\\"\\n2026-11-26T10:00:00Z info approved csr=\\"y\\u202e\\u001b[2J"\n',
  )
  const json = logLine('json', time, entry)
  expect(json.split('\n')).toHaveLength(2)
  expect(json).not.toMatch(/[\u202e\u001b]/)
  expect(JSON.parse(json)).toEqual({
    ts: '2026-11-26T10:00:00.123Z',
    level: 'info',
    msg: 'skipped',
    csr: hostile,
  })
})

test('an error message from a server cannot end the line either', () => {
  expect(logLine('text', time, { level: 'error', message: 'a\nb' })).toBe(
    '2026-11-26T10:00:00.123Z error a\\u000ab\n',
  )
})
