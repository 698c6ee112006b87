import { describe, expect, test } from 'vitest'
import type { KcertError } from '../errors/kcert-error.ts'
import { type DryRunBy, partsOf, splitOperands, withoutBooleanValues } from './operands.ts'

const shapes = {
  output: { type: 'option', char: 'o' },
  warn: { type: 'option', aliases: ['warning'] },
  watch: { type: 'boolean', char: 'w' },
  yes: { type: 'boolean', char: 'y', aliases: ['assume-yes'] },
  restart: { type: 'boolean', allowNo: true, aliases: ['reload'] },
  'dry-run': { type: 'boolean' },
  cluster: { type: 'boolean' },
} as const
const wordsOf = (line: string) => (line === '' ? [] : line.split(' '))
const split = (line: string) => splitOperands(wordsOf(line), shapes)
const plain = (line: string, by: DryRunBy = 'client') =>
  withoutBooleanValues(wordsOf(line), shapes, by).join(' ')
const refusal = (line: string, by: DryRunBy = 'client'): KcertError => {
  try {
    plain(line, by)
  } catch (error) {
    return error as KcertError
  }
  throw new Error(`accepted: ${line}`)
}

describe('splitOperands', () => {
  test('accepts operands and flags in any order', () => {
    expect(split('a -o json b --warn 30d -w c - d')).toEqual({
      flags: ['-o', 'json', '--warn', '30d', '-w'],
      operands: ['a', 'b', 'c', '-', 'd'],
    })
  })

  test('assigns a value to an alias of a flag', () => {
    expect(split('--warning 30d a')).toEqual({ flags: ['--warning', '30d'], operands: ['a'] })
  })

  test('does not take the next operand as a value when the value is attached to its flag', () => {
    expect(split('--output=json a -ojson b -o=json c --warn= d')).toEqual({
      flags: ['--output=json', '-ojson', '-o=json', '--warn='],
      operands: ['a', 'b', 'c', 'd'],
    })
  })

  test('assigns a value to the last of several combined short flags', () => {
    expect(split('-wo json a')).toEqual({ flags: ['-wo', 'json'], operands: ['a'] })
    expect(split('-wyo=json a')).toEqual({ flags: ['-wyo=json'], operands: ['a'] })
    expect(split('-ow json a')).toEqual({ flags: ['-ow'], operands: ['json', 'a'] })
    expect(split('-wy json')).toEqual({ flags: ['-wy'], operands: ['json'] })
  })

  test('takes everything after -- as operands', () => {
    expect(split('-w -- -o --warn -- a')).toEqual({ flags: ['-w'], operands: ['-o', '--warn', '--', 'a'] })
  })

  test('leaves unknown flags, and a flag without its value, for oclif to reject', () => {
    expect(split('--frobnicate a --warn')).toEqual({ flags: ['--frobnicate', '--warn'], operands: ['a'] })
    expect(split('--frobnicate=1 -x=2 -wx3 a -o')).toEqual({
      flags: ['--frobnicate=1', '-x=2', '-wx3', '-o'],
      operands: ['a'],
    })
  })

  test('takes an argument that begins with "-" as a value where a flag needs one', () => {
    expect(split('-o -w a')).toEqual({ flags: ['-o', '-w'], operands: ['a'] })
    expect(split('--warn --unknown=1 a')).toEqual({ flags: ['--warn', '--unknown=1'], operands: ['a'] })
    expect(split('-o - a')).toEqual({ flags: ['-o', '-'], operands: ['a'] })
    expect(split('--warn x--yes=false a')).toEqual({ flags: ['--warn', 'x--yes=false'], operands: ['a'] })
  })

  test.each(['--warn --yes=false', '-o --output=json', '-wo --no-restart='])(
    'refuses a flag with a value in place of a value: %s',
    (line) => {
      const [flag, word] = line.replace('-wo', '-o').split(' ')
      expect(() => split(line)).toThrow(`${flag} needs a value, but "${word}" is another flag`)
      const fix = `give the value after ${flag}`
      expect(() => split(line)).toThrow(expect.objectContaining({ code: 'KCERT_USAGE', fix }))
    },
  )
})

test('partsOf names the flags of each part, and none for an operand, an unknown flag or a missing value', () => {
  const line = 'a --warning 1d -wo json --no-reload -wx --frobnicate -- b'
  expect([...partsOf(wordsOf(line), shapes)].map(({ words, names }) => [words.join(' '), ...names])).toEqual([
    ['a'],
    ['--warning 1d', 'warn'],
    ['-wo json', 'watch', 'output'],
    ['--no-reload', 'restart'],
    ['-wx'],
    ['--frobnicate'],
    ['b'],
  ])
  expect([...partsOf(['--warn'], shapes)]).toEqual([{ isOperand: false, words: ['--warn'], names: [] }])
})

describe('withoutBooleanValues', () => {
  test.each([
    '',
    'a b',
    '--watch -y a',
    '-wy a --no-restart',
    '--output=json -o=json -ojson --warn --frobnicate=false',
    '--unknown=false -x=false',
    '--no-yes=false',
    '- a',
    '-w -- --yes=false -y=x',
  ])('does not change the rest of a command line: %s', (line) => {
    expect(plain(line)).toBe(line)
  })

  test('sets a flag that has an opposite with "=true", and its opposite with "=false"', () => {
    expect(plain('a --restart=true b')).toBe('a --restart b')
    expect(plain('a --restart=false b')).toBe('a --no-restart b')
    expect(plain('--reload=true --reload=false')).toBe('--restart --no-restart')
  })

  test.each([
    ['--watch', 'false'],
    ['--watch', ''],
    ['--yes', 'true'],
    ['--yes', 'a=b'],
    ['--assume-yes', 'false'],
    ['--restart', 'no'],
    ['--no-restart', 'false'],
    ['--no-reload', 'x'],
    ['-y', 'false'],
    ['-y', ''],
  ])('refuses a value of a boolean flag: %s=%s', (flag, value) => {
    for (const line of [`${flag}=${value}`, `a ${flag}=${value}`, `--warn 1d ${flag}=${value} a -- b`]) {
      const error = refusal(line)
      expect(error.code).toBe('KCERT_USAGE')
      expect(error.message).toBe(`${flag} takes no value, but "${value}" was given`)
      expect(error.why).toBe(`${flag} is a boolean flag: write it without "=" or leave it out`)
    }
  })

  test('shows where the value of --cluster goes, which takes a name in kubectl', () => {
    expect(refusal('--cluster=prod').next).toBe('--cluster --cluster-name prod')
    expect(refusal('--watch=prod').next).toBeUndefined()
  })

  test('refuses a value of the last of several combined short flags', () => {
    expect(refusal('-wy=false').message).toBe('-y takes no value, but "false" was given')
    expect(refusal('-yw=').message).toBe('-w takes no value, but "" was given')
  })

  test('writes --dry-run for the value that the command supports, and omits "none"', () => {
    expect(plain('a --dry-run b')).toBe('a --dry-run b')
    expect(plain('a --dry-run=client b')).toBe('a --dry-run b')
    expect(plain('a --dry-run=server b', 'server')).toBe('a --dry-run b')
    expect(plain('a --dry-run=none b')).toBe('a b')
    expect(plain('-- --dry-run=none')).toBe('-- --dry-run=none')
  })

  test('refuses the other kind of dry run, and names the supported kind', () => {
    const server = refusal('--dry-run=server')
    expect(server.code).toBe('KCERT_USAGE')
    expect(server.message).toBe('--dry-run=server is not available for this command')
    expect(server.why).toContain('the API server does not check it')
    expect(server.next).toBe('--dry-run')
    const client = refusal('--dry-run=client', 'server')
    expect(client.code).toBe('KCERT_USAGE')
    expect(client.message).toBe('--dry-run=client is not available for this command')
    expect(client.why).toContain('sends the objects to the API server')
    expect(client.next).toBe('--dry-run')
  })

  test.each(['false', 'true', '', 'x', 'None', 'all'])('refuses --dry-run=%s', (value) => {
    for (const by of ['client', 'server'] as const) {
      const error = refusal(`--dry-run=${value}`, by)
      expect(error.code).toBe('KCERT_USAGE')
      expect(error.message).toBe(`invalid --dry-run value "${value}"`)
      expect(error.next).toBe('--dry-run')
    }
  })

  test.each(['--dry-run --dry-run=none', '--dry-run=none a --dry-run=client'])(
    'refuses --dry-run together with --dry-run=none: %s',
    (line) => {
      expect(refusal(line)).toMatchObject({
        code: 'KCERT_USAGE',
        message: '--dry-run and --dry-run=none are mutually exclusive',
        fix: 'give one of them',
      })
    },
  )

  test('accepts the same dry run twice', () => {
    expect(plain('--dry-run=client --dry-run')).toBe('--dry-run --dry-run')
    expect(plain('--dry-run=none --dry-run=none')).toBe('')
  })
})
