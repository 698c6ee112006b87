import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  contentOfPlainCertificate,
  isCertificateLabel,
  looksLikePem,
  type PemBlock,
  readPem,
  writePem,
} from './pem.ts'
import '../../test/seeded.ts'

const hello = Buffer.from('hello, kcert, how are you? This takes more than one line of sixty-four.')
const block = writePem('CERTIFICATE', hello)
const text = ({ der }: PemBlock): string => Buffer.from(der).toString()
const only = (input: string | Uint8Array): PemBlock => {
  const { blocks, defects } = readPem(input)
  expect(defects).toEqual([])
  expect(blocks).toHaveLength(1)
  return blocks[0]!
}
const reasonOf = (input: string): string => {
  const { blocks, defects } = readPem(input)
  expect(blocks).toEqual([])
  return defects.map(({ reason }) => reason).join('; ')
}

test('writes 64 columns and a final newline, and reads the result back', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 400 }),
      fc.constantFrom('CERTIFICATE', 'RSA PRIVATE KEY'),
      (der, label) => {
        const written = writePem(label, der)
        expect(written.endsWith(`-----END ${label}-----\n`)).toBe(true)
        expect(Math.max(...written.split('\n').map((line) => line.length))).toBeLessThanOrEqual(64)
        expect(only(written)).toMatchObject({ label, index: 0, offset: 0, line: 1 })
        expect(Buffer.from(only(written).der)).toEqual(Buffer.from(der))
      },
    ),
  )
})

describe('reads a block', () => {
  test.each([
    ['CRLF', block.replaceAll('\n', '\r\n')],
    ['lone CR', block.replaceAll('\n', '\r')],
    ['a byte order mark', `\ufeff${block}`],
    ['a missing last newline', block.trimEnd()],
    ['text before it', `subject=CN = kcert\nissuer=CN = ca\n${block}`],
    ['text after it', `${block}and so on`],
    ['spaces and tabs in the base64', block.replaceAll(/(\w{20})/g, '$1 \t')],
    ['empty lines in the base64', block.replaceAll('\n', '\n\n')],
    ['blanks at the ends of lines', block.replaceAll('\n', '  \n')],
    ['one long line', block.replaceAll(/(?<=[\w+/])\n(?=[\w+/])/g, '')],
    ['lines of one character', block.replaceAll(/([A-Za-z0-9+/=])(?=[^-]*\n-----END)/g, '$1\n')],
  ])('%s', (_, input) => {
    expect(text(only(input))).toBe(hello.toString())
  })

  const littleEndian = Buffer.from(`\ufeff${block}`, 'utf16le')
  test.each([
    ['as PowerShell writes it', littleEndian],
    ['of the other order', Buffer.from(littleEndian).swap16()],
  ])('UTF-16, %s', (_, utf16) => {
    expect(looksLikePem(utf16)).toBe(true)
    expect(text(only(utf16))).toBe(hello.toString())
  })
})

test('reads headers and trims names and values', () => {
  const input = block.replace('\n', '\nProc-Type: 4,ENCRYPTED\nDEK-Info:  AES-256-CBC,00ff \n\n')
  expect([...only(input).headers]).toEqual([
    ['Proc-Type', '4,ENCRYPTED'],
    ['DEK-Info', 'AES-256-CBC,00ff'],
  ])
})

test('reports index, byte offset and line of each block', () => {
  const { blocks } = readPem(`ä\n${block}x\n${block}`)
  expect(blocks.map(({ index, line, offset }) => [index, line, offset])).toEqual([
    [0, 2, 3],
    [1, 7, 3 + block.length + 2],
  ])
})

describe('a damaged block among valid ones', () => {
  const damaged = block.replace('aGVsbG8s', 'aGVs*G8s')

  test('is reported with line and reason, and the valid ones are returned', () => {
    const { blocks, defects } = readPem(block + damaged + block)
    expect(blocks.map(({ index }) => index)).toEqual([0, 2])
    expect(defects).toEqual([
      {
        label: 'CERTIFICATE',
        index: 1,
        offset: block.length,
        line: 5,
        reason: '"*" at line 6 does not belong in base64',
        isLayout: false,
      },
    ])
  })

  test.each([
    ['without END line', block.split('-----END')[0]!, 'no END line'],
    [
      'with another label at its end',
      block.replace('END CERT', 'END X509 CERT'),
      'the END line says X509 CERTIFICATE',
    ],
    ['with a damaged END line', block.replace('-----END', '-----ENDE'), 'damaged END line'],
    [
      'with a damaged BEGIN line',
      block.replace('TE-----\n', 'TE----\n'),
      'the BEGIN line does not end in "-----"',
    ],
    [
      'with text after BEGIN',
      block.replace('-----\n', '----- x\n'),
      'the BEGIN line has text after its dashes',
    ],
    ['on one line', block.replaceAll('\n', ''), 'the BEGIN line has text after its dashes'],
    ['that is indented', `  ${block}`, '"-----BEGIN" does not start its line, so readers skip the block'],
    ['with a missing character', block.replace('aGVs', 'aGV'), 'the base64 text is incomplete'],
    ['with padding inside', block.replace('aGVsbG8s', 'aGVsbA=='), 'does not belong in base64'],
    [
      'with padding that is too long',
      block.replace('\n-----END', '=\n-----END'),
      'does not belong in base64',
    ],
    ['with a control character', block.replace('aGVs', 'aG\x1bVs'), 'byte 0x1b at line 2'],
  ])('%s', (_, input, reason) => {
    expect(reasonOf(input)).toContain(reason)
  })

  test.each([
    ['a dash before BEGIN', block.slice(1), 'no BEGIN line before the END line'],
    ['the BEGIN line', block.slice(block.indexOf('\n') + 1), 'no BEGIN line before the END line'],
    ['a dash after BEGIN', block.replace('TE-----\n', 'TE----\n'), 'the BEGIN line does not end in "-----"'],
  ])('recognizes a certificate without %s before the next one', (_, damaged, reason) => {
    const { blocks, defects } = readPem(damaged + block)
    expect(defects).toMatchObject([{ label: 'CERTIFICATE', index: 0, reason }])
    expect(blocks.map(({ index }) => index)).toEqual([1])
  })

  test('ends a block at the next BEGIN and reads the second one', () => {
    const { blocks, defects } = readPem(`-----BEGIN CERTIFICATE-----\nAAAA\n${block}`)
    expect(defects[0]).toMatchObject({ line: 1, reason: 'no END line before the next BEGIN' })
    expect(blocks.map(text)).toEqual([hello.toString()])
  })

  test('reports both of two blocks with no newline between them: Go and OpenSSL read neither', () => {
    expect(reasonOf(block.trimEnd() + block)).toBe(
      'no line break after the END line, so readers skip the block; ' +
        '"-----BEGIN" does not start its line, so readers skip the block',
    )
  })
})

test('accepts the three certificate labels in use', () => {
  expect(['CERTIFICATE', 'X509 CERTIFICATE', 'TRUSTED CERTIFICATE'].every(isCertificateLabel)).toBe(true)
  expect(isCertificateLabel('CERTIFICATE REQUEST')).toBe(false)
})

test('does not mistake DER for PEM, whatever text it contains', () => {
  expect(looksLikePem(Buffer.from('0\x82\x01\x00 -----BEGIN CERTIFICATE-----', 'latin1'))).toBe(false)
  expect(looksLikePem(Buffer.from(`0 s:CN = kcert\n${block}`))).toBe(true)
  expect(looksLikePem(new Uint8Array(0))).toBe(false)
})

describe('hostile text', () => {
  const size = 10_000_000
  test.each([
    ['"-----BEGIN " without end', '-----BEGIN '],
    ['BEGIN lines without label', '-----BEGIN \n'],
    ['BEGIN lines', '-----BEGIN A-----\n'],
    ['BEGIN lines after blanks', '          -----BEGIN A-----\n'],
    ['END lines', '-----END A-----\n'],
    ['dashes', '-'],
    ['empty blocks', '-----BEGIN A-----\n-----END A-----\n'],
    ['headers', 'a:'],
    ['newlines', '\n'],
  ])('reads 10 MB of %s in one pass', (_, unit) => {
    const input = Buffer.alloc(size, unit)
    const { defects } = readPem(input)
    expect(defects.length).toBeLessThanOrEqual(1000)
  })

  test('reads 10 MB of headers in one block in one pass', () => {
    const headers = Buffer.alloc(size, 'a: b\n')
    const { blocks } = readPem(
      Buffer.concat([Buffer.from('-----BEGIN A-----\n'), headers, Buffer.from('-----END A-----')]),
    )
    expect(blocks[0]!.headers.size).toBe(1)
  })

  test('reads any text without an exception', () => {
    const piece = fc.constantFrom(
      '-----BEGIN ',
      '-----END ',
      '-----',
      'A',
      '\n',
      '\r',
      ' ',
      ':',
      '=',
      'AAAA',
      '\ufeff',
      'ä',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const { blocks, defects } = readPem(pieces.join(''))
        const places = [...blocks, ...defects].map(({ index }) => index).sort((a, b) => a - b)
        expect(places).toEqual(places.map((_, i) => i))
      }),
      { numRuns: 3000 },
    )
  })
})

describe('the fast path for a text that is one certificate', () => {
  test('reads what tools write, at any size', () => {
    for (let size = 1; size < 200; size++) {
      const der = Buffer.alloc(size, size)
      expect(contentOfPlainCertificate(Buffer.from(writePem('CERTIFICATE', der)))).toEqual(der)
    }
  })

  test.each([
    ['another label', writePem('PRIVATE KEY', hello)],
    ['a second block', block + block],
    ['text before it', `x\n${block}`],
    ['text after it', `${block}x`],
    ['no last line break', block.trimEnd()],
    ['a header', block.replace('\n', '\nProc-Type: 4\n\n')],
    ['a character of the other base64 alphabet', block.replace('Z', '_')],
    ['a character that does not belong', block.replace('Z', '!')],
    ['a character that does not belong in the place of a line break', block.replace(/(?<=.{64})\n/, '!')],
  ])('leaves a text with %s to the full parser', (_, input) => {
    expect(contentOfPlainCertificate(Buffer.from(input))).toBeUndefined()
  })

  test('always agrees with the full parser', () => {
    const edit = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.nat(2),
      put: fc.constantFrom(
        '',
        '-',
        '_',
        '=',
        '==',
        ' ',
        '\n',
        '\r',
        '\t',
        '\f',
        '\0',
        '!',
        ':',
        'A',
        '/',
        'é',
      ),
    })
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.array(edit, { maxLength: 3 }), (der, edits) => {
        let input = writePem('CERTIFICATE', der)
        for (const { at, cut, put } of edits) {
          const from = Math.floor(at * input.length)
          input = input.slice(0, from) + put + input.slice(from + cut)
        }
        const content = contentOfPlainCertificate(Buffer.from(input))
        if (content === undefined) return
        expect(only(input)).toMatchObject({ label: 'CERTIFICATE', index: 0, line: 1, offset: 0 })
        expect(Buffer.from(content)).toEqual(Buffer.from(only(input).der))
      }),
      { numRuns: 3000 },
    )
  })
})

test('stops at 65,536 blocks and reports the position', () => {
  const { blocks, defects } = readPem('-----BEGIN A-----\n-----END A-----\n'.repeat(70_000))
  expect(blocks).toHaveLength(65_536)
  expect(defects).toEqual([
    {
      label: '',
      index: 65_536,
      offset: 65_536 * 34,
      line: 65_536 * 2 + 1,
      reason: 'more than 65536 BEGIN lines are in the file, and from here on it is not read',
      isLayout: false,
    },
  ])
  expect(readPem('-----BEGIN A-----\n-----END A-----\n'.repeat(65_536)).defects).toEqual([])
})
