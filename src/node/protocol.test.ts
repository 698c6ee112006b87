import { expect, test } from 'vitest'
import { AnswerReader } from './protocol.ts'

test('reads an answer that arrives byte by byte, between other output', () => {
  const reader = new AnswerReader('mark')
  const text = 'Welcome\n@mark begin 1\nstat äöü\n@mark end 1 0\nmore'
  const answers = [...Buffer.from(text)].flatMap((byte) => reader.take(Buffer.from([byte])))
  expect(answers).toEqual([{ id: '1', lines: ['stat äöü'], status: 0 }])
})

test('reads a long line in small pieces in linear time', () => {
  const reader = new AnswerReader('mark')
  // Copying the complete line for each piece would exceed the time limit of a test.
  for (let piece = 0; piece < 900_000; piece++) reader.take(Buffer.from('x'))
  expect(reader.take(Buffer.from('\n@mark begin 1\n@mark end 1 0\n'))).toMatchObject([{ id: '1' }])
})

test('applies the limits to each line and each answer separately', () => {
  const reader = new AnswerReader('mark')
  const line = Buffer.alloc(1024 * 1024, 'x')
  line[line.length - 1] = 10
  for (let count = 0; count < 300; count++) {
    if (count % 100 === 0) reader.begin()
    reader.take(line)
  }
  expect(() => reader.take(Buffer.alloc(1024 * 1024 + 1, 'x'))).toThrow('a line longer than 1 MiB')
})
