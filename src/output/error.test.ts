import { expect, test } from 'vitest'
import { errorFields, KcertError } from '../errors/kcert-error.ts'
import { formatError } from './error.ts'
import { adviceLines } from './sections.ts'

const error = new KcertError('KCERT_USAGE', 'x exists', {
  why: 'it is a file',
  fix: 'choose another name',
  next: 'ls -l x',
})

test('prints the fix of an error before its command', () => {
  expect(formatError(error, 0)).toBe(
    'KCERT_USAGE: x exists\nwhy: it is a file\nfix: choose another name\nnext: ls -l x\n',
  )
})

test.each([
  [{ fix: 'choose another name' }, 'KCERT_USAGE: x exists\nfix: choose another name\n'],
  [{ next: 'ls -l x' }, 'KCERT_USAGE: x exists\nnext: ls -l x\n'],
])('prints the fields that an error has: %j', (advice, text) => {
  expect(formatError(new KcertError('KCERT_USAGE', 'x exists', advice), 0)).toBe(text)
})

test('prints the fix and the command of an error in a report', () => {
  expect(errorFields(error)).toMatchObject({ fix: 'choose another name', next: 'ls -l x' })
})

test('shows advice of a report once if next repeats the fix', () => {
  expect(adviceLines({ fix: 'deny it', next: 'deny it' })).toEqual(['  fix: deny it'])
  expect(adviceLines({ why: 'old', fix: 'deny it', next: 'ls' })).toEqual([
    '  why: old',
    '  fix: deny it',
    '  next: ls',
  ])
})
