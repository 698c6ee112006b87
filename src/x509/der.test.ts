import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { craft, extensions, selfSigned } from '../../test/fixtures/certificates.ts'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { Certificate } from './certificate.ts'
import { DerReader, derLimits, tags } from './der.ts'
import {
  bitString,
  boolean,
  element,
  explicit,
  integer,
  octetString,
  oid,
  sequence,
  setOf,
} from './der-writer.ts'
import '../../test/seeded.ts'

const reader = (...bytes: number[]): DerReader => new DerReader(Uint8Array.from(bytes), 'sample')
const refusal = (bytes: number[], read: (reader: DerReader) => unknown): string =>
  thrownBy(() => read(reader(...bytes))).message

describe('strict DER', () => {
  test.each([
    ['an empty input', [], 'sample: field at offset 0: missing'],
    ['a lone tag', [0x30], 'sample: field at offset 0: truncated'],
    ['a length past the end', [0x04, 0x05, 1, 2], 'truncated: length 5, but 2 bytes are left'],
    ['an indefinite length', [0x30, 0x80, 0, 0], 'indefinite length, which is BER and not DER'],
    ['a long form for a short length', [0x04, 0x81, 0x01, 1], 'length is not minimal'],
    [
      'a length with a leading zero',
      [0x04, 0x82, 0x00, 0x80, ...Array(128).fill(0)],
      'length is not minimal',
    ],
    ['a length in five bytes', [0x04, 0x85, 0, 0, 0, 0, 1, 1], 'length in 5 bytes'],
    ['a length whose bytes are missing', [0x04, 0x82, 0x01], 'truncated'],
    ['a tag number above 30', [0x3f, 0x81, 0x00, 0x00], 'tag number above 30'],
  ])('rejects %s', (_, bytes, reason) => {
    expect(refusal(bytes, (r) => r.next('field'))).toContain(reason)
  })

  test.each([
    ['00', [0x01, 0x01, 0x00], false],
    ['FF', [0x01, 0x01, 0xff], true],
  ])('reads BOOLEAN %s', (_, bytes, value) => {
    expect(reader(...bytes).boolean('field')).toBe(value)
  })

  test.each([
    ['01', [0x01, 0x01, 0x01]],
    ['of two bytes', [0x01, 0x02, 0x00, 0x00]],
    ['of none', [0x01, 0x00]],
  ])('rejects BOOLEAN %s', (_, bytes) => {
    expect(refusal(bytes, (r) => r.boolean('critical'))).toBe(
      'sample: critical at offset 2: BOOLEAN is neither 00 nor FF',
    )
  })

  test.each([
    ['empty', [0x02, 0x00], 'empty INTEGER'],
    ['with a leading 00', [0x02, 0x02, 0x00, 0x7f], 'INTEGER is not minimal'],
    ['with a leading FF', [0x02, 0x02, 0xff, 0x80], 'INTEGER is not minimal'],
    ['above 64 bits', [0x02, 0x09, 1, 0, 0, 0, 0, 0, 0, 0, 0], 'INTEGER above 64 bits'],
  ])('rejects INTEGER %s', (_, bytes, reason) => {
    expect(refusal(bytes, (r) => r.int64('version'))).toContain(reason)
  })

  test.each([
    ['empty', [0x03, 0x00], 'empty BIT STRING'],
    ['with 8 unused bits', [0x03, 0x02, 0x08, 0x00], 'unused bits'],
    ['with unused bits that are set', [0x03, 0x02, 0x01, 0x01], 'unused bits'],
    ['with unused bits but no byte', [0x03, 0x01, 0x01], 'unused bits'],
  ])('rejects BIT STRING %s', (_, bytes, reason) => {
    expect(refusal(bytes, (r) => r.bitString('key'))).toContain(reason)
  })

  test.each([
    ['empty', [0x06, 0x00], 'empty OBJECT IDENTIFIER'],
    ['with a leading 80', [0x06, 0x02, 0x80, 0x01], 'is not minimal'],
    ['that stops inside an arc', [0x06, 0x02, 0x2a, 0x86], 'is truncated'],
    ['with an arc above 2^31', [0x06, 0x06, 0x2a, 0x88, 0x80, 0x80, 0x80, 0x00], 'an arc above 2^31'],
  ])('rejects OBJECT IDENTIFIER %s', (_, bytes, reason) => {
    expect(refusal(bytes, (r) => r.oid('extnID'))).toContain(reason)
  })

  test('reads an arc of any size where policies allow it', () => {
    expect(new DerReader(oid('2.999.340282366920938463463374607431768211456'), '').oidOfAnySize('')).toBe(
      '2.999.340282366920938463463374607431768211456',
    )
  })

  test('reports the unexpected tag and the expected one', () => {
    expect(refusal([0x31, 0x00], (r) => r.read(tags.sequence, 'validity'))).toBe(
      'sample: validity at offset 0: SET where SEQUENCE belongs',
    )
    expect(refusal([0xa0, 0x00], (r) => r.read(tags.integer, 'serialNumber'))).toContain(
      '[0] where INTEGER belongs',
    )
  })

  test('reports the path of the field and the offset in the whole input', () => {
    const r = new DerReader(sequence(integer(1), sequence(Uint8Array.of(0x01, 0x01, 0x07))), 'certificate')
    r.enter(tags.sequence, '')
    r.integer('version')
    r.path = 'extensions.'
    r.enter(tags.sequence, '')
    expect(thrownBy(() => r.boolean('critical'))).toMatchObject({
      code: 'KCERT_X509_MALFORMED',
      message: 'certificate: extensions.critical at offset 9: BOOLEAN is neither 00 nor FF',
    })
  })
})

describe('limits', () => {
  test('rejects nesting deeper than the limit', () => {
    let nested: Uint8Array = sequence()
    for (let i = 0; i < derLimits.depth; i++) nested = sequence(nested)
    const r = new DerReader(nested, 'sample')
    const descend = (): void => {
      for (;;) r.enter(tags.sequence, 'nest')
    }
    expect(thrownBy(descend).message).toContain(`nested deeper than ${derLimits.depth}`)
  })

  test('reads an INTEGER at the limit and rejects one above it', () => {
    const bytes = (length: number): Uint8Array => integer(new Uint8Array(length).fill(0x7f))
    new DerReader(bytes(derLimits.integerBytes), 'sample').integer('serialNumber')
    const tooLong = new DerReader(bytes(derLimits.integerBytes + 1), 'sample')
    expect(thrownBy(() => tooLong.integer('serialNumber')).message).toContain(
      'more than the 8192 that kcert reads',
    )
  })

  test('rejects an input above the limit before reading it', () => {
    const huge = new Uint8Array(derLimits.documentBytes + 1)
    expect(thrownBy(() => new DerReader(huge, 'certificate')).message).toContain('that kcert reads')
  })

  test('rejects an OBJECT IDENTIFIER above the limit', () => {
    const huge = element(
      tags.oid,
      new Uint8Array(derLimits.oidBytes + 1).fill(0x81).fill(1, derLimits.oidBytes),
    )
    expect(thrownBy(() => new DerReader(huge, 'sample').oidOfAnySize('policy')).message).toContain(
      'of 257 bytes',
    )
  })
})

describe('reads back what it writes', () => {
  test('INTEGER', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        expect(new DerReader(integer(value), '').int64('')).toBe(value)
      }),
    )
  })

  test('INTEGER for any unsigned magnitude', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 64 }), (magnitude) => {
        const r = new DerReader(integer(magnitude), '')
        r.integer('')
        expect(r.isNegative).toBe(false)
        expect(BigInt(`0x${r.unsignedHex()}`)).toBe(BigInt(`0x${Buffer.from(magnitude).toString('hex')}`))
      }),
    )
  })

  test('OBJECT IDENTIFIER', () => {
    const first = fc.oneof(
      fc.tuple(fc.constantFrom(0, 1), fc.nat(39)),
      fc.tuple(fc.constant(2), fc.nat(0x7fffffff - 80)),
    )
    fc.assert(
      fc.property(first, fc.array(fc.nat(0x7fffffff), { maxLength: 8 }), (head, rest) => {
        const dotted = [...head, ...rest].join('.')
        expect(new DerReader(oid(dotted), '').oid('')).toBe(dotted)
      }),
    )
  })

  test('BIT STRING, shifted right as in Go', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.nat(7), (content, unused) => {
        const masked = Buffer.from(content)
        masked[masked.length - 1]! &= 0xff << unused
        const r = new DerReader(bitString(masked, unused), '')
        const shifted = r.rightAligned(r.bitString(''))
        const number = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
        expect(number(shifted)).toBe(number(masked) >> BigInt(unused))
      }),
    )
  })

  test('elements of any length and nesting', () => {
    const tree = fc.letrec<{ node: Uint8Array }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 6 },
        fc.uint8Array({ maxLength: 300 }).map(octetString),
        fc.boolean().map(boolean),
        fc.array(tie('node'), { maxLength: 4 }).map((children) => sequence(...children)),
        fc.array(tie('node'), { maxLength: 4 }).map((children) => explicit(3, ...children)),
      ),
    })).node
    const rewrite = (r: DerReader): Uint8Array => {
      const tag = r.next('')
      if ((tag & 0x20) === 0) return element(tag, r.lastContent)
      const outer = r.enterLast('')
      const children: Uint8Array[] = []
      while (!r.atEnd) children.push(rewrite(r))
      r.leave(outer)
      return element(tag, ...children)
    }
    fc.assert(
      fc.property(tree, (der) => {
        expect(Buffer.from(rewrite(new DerReader(der, '')))).toEqual(Buffer.from(der))
      }),
    )
  })

  test('writes SET OF in the order of its bytes', () => {
    expect(Buffer.from(setOf(integer(3), integer(1), integer(2))).toString('hex')).toBe(
      '3109020101020102020103',
    )
  })
})

describe('hostile input', () => {
  test('rejects a certificate cut at any byte, with the offset', () => {
    const der = selfSigned({
      keyUsage: ['digitalSignature'],
      subjectAltNames: { dns: ['a'], ip: ['10.0.0.1'] },
    })
    for (let length = 0; length < der.length; length++) {
      const error = thrownBy(() => Certificate.parse(der.subarray(0, length)))
      expect(error.code).toBe('KCERT_X509_MALFORMED')
      expect(error.message).toMatch(/^certificate: .*offset \d+: /)
    }
  })

  test('reads random bytes and damaged certificates, or reports them as malformed', () => {
    const der = selfSigned({
      extendedKeyUsage: ['serverAuth'],
      nameConstraints: { permitted: { dns: ['a'] } },
    })
    const isVerdict = (bytes: Uint8Array): void => {
      try {
        expect(Certificate.parse(bytes)).toBeInstanceOf(Certificate)
      } catch (error) {
        expect(error).toMatchObject({ code: 'KCERT_X509_MALFORMED' })
      }
    }
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), isVerdict))
    fc.assert(
      fc.property(fc.nat(der.length - 1), fc.nat(255), fc.nat(der.length - 1), fc.nat(255), (i, x, j, y) => {
        const mutant = Uint8Array.from(der)
        mutant[i] = x
        mutant[j] = y
        isVerdict(mutant)
      }),
      { numRuns: 2000 },
    )
  })

  test('reads a certificate with 50,000 small extensions in linear time', () => {
    const list = Array.from({ length: 50_000 }, (_, i) =>
      sequence(oid(`1.2.${i}`), octetString(new Uint8Array(0))),
    )
    const der = craft({ tail: extensions(list) })
    expect(Certificate.parse(der).extensions).toHaveLength(50_000)
  })
})
