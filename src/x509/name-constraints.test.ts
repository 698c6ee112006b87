import { describe, expect, test } from 'vitest'
import { createCa, issued } from '../../test/scripts/small-pki.ts'
import { Certificate } from './certificate.ts'
import type { AltNamesDescription, SubtreesDescription } from './issuing.ts'
import { findConstraintViolation } from './name-constraints.ts'

interface Constraints {
  readonly permitted?: SubtreesDescription
  readonly excluded?: SubtreesDescription
}

/** Returns "allowed", or the rejected name and the reason. */
function evaluate(constraints: Constraints, names: AltNamesDescription): string {
  const ca = createCa('ca')
  const constrained = issued({ subject: ca.subject, nameConstraints: constraints }, ca)
  const leaf = issued({ subject: { commonName: 'leaf' }, subjectAltNames: names }, ca)
  const violation = findConstraintViolation([leaf.der, constrained.der].map((der) => Certificate.parse(der)))
  if (violation === undefined) return 'allowed'
  const { name, excludedBy, unusable } = violation
  return (
    unusable ?? (excludedBy === undefined ? `${name} not permitted` : `${name} excluded by ${excludedBy}`)
  )
}

describe('names under the constraints of a CA', () => {
  test.for<[rule: string, constraints: Constraints, names: AltNamesDescription, verdict: string]>([
    ['a domain matches itself', { permitted: { dns: ['example.com'] } }, { dns: ['EXAMPLE.com'] }, 'allowed'],
    [
      'a domain matches its subdomains',
      { permitted: { dns: ['example.com'] } },
      { dns: ['a.b.example.com'] },
      'allowed',
    ],
    [
      'labels are whole',
      { permitted: { dns: ['example.com'] } },
      { dns: ['badexample.com'] },
      'badexample.com not permitted',
    ],
    [
      'a dot in front leaves the domain itself out',
      { permitted: { dns: ['.example.com'] } },
      { dns: ['a.example.com', 'example.com'] },
      'example.com not permitted',
    ],
    [
      'a host with a hyphen does not hide the one with a dot next to it',
      { permitted: { dns: ['example.com', 'a-example.com'] } },
      { dns: ['a.example.com', 'b.a-example.com'] },
      'allowed',
    ],
    ['the empty domain matches every name', { excluded: { dns: [''] } }, { dns: ['a'] }, 'a excluded by '],
    [
      'a star is excluded if one of its hosts is',
      { excluded: { dns: ['a.example.com'] } },
      { dns: ['*.example.com'] },
      '*.example.com excluded by a.example.com',
    ],
    [
      'a star is permitted only if all of its hosts are',
      { permitted: { dns: ['a.example.com'] } },
      { dns: ['*.example.com'] },
      '*.example.com not permitted',
    ],
    [
      'excluded wins over permitted',
      { permitted: { dns: ['example.com'] }, excluded: { dns: ['bad.example.com'] } },
      { dns: ['good.example.com', 'x.bad.example.com'] },
      'x.bad.example.com excluded by bad.example.com',
    ],
    [
      'constraints of another kind do not matter',
      { permitted: { ip: ['10.0.0.0/8'] } },
      { dns: ['a'] },
      'allowed',
    ],
    ['an address is in a range', { permitted: { ip: ['10.0.0.0/8'] } }, { ip: ['10.255.0.1'] }, 'allowed'],
    ['or not', { permitted: { ip: ['10.0.0.0/8'] } }, { ip: ['11.0.0.1'] }, '11.0.0.1 not permitted'],
    [
      'IPv4 ranges hold no IPv6 addresses',
      { permitted: { ip: ['0.0.0.0/0'] } },
      { ip: ['fd00::1'] },
      'fd00::1 not permitted',
    ],
    [
      'the narrowest range that comes first is not the only one',
      { excluded: { ip: ['10.0.0.0/24', '10.0.0.0/8', 'fd00::/8'] } },
      { ip: ['10.9.0.1'] },
      '10.9.0.1 excluded by 10.0.0.0/8',
    ],
    [
      // RFC 5280 would allow it. Go checks only the nearest range below an address.
      'a range with bits after its mask is not found after a smaller one, as in Go',
      { permitted: { ip: ['9.0.0.0/8', '10.9.9.9/8'] } },
      { ip: ['10.0.0.1'] },
      '10.0.0.1 not permitted',
    ],
    [
      'a mailbox is permitted by its host',
      { permitted: { email: ['example.com'] } },
      { email: ['a@Example.com'] },
      'allowed',
    ],
    [
      'the local part of a whole mailbox is compared with its case',
      { permitted: { email: ['a@example.com'] } },
      { email: ['A@example.com'] },
      'A@example.com not permitted',
    ],
    [
      'a text that is not a mailbox cannot be compared',
      { permitted: { dns: ['x'] } },
      { email: ['nobody'] },
      'not-a-name',
    ],
    [
      'a URI is permitted by its host, whatever its port',
      { permitted: { uri: ['example.com'] } },
      { uri: ['https://user@a.example.com:8443/x?y#z'] },
      'allowed',
    ],
    ['a URI without a host cannot be compared', { permitted: { dns: ['x'] } }, { uri: ['urn:x'] }, 'no-host'],
    ['nor one with an address', { permitted: { dns: ['x'] } }, { uri: ['https://[::1]:443/'] }, 'address'],
    ['nor one with several ports', { permitted: { dns: ['x'] } }, { uri: ['db://a:1,b:2/'] }, 'bad-port'],
  ])('%s', ([, constraints, names, verdict]) => {
    expect(evaluate(constraints, names)).toBe(verdict)
  })

  test('constraints apply to the CAs below, and not to the certificate that contains them', () => {
    const ca = createCa('ca')
    const constrained = issued({
      subject: { commonName: 'constrained' },
      subjectAltNames: { dns: ['outside.org'] },
      nameConstraints: { permitted: { dns: ['example.com'] } },
    })
    const below = issued(
      { subject: { commonName: 'below' }, subjectAltNames: { dns: ['b.example.org'] } },
      ca,
    )
    const leaf = issued({ subject: { commonName: 'leaf' }, subjectAltNames: { dns: ['a.example.com'] } }, ca)
    const chain = [leaf, below, constrained].map(({ der }) => Certificate.parse(der))
    expect(findConstraintViolation(chain)).toMatchObject({
      name: 'b.example.org',
      certificate: chain[1],
      constrainedBy: chain[2],
    })
    expect(findConstraintViolation([chain[0]!, chain[2]!])).toBeUndefined()
  })
})
