import { expect, test } from 'vitest'
import { shutdownDelayMs } from './component-flags.ts'

test.each([
  ['15s', 15_000],
  ['1m30s', 90_000],
  ['1.5m', 90_000],
  ['500ms', 500],
  // None of these delays the end.
  ['0', 0],
  ['0h0m', 0],
  ['-5s', 0],
  // An API server with this flag does not start.
  ['15', 0],
])('an API server with --shutdown-delay-duration=%s serves %i ms after SIGTERM', (text, ms) => {
  expect(shutdownDelayMs({ 'shutdown-delay-duration': text })).toBe(ms)
})

test('without the flag there is no delay', () => {
  expect(shutdownDelayMs({})).toBe(0)
})
