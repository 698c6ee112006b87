import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { renderYaml } from './yaml.ts'
import '../../test/seeded.ts'

test('leaves plain text unquoted, and quotes text that some parser reads as another type', () => {
  const document = {
    kind: 'Report',
    serialNumber: '12e4',
    at: '2026-11-21T09:00:00Z',
    no: 'no',
    empty: [],
    none: undefined,
    list: [{ a: 1, b: [true] }],
  }
  expect(renderYaml(document)).toBe(
    [
      'kind: Report',
      'serialNumber: "12e4"',
      'at: "2026-11-21T09:00:00Z"',
      '"no": "no"',
      'empty: []',
      'list:',
      '  - a: 1',
      '    b:',
      '      - true',
      '',
    ].join('\n'),
  )
})

test('parses back to the same data with YAML 1.1 and 1.2', () => {
  const string = fc.oneof(
    fc.string({ unit: 'binary' }).map((text) => text.toWellFormed()),
    fc.constantFrom(
      '~',
      'null',
      'Yes',
      '0x1f',
      '1_000',
      '.inf',
      '- a',
      'a: b',
      'a #b',
      '<<',
      '=',
      'y',
      '12:30:45',
      '',
      ' a',
      'a ',
    ),
  )
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      string,
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      tie('list'),
      tie('map'),
    ),
    list: fc.array(tie('tree'), { maxLength: 4 }),
    map: fc.dictionary(string, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
  }))
  fc.assert(
    fc.property(fc.dictionary(string, tree, { minKeys: 1, noNullPrototype: true }), (document) => {
      const yaml = renderYaml(document)
      // merge keys are a feature of YAML 1.1 that the parser also applies to quoted keys
      expect(parse(yaml, { merge: false })).toEqual(document)
      expect(parse(yaml, { version: '1.1', merge: false })).toEqual(document)
    }),
    { numRuns: 500 },
  )
})
