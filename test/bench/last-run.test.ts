import { expect, test } from 'vitest'
import { warnOfLosses } from './last-run.ts'

test('reports a loss above 15 % against the last run, for kcert only', () => {
  const before = { 'Cold start': { 'kcert inspect FILE': 1.5, 'openssl x509': 0.8, 'kcert --help': 1.1 } }
  const now = {
    'Cold start': { 'kcert inspect FILE': 1.74, 'openssl x509': 2, 'kcert --help': 1.26 },
    'Something new': { kcert: 9 },
  }
  expect(warnOfLosses(now, before)).toEqual([
    'WARNING: Cold start: kcert inspect FILE was 1.50 and is 1.74 × its peer',
  ])
})
