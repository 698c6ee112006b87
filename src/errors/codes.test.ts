import { expect, test } from 'vitest'
import { type ErrorCode, type ExitCode, errorCodes, exitCodeOf, exitCodes, worstExit } from './codes.ts'
import { KcertError } from './kcert-error.ts'

test('keeps the documented exit codes', () => {
  expect(exitCodes).toEqual({
    done: 0,
    defect: 1,
    usage: 2,
    no: 3,
    unreachable: 4,
    refused: 5,
    notPermitted: 6,
  })
})

test('maps only 401 and 403 from the API server to exit code 6', () => {
  const codes = Object.keys(errorCodes) as ErrorCode[]
  expect(codes.filter((code) => new KcertError(code, 'x').exitCode === 6)).toEqual([
    'KCERT_API_UNAUTHORIZED',
    'KCERT_API_FORBIDDEN',
    'KCERT_API_CLIENT_EXPIRED',
  ])
  expect(codes.map(exitCodeOf)).toEqual(codes.map((code) => errorCodes[code].exit))
})

test('prefers the reason for an incomplete answer to the answer "no"', () => {
  const worstFirst: readonly ExitCode[] = [1, 4, 6, 5, 3, 2, 0]
  for (const [index, worst] of worstFirst.entries())
    for (const other of worstFirst.slice(index)) {
      expect(worstExit([worst, other]), `${worst} and ${other}`).toBe(worst)
      expect(worstExit([other, 0, worst]), `${other} and ${worst}`).toBe(worst)
    }
  expect(worstExit([])).toBe(0)
})
