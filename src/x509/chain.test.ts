import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createCa, type Issued, issued, sessionTime } from '../../test/scripts/small-pki.ts'
import { Certificate } from './certificate.ts'
import { CertificatePool } from './certificate-pool.ts'
import { type ChainQuestion, verifyChain } from './chain.ts'
import { element, nullElement, sequence } from './der-writer.ts'
import { goError } from './go-words.ts'
import { type CertificateDescription, issueCertificate } from './issuing.ts'
import type { RefusalCode } from './refusal.ts'

type Asked = Partial<CertificateDescription>

const root = createCa('root')
const otherRoot = createCa('other root')
const leafUse: Asked = {
  keyUsage: ['digitalSignature'],
  extendedKeyUsage: ['serverAuth', 'clientAuth'],
  basicConstraints: { ca: false },
  subjectAltNames: { dns: ['a.example.com'], ip: ['10.0.0.1'] },
}

const leafOf = (issuer: Issued | undefined, asked: Asked = {}): Issued =>
  issued({ subject: { commonName: 'leaf' }, ...leafUse, ...asked }, issuer)
const caOf = (issuer: Issued | undefined, asked: Asked = {}): Issued =>
  issued(
    { subject: { commonName: 'ca' }, basicConstraints: { ca: true }, keyUsage: ['keyCertSign'], ...asked },
    issuer,
  )

interface Pki {
  readonly leaf: Issued
  readonly roots: readonly Issued[]
  readonly intermediates?: readonly Issued[]
}

function questionOf(
  { leaf, roots, intermediates = [] }: Pki,
  asked: Partial<ChainQuestion> = {},
): ChainQuestion {
  const pool = (some: readonly Issued[]) => new CertificatePool(some.map(({ der }) => Certificate.parse(der)))
  return {
    leaf: Certificate.parse(leaf.der),
    roots: pool(roots),
    intermediates: pool(intermediates),
    at: new Date(sessionTime),
    purpose: 'server',
    ...asked,
  }
}

/** Returns the names along each chain, or the code, the failing subject and Go's error. */
function verdictOf(pki: Pki, asked: Partial<ChainQuestion> = {}): unknown {
  const question = questionOf(pki, asked)
  const verdict = verifyChain(question)
  if (verdict.trusted) return verdict.chains.map((chain) => chain.map(({ subject }) => subject.commonName))
  const { refusal } = verdict
  return [refusal.code, refusal.certificate.subject.commonName, goError(refusal, question)]
}

describe('accepts a chain', () => {
  test('from the leaf through an intermediate to a root', () => {
    const ca = caOf(root)
    expect(verdictOf({ leaf: leafOf(ca), roots: [root], intermediates: [ca] })).toEqual([
      ['leaf', 'ca', 'root'],
    ])
  })

  test('by every path: a cross-signed CA gives two', () => {
    const ca = caOf(root)
    const crossSigned = issued(
      { subject: ca.subject, basicConstraints: { ca: true }, keyUsage: ['keyCertSign'], publicKey: ca.key },
      otherRoot,
    )
    const pki = { leaf: leafOf(ca), roots: [root, otherRoot], intermediates: [crossSigned, ca] }
    expect(verdictOf(pki)).toEqual([
      ['leaf', 'ca', 'other root'],
      ['leaf', 'ca', 'root'],
    ])
    expect(verdictOf({ ...pki, roots: [root] })).toEqual([['leaf', 'ca', 'root']])
  })

  test('with either of two roots of the same name, in either order: Go tries all', () => {
    const [before, after] = [createCa('kubernetes'), createCa('kubernetes')]
    for (const roots of [
      [before, after],
      [after, before],
    ]) {
      expect(verdictOf({ leaf: leafOf(before), roots })).toEqual([['leaf', 'kubernetes']])
      expect(verdictOf({ leaf: leafOf(after), roots })).toEqual([['leaf', 'kubernetes']])
    }
  })

  test('that ends in a root that is not self-signed, and a leaf that is itself a root', () => {
    const ca = caOf(root)
    expect(verdictOf({ leaf: leafOf(ca), roots: [ca] })).toEqual([['leaf', 'ca']])
    const leaf = leafOf(root)
    expect(verdictOf({ leaf, roots: [leaf] })).toEqual([['leaf']])
  })

  test('in the second of notAfter, and not after it', () => {
    const leaf = leafOf(root, { notAfter: new Date('2026-06-01T00:00:00Z') })
    const evaluated = (at: string) => verdictOf({ leaf, roots: [root] }, { at: new Date(at) })
    expect(evaluated('2026-06-01T00:00:00Z')).toEqual([['leaf', 'root']])
    expect(evaluated('2026-06-01T00:00:00.001Z')).toEqual([
      'CERT_EXPIRED',
      'leaf',
      'x509: certificate has expired or is not yet valid: current time 2026-06-01T00:00:00Z is after 2026-06-01T00:00:00Z',
    ])
  })

  test('for any purpose when the extended key usage is not checked', () => {
    const leaf = leafOf(root, { extendedKeyUsage: ['codeSigning'] })
    expect(verdictOf({ leaf, roots: [root] }, { purpose: 'any' })).toEqual([['leaf', 'root']])
  })
})

const unknown = 'x509: certificate signed by unknown authority'
const hinted = (what: string, candidate: string): string =>
  `${unknown} (possibly because of "${what}" while trying to verify candidate authority certificate "${candidate}")`
const cannotSign = 'x509: invalid signature: parent certificate cannot sign this kind of certificate'
const validity = 'x509: certificate has expired or is not yet valid: current time 2026-11-21T09:00:00Z is'

const expiredCa = caOf(root, { notAfter: new Date('2026-03-01T00:00:00Z') })
const constrainedCa = caOf(root, { nameConstraints: { permitted: { dns: ['example.org'] } } })
const noCa = caOf(root, { basicConstraints: { ca: false } })
const noSigner = caOf(root, { keyUsage: ['cRLSign'] })
const shortCa = createCa('short')
const shortRoot = issued(
  { subject: shortCa.subject, basicConstraints: { ca: true, pathLength: 0 }, publicKey: shortCa.key },
  shortCa,
)
const belowShort = caOf(shortCa)
const smallKey = generateKeyPairSync('rsa', { modulusLength: 768 }).privateKey
const smallRoot: Issued = { ...root, ...withKey(smallKey, 'small root') }
const policyRoot = createCa('policy root')
const policyCa = caOf(policyRoot, {
  extensions: [{ oid: '2.5.29.36', critical: true, value: sequence(element(0x80, Uint8Array.of(0))) }],
})
const namesake = createCa('root')

function withKey(key: Issued['key'], commonName: string): Pick<Issued, 'der' | 'key' | 'subject'> {
  const subject = { commonName }
  const der = issueCertificate(
    {
      serialNumber: '01',
      subject,
      issuer: subject,
      notBefore: new Date('2026-01-01T00:00:00Z'),
      notAfter: new Date('2027-01-01T00:00:00Z'),
      publicKey: key,
      basicConstraints: { ca: true },
    },
    key,
  )
  return { der, key, subject }
}

describe("rejects a chain with the failing certificate and Go's error", () => {
  test.for<[rule: string, pki: Pki, verdict: [RefusalCode, string, string], asked?: Partial<ChainQuestion>]>([
    [
      'when a CA in it has expired, although Go names no certificate',
      { leaf: leafOf(expiredCa), roots: [root], intermediates: [expiredCa] },
      ['CERT_EXPIRED', 'ca', `${validity} after 2026-03-01T00:00:00Z`],
    ],
    [
      'before it begins',
      { leaf: leafOf(root, { notBefore: new Date('2027-02-01T00:00:00Z') }), roots: [root] },
      ['CERT_NOT_YET_VALID', 'leaf', `${validity} before 2027-02-01T00:00:00Z`],
    ],
    [
      'when a critical extension is unknown',
      {
        leaf: leafOf(root, { extensions: [{ oid: '1.2.3.4', critical: true, value: nullElement }] }),
        roots: [root],
      },
      ['CRITICAL_EXTENSION_UNKNOWN', 'leaf', 'x509: unhandled critical extension'],
    ],
    [
      'when the leaf is for another host',
      { leaf: leafOf(root), roots: [root] },
      ['HOST_NAME_MISMATCH', 'leaf', 'x509: certificate is valid for a.example.com, not b.example.com'],
      { name: 'b.example.com' },
    ],
    [
      'when only the common name is the host',
      { leaf: leafOf(root, { subjectAltNames: {} }), roots: [root] },
      [
        'HOST_NAME_MISMATCH',
        'leaf',
        'x509: certificate relies on legacy Common Name field, use SANs instead',
      ],
      { name: 'leaf' },
    ],
    [
      'when the leaf signed itself',
      { leaf: leafOf(undefined), roots: [root] },
      ['LEAF_SELF_SIGNED', 'leaf', unknown],
    ],
    [
      'when its root came with the leaf, but is not among the roots',
      { leaf: leafOf(otherRoot), roots: [root], intermediates: [otherRoot] },
      ['ROOT_NOT_TRUSTED', 'other root', unknown],
    ],
    [
      'when its root has only a namesake among the roots',
      { leaf: leafOf(root), roots: [namesake], intermediates: [root] },
      ['ROOT_NOT_TRUSTED', 'root', hinted('x509: ECDSA verification failure', 'root')],
    ],
    [
      'when the issuer is missing',
      { leaf: leafOf(caOf(root)), roots: [root] },
      ['ISSUER_UNKNOWN', 'leaf', unknown],
    ],
    [
      'when the CA of that name has another key',
      { leaf: leafOf(root), roots: [namesake] },
      ['ISSUER_KEY_OTHER', 'leaf', hinted('x509: ECDSA verification failure', 'root')],
    ],
    [
      'when a certificate with the issuer’s name did not sign and is not a CA',
      { leaf: leafOf(root), roots: [issued({ subject: root.subject })] },
      ['ISSUER_KEY_OTHER', 'leaf', hinted(cannotSign, 'root')],
    ],
    [
      'when the issuer is not a CA',
      { leaf: leafOf(noCa), roots: [root], intermediates: [noCa] },
      ['ISSUER_NOT_CA', 'ca', hinted(cannotSign, 'ca')],
    ],
    [
      'when the issuer may not sign certificates',
      { leaf: leafOf(noSigner), roots: [root], intermediates: [noSigner] },
      ['ISSUER_MAY_NOT_SIGN', 'ca', hinted(cannotSign, 'ca')],
    ],
    [
      'when a root allows fewer intermediates',
      { leaf: leafOf(belowShort), roots: [shortRoot], intermediates: [belowShort] },
      ['PATH_LENGTH_EXCEEDED', 'short', 'x509: too many intermediates for path length constraint'],
    ],
    [
      'when the key of a CA is below 1024 bits of RSA',
      { leaf: leafOf(smallRoot), roots: [smallRoot] },
      [
        'ISSUER_KEY_UNSUPPORTED',
        'small root',
        hinted(
          'crypto/rsa: 768-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)',
          'small root',
        ),
      ],
    ],
    [
      'when the leaf is not for this purpose',
      { leaf: leafOf(root, { extendedKeyUsage: ['clientAuth'] }), roots: [root] },
      ['USAGE_WRONG', 'leaf', 'x509: certificate specifies an incompatible key usage'],
    ],
    [
      'when a CA is not for this purpose, and the leaf is',
      (() => {
        const ca = caOf(root, { extendedKeyUsage: ['clientAuth'] })
        return { leaf: leafOf(ca), roots: [root], intermediates: [ca] }
      })(),
      ['USAGE_WRONG', 'ca', 'x509: certificate specifies an incompatible key usage'],
    ],
    [
      'when a CA may not sign for a name',
      { leaf: leafOf(constrainedCa), roots: [root], intermediates: [constrainedCa] },
      [
        'NAME_NOT_ALLOWED',
        'leaf',
        'x509: a root or intermediate certificate is not authorized to sign for this name: DNS name "a.example.com" is not permitted by any constraint',
      ],
    ],
    [
      'when a CA demands a policy that the leaf does not have',
      { leaf: leafOf(policyCa), roots: [policyRoot], intermediates: [policyCa] },
      ['POLICY_NOT_MET', 'leaf', 'x509: no valid chains built: 1 candidate chains with invalid policies'],
    ],
  ])('%s', ([, pki, verdict, asked]) => {
    expect(verdictOf(pki, asked)).toEqual(verdict)
  })

  test('stops after 100 candidates, so that CAs that sign each other in all directions cost little', () => {
    const cas = Array.from({ length: 12 }, () => createCa('tangle'))
    const all = cas.flatMap((one) =>
      cas.map((other) => ({ ...caOf(other, { subject: one.subject, publicKey: one.key }), key: one.key })),
    )
    expect(verdictOf({ leaf: leafOf(cas[0]), roots: [root], intermediates: all })).toEqual([
      'TOO_MANY_CANDIDATES',
      'leaf',
      'x509: signature check attempts limit reached while verifying certificate chain',
    ])
  })
})

test('reports the most likely reason: an expired issuer before a CA with the same name', () => {
  const other = caOf(root)
  const pki = { leaf: leafOf(expiredCa), roots: [root], intermediates: [other, expiredCa] }
  expect(verdictOf(pki)).toEqual(['CERT_EXPIRED', 'ca', `${validity} after 2026-03-01T00:00:00Z`])
})
