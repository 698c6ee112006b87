import { describe, expect, test } from 'vitest'
import { keys, terminalContext } from '../../test/fakes/terminal-context.ts'
import { agreed } from './consent.ts'
import { answered, canAsk, DeclinedError, terminalAsker } from './prompts.ts'

test.each([
  [true, true, true],
  [true, false, false],
  [false, true, false],
  [false, false, false],
])('can ask only with terminals for input and output: %s, %s', (input, output, expected) => {
  expect(canAsk(terminalContext({ input, output }).context)).toBe(expected)
})

describe('question', () => {
  test('returns the typed text, without surrounding spaces', async () => {
    const { context, typesAt } = terminalContext()
    const answer = (await terminalAsker(context)).text({ flag: 'name', message: 'Who?' })
    await typesAt('Who?', '  ann ', keys.enter)
    expect(await answer).toBe('ann')
  })

  test('returns its default for an empty answer', async () => {
    const { context, typesAt } = terminalContext()
    const answer = (await terminalAsker(context)).text({ flag: 'name', message: 'Who?', default: 'bob' })
    await typesAt('bob', keys.enter)
    expect(await answer).toBe('bob')
  })

  test('reports why an answer is invalid, and accepts the next one', async () => {
    const { context, typesAt } = terminalContext()
    const fault = (text: string) => (text === 'ann' ? undefined : `not ann but [${text}]`)
    const answer = (await terminalAsker(context)).text({ flag: 'name', message: 'Who?', fault })
    await typesAt('Who?', ' b ', keys.enter)
    await typesAt('not ann but [b]', '\u007f\u007f\u007f', 'ann', keys.enter)
    expect(await answer).toBe('ann')
  })

  test('returns the value of the selected choice', async () => {
    const { context, typesAt } = terminalContext()
    const choices = [
      { value: 'a', name: 'first' },
      { value: 'b', name: 'second' },
    ]
    const answer = (await terminalAsker(context)).choice({ flag: 'x', message: 'Which?', choices })
    await typesAt('second', keys.down, keys.enter)
    expect(await answer).toBe('b')
  })

  test('is declined by Ctrl-C', async () => {
    const { context, typesAt } = terminalContext()
    const answer = (await terminalAsker(context)).text({ flag: 'name', message: 'Who?' })
    const refusal = answer.catch((error: unknown) => error)
    await typesAt('Who?', keys.interrupt)
    const error = (await refusal) as Error
    expect(error).toBeInstanceOf(DeclinedError)
    expect(error.name).toBe('DeclinedError')
  })

  test('is not declined but fails when it cannot be asked', async () => {
    const { context } = terminalContext()
    const answer = (await terminalAsker(context)).choice({ flag: 'x', message: 'Which?', choices: [] })
    const error = await answer.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toBeInstanceOf(DeclinedError)
  })

  test('counts as no only when it is declined', async () => {
    expect(await answered(() => Promise.reject(new DeclinedError()))).toBe(false)
    await expect(answered(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  })
})

describe('confirmation', () => {
  const asked = {
    yes: false,
    proposal: ['the change'],
    question: 'Do it?',
    what: 'nothing was changed',
  }

  test('shows no proposal and no question with --yes', async () => {
    const { context, shown } = terminalContext({ input: false, output: false })
    expect(await agreed(context, { ...asked, yes: true })).toBe(true)
    expect(shown()).toBe('')
  })

  test.each([
    { input: false, output: true },
    { input: true, output: false },
  ])('throws an error without a terminal to confirm on: %j', async (terminals) => {
    const { context, shown } = terminalContext(terminals)
    await expect(agreed(context, asked)).rejects.toMatchObject({
      code: 'KCERT_UNCONFIRMED',
      message: 'nothing was changed',
      why: 'no terminal to confirm on: check with --dry-run, then add --yes',
      next: '--dry-run',
    })
    expect(shown()).toBe('')
  })

  test.each([
    ['yes', [keys.down, keys.enter], true],
    ['no, which is chosen first', [keys.enter], false],
    ['Ctrl-C', [keys.interrupt], false],
  ] as const)(
    'at the terminal the change is shown, and the answer counts: %s',
    async (_, typed, expected) => {
      const { context, shown, typesAt } = terminalContext()
      const answer = agreed(context, asked)
      await typesAt('yes', ...typed)
      expect(await answer).toBe(expected)
      expect(shown()).toMatch(/^the change\n[\s\S]*Do it\?[\s\S]* no\n[\s\S]* yes\n/)
    },
  )
})
