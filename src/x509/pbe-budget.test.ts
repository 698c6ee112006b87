import { expect, test } from 'vitest'
import { KdfBudget, RunKdfBudget } from './pbe.ts'

test('allows one file to take a second', () => {
  const budget = new KdfBudget()
  budget.spend(600_000, 'x')
  budget.spend(400_000, 'x')
  expect(() => budget.spend(1, '7 iterations')).toThrow(
    expect.objectContaining({
      code: 'KCERT_KEY_UNSUPPORTED',
      message: "7 iterations: the password's key derivation costs too much",
      why: 'kcert spends at most one second on a file',
      fix: 'write it again with a usual count, such as openssl pkcs8 -iter 600000',
    }),
  )
})

test('allows all files of a run to take five seconds together, and still opens a cheap one after that', () => {
  const run = new RunKdfBudget()
  for (let file = 0; file < 6; file++) new KdfBudget(run).spend(800_000, 'x')
  expect(() => new KdfBudget(run).spend(800_000, '800000 iterations')).toThrow(
    expect.objectContaining({
      code: 'KCERT_KEY_UNSUPPORTED',
      why: 'the files before it used up the 5 s that kcert spends on passwords in one run',
      fix: 'read this file alone',
    }),
  )
  new KdfBudget(run).spend(200_000, 'x')
  expect(() => new KdfBudget(run).spend(1, 'x')).toThrow('costs too much')
  new KdfBudget(new RunKdfBudget()).spend(800_000, 'x')
})
