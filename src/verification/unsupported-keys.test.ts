import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keys, selfSigned, spkiOf } from '../../test/fixtures/certificates.ts'
import { longRsaKey, rsaSpki } from '../../test/fixtures/long-rsa.ts'
import { mlDsaCertificate, mlDsaKeys } from '../../test/fixtures/ml-dsa.ts'
import { Certificate } from '../x509/certificate.ts'
import type { Purpose } from '../x509/chain.ts'
import { bitString, nullElement, oid, sequence } from '../x509/der-writer.ts'
import type { CertificateDescription } from '../x509/issuing.ts'
import { oidOf } from '../x509/oids.ts'
import type { CertificateInput } from './input.ts'
import { verify } from './verification.ts'

// Every goError here was logged by a program built with Go 1.26.8 for such a certificate.

const now = new Date('2026-06-01T00:00:00Z')
const mlDsa = mlDsaKeys['ML-DSA-65']
const rsa = (bits: number): KeyObject => generateKeyPairSync('rsa', { modulusLength: bits }).privateKey
const [weakRsa, shortRsa] = [rsa(768), rsa(1024)]
const dsa = generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }).privateKey
const { privateKey: x25519 } = generateKeyPairSync('x25519')

const asCa = { subject: { commonName: 'ca' }, issuer: { commonName: 'ca' }, basicConstraints: { ca: true } }
const ecdsaCa = selfSigned({ ...asCa, publicKey: keys.p256 }, keys.p256)
const mlDsaCa = mlDsaCertificate(mlDsa, asCa)
const leaf = { subject: { commonName: 'leaf' }, issuer: { commonName: 'ca' } }
const leafWith = (publicKey: CertificateDescription['publicKey']): Uint8Array =>
  selfSigned({ ...leaf, publicKey }, keys.p256)
const leafOfMlDsa = (publicKey: KeyObject): Uint8Array => mlDsaCertificate(mlDsa, { ...leaf, publicKey })
const mlDsaLeaf = leafWith(mlDsa)
const malformed = sequence(sequence(oid(oidOf('ML-DSA-65')), nullElement), bitString(Buffer.alloc(1952)))

const input = (source: string, der: Uint8Array): CertificateInput => ({
  certificates: [{ source, entry: '', certificate: Certificate.parse(der) }],
  unreadable: [],
  isKubeconfig: false,
})
const reportOf = (leafDer: Uint8Array, root: Uint8Array, purpose: Purpose = 'server') => {
  const inputs = { leaf: input('leaf.crt', leafDer), roots: [input('ca.crt', root)], intermediates: [] }
  return verify(inputs, { now, at: now, purpose })
}

const minors =
  'ML-DSA-65, which Kubernetes up to 1.37 and etcd up to 3.7 (Go 1.26) do not support; Kubernetes 1.38 (Go 1.27) is the first to support it, in TLS 1.3'
const ofLeaf = 'the chain is valid, but TLS in Go does not support the key of the leaf "leaf":'
const unknown = 'x509: certificate signed by unknown authority'
const unparsed = 'tls: failed to parse private key'

test.each<[name: string, der: Uint8Array, root: Uint8Array, code: string, reason: string, goError: string]>([
  [
    'an ML-DSA leaf of an ML-DSA CA',
    leafOfMlDsa(mlDsaKeys.other),
    mlDsaCa,
    'ISSUER_KEY_UNSUPPORTED',
    `Go does not support the key of the CA "ca": ${minors}`,
    unknown,
  ],
  [
    'an ECDSA leaf of an ML-DSA CA',
    leafOfMlDsa(keys.p384),
    mlDsaCa,
    'ISSUER_KEY_UNSUPPORTED',
    `Go does not support the key of the CA "ca": ${minors}`,
    unknown,
  ],
  [
    'an ML-DSA signature where the CA of that name has an ECDSA key',
    leafOfMlDsa(keys.p384),
    ecdsaCa,
    'SIGNATURE_UNSUPPORTED',
    `"leaf" is signed with ${minors}`,
    `${unknown} (possibly because of "x509: cannot verify signature: algorithm unimplemented" while trying to verify candidate authority certificate "ca")`,
  ],
  [
    'an ML-DSA leaf of an ECDSA CA, whose chain Go builds',
    mlDsaLeaf,
    ecdsaCa,
    'LEAF_KEY_UNSUPPORTED',
    `${ofLeaf} ${minors}`,
    unparsed,
  ],
  [
    'an ML-DSA leaf that is itself a root',
    mlDsaLeaf,
    mlDsaLeaf,
    'LEAF_KEY_UNSUPPORTED',
    `${ofLeaf} ${minors}`,
    unparsed,
  ],
  [
    'a malformed ML-DSA key',
    leafWith(malformed),
    ecdsaCa,
    'LEAF_KEY_UNSUPPORTED',
    `${ofLeaf} ML-DSA-65, which no program can use: its algorithm has parameters, which must be absent`,
    unparsed,
  ],
  [
    'an RSA leaf below 1024 bits',
    leafWith(weakRsa),
    ecdsaCa,
    'LEAF_KEY_UNSUPPORTED',
    `${ofLeaf} RSA 768, which Kubernetes refuses since 1.33 (Go 1.24)`,
    'tls: failed to sign handshake: crypto/rsa: 768-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)',
  ],
  ['a DSA leaf', leafWith(dsa), ecdsaCa, 'LEAF_KEY_UNSUPPORTED', `${ofLeaf} DSA 1024`, unparsed],
  [
    'an X25519 leaf',
    leafWith(spkiOf(x25519)),
    ecdsaCa,
    'LEAF_KEY_UNSUPPORTED',
    `${ofLeaf} X25519`,
    'tls: found unknown private key type in PKCS#8 wrapping',
  ],
])('refuses %s', (_, der, root, code, reason, goError) => {
  for (const purpose of ['server', 'client'] as const)
    expect(reportOf(der, root, purpose)).toMatchObject({ trusted: false, code, reason, goError, chains: [] })
})

test('accepts an RSA leaf of 1024 bits, as Go does', () => {
  expect(reportOf(leafWith(shortRsa), ecdsaCa)).toMatchObject({ trusted: true })
})

describe('RSA above 8192 bits', () => {
  const long = longRsaKey()
  const longLeaf = leafWith(long)
  const longCa = selfSigned({ ...asCa, publicKey: long }, long)
  const middle = selfSigned({ ...asCa, subject: { commonName: 'middle' }, publicKey: long }, keys.p256)
  const belowMiddle = selfSigned({ ...leaf, issuer: { commonName: 'middle' }, publicKey: keys.p384 }, long)
  const belowLongCa = selfSigned({ ...leaf, publicKey: keys.p384 }, long)
  const words = 'RSA 8676, which TLS in Go, and so Kubernetes, refuses: 8192 bits is the maximum'
  const question = (leafDer: Uint8Array, root: Uint8Array, ...between: Uint8Array[]) => ({
    leaf: input('leaf.crt', leafDer),
    roots: [input('ca.crt', root)],
    intermediates: between.map((der) => input('middle.crt', der)),
  })

  test.each([
    ['a leaf', 'LEAF_KEY_UNSUPPORTED', question(leafWith(long), ecdsaCa), `${ofLeaf} ${words}`],
    [
      'a leaf that is itself a root',
      'LEAF_KEY_UNSUPPORTED',
      question(longLeaf, longLeaf),
      `${ofLeaf} ${words}`,
    ],
    [
      'an intermediate, which is sent',
      'ISSUER_KEY_UNSUPPORTED',
      question(belowMiddle, ecdsaCa, middle),
      `Go does not support the key of the CA "middle": ${words}`,
    ],
  ])('is refused in %s', (_, code, asked, reason) => {
    for (const purpose of ['server', 'client'] as const)
      expect(verify(asked, { now, at: now, purpose })).toMatchObject({
        trusted: false,
        code,
        reason,
        goError: `tls: ${purpose} sent certificate containing RSA key larger than 8192 bits`,
        chains: [],
      })
    expect(verify(asked, { now, at: now, purpose: 'any' })).toMatchObject({ trusted: true })
  })

  test('is accepted in a root, which is not sent, and accepted up to 8192 bits', () => {
    expect(reportOf(belowLongCa, longCa)).toMatchObject({ trusted: true })
    expect(reportOf(leafWith(rsaSpki(8192)), ecdsaCa)).toMatchObject({ trusted: true })
    expect(reportOf(leafWith(rsaSpki(8200)), ecdsaCa)).toMatchObject({ trusted: false })
  })

  test('is refused in a root that is sent, and in any other certificate after the leaf', () => {
    const sentRoot = Certificate.parse(longCa)
    for (const [leafDer, root] of [
      [belowLongCa, longCa],
      [leafWith(keys.p384), ecdsaCa],
    ] as const) {
      const asked = question(leafDer, root)
      const sent = { source: 'leaf.crt', entry: 'certificate 2', certificate: sentRoot }
      const leafInput = { ...asked.leaf, certificates: [...asked.leaf.certificates, sent] }
      for (const purpose of ['server', 'client'] as const)
        expect(verify({ ...asked, leaf: leafInput }, { now, at: now, purpose })).toMatchObject({
          trusted: false,
          code: 'ISSUER_KEY_UNSUPPORTED',
          reason: `Go does not support the key of the CA "ca": ${words}`,
          advice: 'remove this certificate, which the chain does not need, from leaf.crt',
          goError: `tls: ${purpose} sent certificate containing RSA key larger than 8192 bits`,
        })
      const unseen = {
        ...leafInput,
        certificates: [...asked.leaf.certificates, { ...sent, form: 'label' as const }],
      }
      expect(verify({ ...asked, leaf: unseen }, { now, at: now, purpose: 'server' })).toMatchObject({
        trusted: true,
      })
    }
  })

  test('is accepted when another chain does not contain it', () => {
    const other = selfSigned(
      {
        subject: { commonName: 'middle' },
        issuer: { commonName: 'middle' },
        basicConstraints: { ca: true },
        publicKey: long,
      },
      long,
    )
    const asked = question(belowMiddle, ecdsaCa, middle)
    const roots = [...asked.roots, input('other.crt', other)]
    expect(verify({ ...asked, roots }, { now, at: now, purpose: 'server' })).toMatchObject({ trusted: true })
  })
})

test('gives the result of crypto/x509 for a purpose that TLS does not use', () => {
  expect(reportOf(mlDsaLeaf, ecdsaCa, 'any')).toMatchObject({ trusted: true })
})

test('OpenSSL reads no malformed ML-DSA key: `openssl verify` skips it, Node.js rejects it', () => {
  const reason = 'it does not use the key of the leaf to verify the chain'
  expect(reportOf(leafWith(malformed), ecdsaCa)).toMatchObject({
    acceptedBy: ['openssl'],
    differences: [{ verifier: 'openssl', accepts: true, reason }],
  })
})

test('names the verifiers that support ML-DSA', () => {
  for (const [der, root] of [
    [leafOfMlDsa(mlDsaKeys.other), mlDsaCa],
    [mlDsaLeaf, ecdsaCa],
  ] as const) {
    const reason = 'it supports ML-DSA since OpenSSL 3.5'
    expect(reportOf(der, root)).toMatchObject({
      acceptedBy: ['openssl', 'node'],
      differences: [
        { verifier: 'openssl', accepts: true, reason },
        { verifier: 'node', accepts: true, reason },
      ],
    })
  }
})
