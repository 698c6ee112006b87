import { expect, test } from 'vitest'
import { splitOperands } from './operands.ts'

const shapes = {
  output: { type: 'option', char: 'o' },
  warn: { type: 'option', aliases: ['warning'] },
  watch: { type: 'boolean', char: 'w' },
} as const
const split = (line: string) => splitOperands(line.split(' '), shapes)

test('operands and flags may stand in any order', () => {
  expect(split('a -o json b --warn 30d -w c - d')).toEqual({
    flags: ['-o', 'json', '--warn', '30d', '-w'],
    operands: ['a', 'b', 'c', '-', 'd'],
  })
})

test('another name of a flag takes its value, too', () => {
  expect(split('--warning 30d a')).toEqual({ flags: ['--warning', '30d'], operands: ['a'] })
})

test('a value that is written together with its flag takes no operand', () => {
  expect(split('--output=json a -ojson b -o=json c')).toEqual({
    flags: ['--output=json', '-ojson', '-o=json'],
    operands: ['a', 'b', 'c'],
  })
})

test('behind -- everything is an operand', () => {
  expect(split('-w -- -o --warn')).toEqual({ flags: ['-w'], operands: ['-o', '--warn'] })
})

test('flags that nobody knows are left for oclif to refuse', () => {
  expect(split('--frobnicate a --warn')).toEqual({ flags: ['--frobnicate', '--warn'], operands: ['a'] })
})
