import { describe, expect, test } from 'vitest'
import { issued } from '../../test/scripts/small-pki.ts'
import { Certificate } from './certificate.ts'
import { element, integer, oid, sequence } from './der-writer.ts'
import type { RawExtension } from './issuing.ts'
import { policiesAllow } from './policies.ts'

const any = '2.5.29.32.0'
const [gold, silver] = ['1.2.3.1', '1.2.3.2']

/** Returns policyConstraints with one or both of its fields. */
const constraints = (explicitPolicy: number, policyMapping?: number): RawExtension => ({
  oid: '2.5.29.36',
  critical: true,
  value: sequence(
    element(0x80, Uint8Array.of(explicitPolicy)),
    ...(policyMapping === undefined ? [] : [element(0x81, Uint8Array.of(policyMapping))]),
  ),
})
const demandsPolicy = (afterCertificates: number): RawExtension => constraints(afterCertificates)
const inhibitsAnyPolicy: RawExtension = { oid: '2.5.29.54', critical: true, value: integer(0) }
const maps = (from: string, to: string): RawExtension => ({
  oid: '2.5.29.33',
  value: sequence(sequence(oid(from), oid(to))),
})

interface Link {
  readonly policies?: readonly string[]
  readonly extensions?: readonly RawExtension[]
  readonly isSelfIssued?: boolean
}

/** From the leaf to the root. */
function allows(...links: readonly Link[]): boolean {
  const chain = links.map(({ isSelfIssued, ...asked }, i) => {
    const issuer = issued({ subject: { commonName: isSelfIssued ? `link ${i}` : 'issuer' } })
    return Certificate.parse(issued({ subject: { commonName: `link ${i}` }, ...asked }, issuer).der)
  })
  return policiesAllow(chain)
}

const root: Link = {}

describe('policies of a chain', () => {
  test.for<[rule: string, chain: readonly Link[], isAllowed: boolean]>([
    ['are ignored unless a CA requires one', [{}, {}, root], true],
    [
      'are valid when every certificate has the same one',
      [{ policies: [gold] }, { policies: [gold], extensions: [demandsPolicy(0)] }, root],
      true,
    ],
    [
      'are invalid when the leaf has none',
      [{}, { policies: [gold], extensions: [demandsPolicy(0)] }, root],
      false,
    ],
    [
      'are invalid when the leaf has another',
      [{ policies: [silver] }, { policies: [gold], extensions: [demandsPolicy(0)] }, root],
      false,
    ],
    [
      'are required after the number of certificates in the CA',
      [{}, {}, { policies: [gold], extensions: [demandsPolicy(1)] }, root],
      false,
    ],
    ['are not required earlier', [{}, {}, { policies: [gold], extensions: [demandsPolicy(3)] }, root], true],
    [
      'of a CA with anyPolicy are those of the leaf',
      [{ policies: [gold] }, { policies: [any], extensions: [demandsPolicy(0)] }, root],
      true,
    ],
    [
      'of a CA with anyPolicy are empty if it is inhibited',
      [
        { policies: [gold] },
        { policies: [any] },
        { policies: [any], extensions: [demandsPolicy(0), inhibitsAnyPolicy] },
        root,
      ],
      false,
    ],
    [
      'are mapped',
      [
        { policies: [silver] },
        { policies: [gold], extensions: [demandsPolicy(0), maps(gold, silver)] },
        root,
      ],
      true,
    ],
    [
      'are mapped by a CA with anyPolicy too',
      [{ policies: [silver] }, { policies: [any], extensions: [demandsPolicy(0), maps(gold, silver)] }, root],
      true,
    ],
    [
      'are not mapped if mapping is inhibited',
      [
        { policies: [silver] },
        { policies: [gold], extensions: [maps(gold, silver)] },
        { policies: [gold], extensions: [constraints(0, 0)] },
        root,
      ],
      false,
    ],
    [
      'are never mapped to or from anyPolicy',
      [{ policies: [silver] }, { policies: [gold], extensions: [maps(any, silver)] }, root],
      false,
    ],
    ['of a leaf that requires one itself must exist', [{ extensions: [demandsPolicy(0)] }, {}, root], false],
    [
      'are counted without self-issued CAs',
      [{}, { isSelfIssued: true }, { extensions: [demandsPolicy(2)] }, root],
      true,
    ],
    ['are counted with other CAs', [{}, {}, { extensions: [demandsPolicy(2)] }, root], false],
    [
      'may be anyPolicy in a self-issued CA if it is inhibited for others',
      [
        { policies: [gold] },
        { policies: [any], isSelfIssued: true },
        { policies: [any], extensions: [demandsPolicy(0), inhibitsAnyPolicy] },
        root,
      ],
      true,
    ],
    ['of a root are ignored', [{ extensions: [demandsPolicy(0)] }], true],
  ])('%s', ([, chain, isAllowed]) => {
    expect(allows(...chain)).toBe(isAllowed)
  })
})
