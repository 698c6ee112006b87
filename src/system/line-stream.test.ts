import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { longestLineBytes, readLines } from './line-stream.ts'

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function linesOf(bytes: Buffer, size = 1 << 20) {
  const lines: string[] = []
  const reading = await readLines(inChunks(bytes, size), (line) => {
    lines.push(line)
    return true
  })
  return { lines, reading }
}

const text = 'one\nzwei\u00e9\n\nfour'

test.each([1, 2, 3, 7, 100])(
  'reads the same lines from chunks of %i bytes, plain and compressed',
  async (size) => {
    for (const bytes of [Buffer.from(text), gzipSync(text)]) {
      const { lines, reading } = await linesOf(bytes, size)
      expect(lines).toEqual(['one', 'zwei\u00e9', ''])
      expect(reading).toEqual({ lines: 3, long: 0, rest: 'four' })
    }
  },
)

test('reads two gzip members in one file as one log', async () => {
  const bytes = Buffer.concat([gzipSync('one\n'), gzipSync('two\n')])
  expect((await linesOf(bytes)).lines).toEqual(['one', 'two'])
})

test('keeps the lines before the damage of a compressed log, and says where reading stopped', async () => {
  const whole = gzipSync(Array.from({ length: 50_000 }, (_, index) => `line ${index * 7919}`).join('\n'))
  const { lines, reading } = await linesOf(whole.subarray(0, whole.length / 2), 4096)
  expect(lines.length).toBeGreaterThan(1000)
  expect(lines[1]).toBe('line 7919')
  expect(reading.failure).toContain('unexpected end of file')
  expect((await linesOf(Buffer.from([0x1f, 0x8b, 1, 2, 3]))).reading.failure).toBeDefined()
})

test('skips a line above the limit, without keeping it, and reads the next ones', async () => {
  const huge = Buffer.alloc(longestLineBytes + 1, 'x')
  const { lines, reading } = await linesOf(
    Buffer.concat([Buffer.from('a\n'), huge, Buffer.from('\nb\n'), huge]),
  )
  expect(lines).toEqual(['a', 'b'])
  expect(reading).toEqual({ lines: 3, long: 2, rest: '' })
})

test('reports an error of the source', async () => {
  async function* failing() {
    yield Buffer.from('one\ntw')
    throw new Error('EIO: i/o error, read')
  }
  expect(await readLines(failing(), () => true)).toMatchObject({ lines: 1, failure: 'EIO: i/o error, read' })
})

test('stops where the reader wants no more lines', async () => {
  let closed = false
  async function* endless() {
    try {
      for (;;) yield Buffer.from('a\nb\n')
    } finally {
      closed = true
    }
  }
  let count = 0
  await readLines(endless(), () => ++count < 3)
  expect([count, closed]).toEqual([3, true])
})
