import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createCa, type Issued, issued, sessionTime } from '../../test/scripts/small-pki.ts'
import { Certificate } from './certificate.ts'
import { CertificatePool } from './certificate-pool.ts'
import { type ChainQuestion, verifyChain } from './chain.ts'
import { type CertificateDescription, issueCertificate, keyIdentifierOf } from './issuing.ts'
import { askOtherVerifiers, type OtherVerdict } from './other-verifiers.ts'

// The differences that operators encounter. test/differential/ checks that the model matches in general.

const leafUse: Partial<CertificateDescription> = {
  keyUsage: ['digitalSignature'],
  extendedKeyUsage: ['serverAuth', 'clientAuth'],
  subjectAltNames: { dns: ['a.example.com'] },
}

/** Returns a CA that meets the requirements of strict verifiers. */
function strictCa(commonName: string, asked: Partial<CertificateDescription> = {}, key?: KeyObject): Issued {
  const privateKey = key ?? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const subject = { commonName }
  const der = issueCertificate(
    {
      serialNumber: '01',
      subject,
      issuer: subject,
      notBefore: new Date('2026-01-01T00:00:00Z'),
      notAfter: new Date('2036-01-01T00:00:00Z'),
      publicKey: privateKey,
      basicConstraints: { ca: true },
      keyUsage: ['keyCertSign'],
      subjectKeyId: keyIdentifierOf(privateKey),
      ...asked,
    },
    privateKey,
  )
  return { der, key: privateKey, subject, pem: '', keyPem: '' }
}

function leafOf(ca: Issued, asked: Partial<CertificateDescription> = {}): Issued {
  return issued(
    { subject: { commonName: 'leaf' }, authorityKeyId: keyIdentifierOf(ca.key), ...leafUse, ...asked },
    ca,
  )
}

interface Pki {
  readonly leaf: Issued
  readonly roots: readonly Issued[]
  readonly intermediates?: readonly Issued[]
}

function ask(
  { leaf, roots, intermediates = [] }: Pki,
  asked: Partial<ChainQuestion> = {},
): { go: boolean; others: OtherVerdict[] } {
  const pool = (some: readonly Issued[]) => new CertificatePool(some.map(({ der }) => Certificate.parse(der)))
  const question: ChainQuestion = {
    leaf: Certificate.parse(leaf.der),
    roots: pool(roots),
    intermediates: pool(intermediates),
    at: new Date(sessionTime),
    purpose: 'server',
    ...asked,
  }
  return { go: verifyChain(question).trusted, others: askOtherVerifiers(question) }
}

/** Returns "openssl 7, node 7" with the error numbers. Verifiers that accept are omitted. */
function refusals({ others }: { others: OtherVerdict[] }): string {
  return others
    .flatMap(({ verifier, error }) => (error === undefined ? [] : `${verifier} ${error.code}`))
    .join(', ')
}

describe('when Go accepts', () => {
  test('accepts a chain that meets all strict requirements in every verifier', () => {
    const ca = strictCa('ca')
    const answer = ask({ leaf: leafOf(ca), roots: [ca] })
    expect(answer.go).toBe(true)
    expect(answer.others).toEqual([
      { verifier: 'openssl', accepts: true },
      { verifier: 'node', accepts: true },
      { verifier: 'python', accepts: true },
    ])
  })

  test('reports that OpenSSL takes the first of two roots with one name and no key identifiers, and fails on its signature', () => {
    const [before, after] = [createCa('kubernetes'), createCa('kubernetes')]
    const bare = issued({ subject: { commonName: 'leaf' }, ...leafUse }, after)
    const wrongOrder = ask({ leaf: bare, roots: [before, after] })
    expect(wrongOrder.go).toBe(true)
    expect(refusals(wrongOrder)).toMatch(/^openssl 7, node 7/)
    expect(wrongOrder.others[0]?.difference).toBe(
      'it uses the first CA of that name without trying its key, and another CA created the signature',
    )
    expect(refusals(ask({ leaf: bare, roots: [after, before] }))).not.toContain('openssl')
  })

  test('reports that only Python 3.13, which allows partial chains, trusts a root that is not self-signed', () => {
    const root = strictCa('root')
    const ca = issued(
      {
        subject: { commonName: 'ca' },
        basicConstraints: { ca: true },
        keyUsage: ['keyCertSign'],
        authorityKeyId: keyIdentifierOf(root.key),
        subjectKeyId: 'abcd',
      },
      root,
    )
    const leaf = issued({ subject: { commonName: 'leaf' }, authorityKeyId: 'abcd', ...leafUse }, ca)
    const answer = ask({ leaf, roots: [ca] })
    expect([answer.go, refusals(answer)]).toEqual([true, 'openssl 2, node 2'])
  })

  test.for<[rule: string, refused: string, pki: () => Pki, asked?: Partial<ChainQuestion>]>([
    [
      'Python rejects a CA without a subject key identifier',
      'python 86',
      () => {
        const ca = createCa('ca')
        return { leaf: leafOf(ca), roots: [ca] }
      },
    ],
    [
      'Python rejects a leaf without an authority key identifier',
      'python 85',
      () => {
        const ca = strictCa('ca')
        return { leaf: issued({ subject: { commonName: 'leaf' }, ...leafUse }, ca), roots: [ca] }
      },
    ],
    [
      'TLS at level 2 rejects a CA with an RSA key of 1024 bits',
      'node 67, python 67',
      () => {
        const ca = strictCa('ca', {}, generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey)
        return { leaf: leafOf(ca), roots: [ca] }
      },
    ],
    [
      'a leaf for any extended key usage is not taken for TLS',
      'openssl 26, node 26, python 26',
      () => {
        const ca = strictCa('ca')
        return { leaf: leafOf(ca, { extendedKeyUsage: ['anyExtendedKeyUsage'] }), roots: [ca] }
      },
    ],
    [
      'a client certificate that may not sign is not taken for TLS',
      'openssl 26, node 26, python 26',
      () => {
        const ca = strictCa('ca')
        return { leaf: leafOf(ca, { keyUsage: ['keyEncipherment'] }), roots: [ca] }
      },
      { purpose: 'client' },
    ],
    [
      'the second of notAfter is past',
      'openssl 10, node 10, python 10',
      () => {
        const ca = strictCa('ca')
        return { leaf: leafOf(ca, { notAfter: new Date(sessionTime) }), roots: [ca] }
      },
    ],
    [
      'a leaf whose authority key identifier names another CA is not tried further',
      'openssl 20, node 20, python 20',
      () => {
        const ca = strictCa('ca')
        return { leaf: leafOf(ca, { authorityKeyId: 'ff00' }), roots: [ca] }
      },
    ],
    [
      'a star right under a top-level domain is not taken',
      'openssl 62, node 62, python 62',
      () => {
        const ca = strictCa('ca')
        return { leaf: leafOf(ca, { subjectAltNames: { dns: ['*.com'] } }), roots: [ca] }
      },
      { name: 'example.com' },
    ],
  ])('%s', ([, refused, pki, asked]) => {
    const answer = ask(pki(), asked)
    expect([answer.go, refusals(answer)]).toEqual([true, refused])
    for (const { accepts, difference } of answer.others) expect(difference === undefined).toBe(accepts)
  })
})

describe('when Go rejects', () => {
  test.for<[rule: string, accepting: string[], pki: () => Pki, asked?: Partial<ChainQuestion>]>([
    [
      'a common name without SANs is still accepted by verifiers that read it',
      ['openssl', 'node', 'python'],
      () => {
        const ca = strictCa('ca')
        return { leaf: leafOf(ca, { subjectAltNames: {} }), roots: [ca] }
      },
      { name: 'leaf' },
    ],
    [
      'OpenSSL and Node accept a star in a part of a label, Python no longer does',
      ['openssl', 'node'],
      () => {
        const ca = strictCa('ca')
        return { leaf: leafOf(ca, { subjectAltNames: { dns: ['f*.example.com'] } }), roots: [ca] }
      },
      { name: 'foo.example.com' },
    ],
    [
      'an issuer name that differs in case is the same name to OpenSSL',
      ['openssl', 'node', 'python'],
      () => {
        const ca = strictCa('Kubernetes CA')
        return { leaf: leafOf({ ...ca, subject: { commonName: 'kubernetes  ca' } }), roots: [ca] }
      },
    ],
    [
      'names of a CA that issued itself are not compared with constraints',
      ['openssl', 'node', 'python'],
      () => {
        const root = strictCa('ca', { nameConstraints: { permitted: { dns: ['example.com'] } } })
        const again = strictCa('ca')
        const resigned = issued(
          {
            subject: root.subject,
            publicKey: again.key,
            basicConstraints: { ca: true },
            keyUsage: ['keyCertSign'],
            subjectAltNames: { dns: ['ca.example.org'] },
            subjectKeyId: keyIdentifierOf(again.key),
            authorityKeyId: keyIdentifierOf(root.key),
          },
          root,
        )
        return { leaf: leafOf(again), roots: [root], intermediates: [resigned] }
      },
    ],
    [
      'all agree on an expired leaf',
      [],
      () => {
        const ca = strictCa('ca')
        return { leaf: leafOf(ca, { notAfter: new Date('2026-02-01T00:00:00Z') }), roots: [ca] }
      },
    ],
  ])('%s', ([, accepting, pki, asked]) => {
    const answer = ask(pki(), asked)
    expect(answer.go).toBe(false)
    expect(answer.others.filter(({ accepts }) => accepts).map(({ verifier }) => verifier)).toEqual(accepting)
  })
})

test('reports only openssl verify for any purpose: TLS has no such purpose', () => {
  const ca = strictCa('ca')
  const answer = ask({ leaf: leafOf(ca), roots: [ca] }, { purpose: 'any' })
  expect(answer.others.map(({ verifier }) => verifier)).toEqual(['openssl'])
})
