import { expect, test } from 'vitest'
import { endIn } from './pod-exec.ts'

const statusWith = (code: unknown) => ({
  status: 'Failure',
  message: 'command terminated',
  details: { causes: [{ reason: 'ExitCode', message: code }] },
})

test.each([
  [{ status: 'Success' }, { status: 0 }],
  [statusWith('3'), { status: 3 }],
  [statusWith('137'), { status: 137 }],
])('%j is an exit status', (status, end) => {
  expect(endIn(Buffer.from(JSON.stringify(status)))).toEqual(end)
})

test.each([
  ['the exit status 0', JSON.stringify(statusWith('0'))],
  ['an empty exit status', JSON.stringify(statusWith(''))],
  ['a negative exit status', JSON.stringify(statusWith('-1'))],
  ['a number', JSON.stringify(statusWith(0))],
  ['no exit status', JSON.stringify({ status: 'Failure', message: 'command terminated' })],
  [
    'causes that are no list',
    JSON.stringify({ status: 'Failure', message: 'command terminated', details: { causes: 1 } }),
  ],
])('a failure with %s is not a success', (_what, text) => {
  expect(endIn(Buffer.from(text))).toEqual({
    cause: new Error('the kubelet could not run the program: command terminated'),
  })
})

test.each(['', '{', 'null', '[]', '{"status":true}'])('%j is not a success', (text) => {
  expect(endIn(Buffer.from(text))).toEqual({
    cause: new Error('the kubelet could not run the program: no reason given'),
  })
})
