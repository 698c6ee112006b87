import { expect, test } from 'vitest'
import { withoutTemplate } from './output-template.ts'

// -o jsonpath=TEMPLATE, in every spelling of a flag with a value.

const shapes = {
  output: { type: 'option', char: 'o', options: ['text', 'jsonpath'] },
  yes: { type: 'boolean', char: 'y' },
  name: { type: 'option' },
} as const

test.each([
  [['-o', 'jsonpath={.a}']],
  [['-ojsonpath={.a}']],
  [['-o=jsonpath={.a}']],
  [['--output', 'jsonpath={.a}']],
  [['--output=jsonpath={.a}']],
  [['-yo', 'jsonpath={.a}']],
])('takes the template from %j', (argv) => {
  const [first = ''] = argv
  const { argv: plain, template } = withoutTemplate([...argv, '--name', 'jsonpath=x', 'b'], shapes)
  expect(template).toBe('{.a}')
  expect(plain.join(' ')).toBe(
    `${first.replace('={.a}', '')}${argv.length > 1 ? ' jsonpath' : ''} --name jsonpath=x b`,
  )
})

test('keeps operands after --', () => {
  const argv = ['-o', 'jsonpath={.a}', '--', '-o', 'jsonpath=x']
  expect(withoutTemplate(argv, shapes).argv).toEqual(['-o', 'jsonpath', '--', '-o', 'jsonpath=x'])
})

test.each([[['-o', 'jsonpath']], [['-o', 'jsonpath=']]])('refuses %j, which has no template', (argv) => {
  expect(() => withoutTemplate(argv, shapes)).toThrow('no jsonpath template given')
})

test('does not change the command line of a command without the format', () => {
  const argv = ['-o', 'jsonpath={.a}']
  const output = { type: 'option', char: 'o', options: ['text'] } as const
  expect(withoutTemplate(argv, { output })).toEqual({ argv })
})
