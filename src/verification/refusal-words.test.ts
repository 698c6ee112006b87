import { expect, test } from 'vitest'
import type { Certificate } from '../x509/certificate.ts'
import type { ChainQuestion } from '../x509/chain.ts'
import { parseName } from '../x509/name.ts'
import { encodeName } from '../x509/name-encoding.ts'
import type { Refusal, RefusalCode } from '../x509/refusal.ts'
import { refusalWords } from './refusal-words.ts'

const parsed = (commonName: string) => parseName(encodeName({ commonName }))

type Fields = Record<string, unknown>

function certificate(commonName: string, more: Fields = {}): Certificate {
  const named = {
    subject: parsed(commonName),
    issuer: parsed('kubernetes'),
    notBefore: new Date('2026-01-01T00:00:00Z'),
    notAfter: new Date('2027-01-01T00:00:00Z'),
    fingerprintSha256: 'f00d',
    publicKey: { algorithm: 'RSA', bits: 512 },
    subjectAltNames: { dns: [], ip: [] },
    extendedKeyUsage: [],
    unhandledCriticalExtensions: [],
    signatureAlgorithm: 'SHA1-RSA',
  }
  return { ...named, ...more } as unknown as Certificate
}

const leaf = certificate('leaf')
const ca = certificate('ca', { subjectKeyId: 'aa', keyUsage: ['cRLSign', 'digitalSignature'] })

interface Case {
  readonly code: RefusalCode
  readonly at?: Certificate
  readonly chain?: readonly Certificate[]
  readonly refusal?: Fields
  readonly question?: Fields
  /** The file with the certificates; null for a server. */
  readonly file?: string | null
}

function wordsOf({
  code,
  at = leaf,
  chain = [leaf, ca],
  refusal,
  question,
  file = 'in.crt',
}: Case): string[] {
  const pools = { roots: { certificates: [] }, intermediates: { certificates: [] } }
  const asked = { ...pools, leaf, at: new Date('2026-11-21T09:00:00Z'), purpose: 'server', ...question }
  const { reason, advice, next } = refusalWords(
    { code, certificate: at, chain, ...refusal } as unknown as Refusal,
    {
      question: asked as unknown as ChainQuestion,
      locationOf: ({ subject }) => `place of ${subject.commonName}`,
      sourceOf: ({ subject }) => `${subject.commonName}.crt`,
      fileOf: () => file ?? undefined,
      withPurpose: (other) => `kcert verify in.crt --purpose ${other}`,
    },
  )
  return [reason, advice, next]
}

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`)
const violation = (more: Fields) => ({
  violation: { certificate: leaf, constrainedBy: ca, kind: 'DNS name', name: 'a.b', ...more },
})
const usages = (commonName: string, ...extendedKeyUsage: string[]) =>
  certificate(commonName, { extendedKeyUsage })
const expired = (commonName: string) =>
  certificate(commonName, { notAfter: new Date('2026-11-20T00:00:00Z') })
const [oldLeaf, clientLeaf, serverLeaf] = [
  expired('old'),
  usages('c', 'clientAuth'),
  usages('s', 'serverAuth'),
]
const future = certificate('new', { notBefore: new Date('2026-11-21T11:00:00Z') })
const pool = (...certificates: Certificate[]) => ({ certificates })
const issuer = (commonName: string) => ({ issuer: parsed(commonName) })
const longCa = certificate('long', { publicKey: { algorithm: 'RSA', bits: 8200 } })
const longKey = 'RSA 8200, which TLS in Go, and so Kubernetes, refuses: 8192 bits is the maximum'
const uids = (...userUids: string[]) => certificate('u', { subject: { commonName: 'u', userUids } })

test.for<[name: string, given: Case, reason: string, advice: string, next: string]>([
  [
    'expired leaf',
    { code: 'CERT_EXPIRED', at: oldLeaf, chain: [oldLeaf, ca] },
    'the leaf "old" expired on 2026-11-20T00:00:00Z, 33 hours ago',
    'renew it',
    'kcert inspect old.crt',
  ],
  [
    'expired CA',
    { code: 'CERT_EXPIRED', at: oldLeaf, chain: [leaf, oldLeaf] },
    'the CA "old" expired on 2026-11-20T00:00:00Z, 33 hours ago',
    'use the current CA certificate, or replace the CA and reissue its certificates',
    'kcert inspect old.crt',
  ],
  [
    'not yet valid',
    { code: 'CERT_NOT_YET_VALID', at: future, chain: [future] },
    'the leaf "new" is not valid before 2026-11-21T11:00:00Z, in 2 hours',
    'compare the clocks of this machine and of the issuer',
    'date -u',
  ],
  [
    'critical extensions',
    {
      code: 'CRITICAL_EXTENSION_UNKNOWN',
      at: certificate('x', { unhandledCriticalExtensions: ['1.2', '1.3'] }),
    },
    'the CA "x" has a critical extension that Go does not support: 1.2, 1.3',
    'reissue it without this extension, or not critical',
    'kcert inspect x.crt',
  ],
  [
    'host name',
    {
      code: 'HOST_NAME_MISMATCH',
      at: certificate('h', { subjectAltNames: { dns: numbered(19), ip: ['::1'] } }),
      question: { name: 'h' },
    },
    'the leaf "h" is valid for n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16, n17, n18, ::1, not for h (the common name is ignored)',
    'connect to a name that it has, or reissue it with h (kubeadm: certSANs of the API server, then kubeadm init phase certs apiserver)',
    'kcert inspect h.crt',
  ],
  [
    'more than 20 names',
    {
      code: 'HOST_NAME_MISMATCH',
      at: certificate('h', { subjectAltNames: { dns: numbered(21), ip: [] } }),
      question: { name: 'x' },
    },
    'the leaf "h" is valid for n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16, n17, n18, n19 and 1 more, not for x',
    'connect to a name that it has, or reissue it with x (kubeadm: certSANs of the API server, then kubeadm init phase certs apiserver)',
    'kcert inspect h.crt',
  ],
  [
    'address as common name',
    {
      code: 'HOST_NAME_MISMATCH',
      at: certificate('10.0.0.1'),
      question: { name: '10.0.0.1' },
    },
    'the leaf "10.0.0.1" has no host name or IP address among its SANs, so it is not valid for 10.0.0.1',
    'connect to a name that it has, or reissue it with 10.0.0.1 (kubeadm: certSANs of the API server, then kubeadm init phase certs apiserver)',
    'kcert inspect 10.0.0.1.crt',
  ],
  [
    'self-signed leaf from a file',
    { code: 'LEAF_SELF_SIGNED' },
    'the leaf "leaf" is self-signed and not among the roots (SHA-256 f00d)',
    'a kubelet gets a signed certificate with serverTLSBootstrap: true',
    'kcert verify leaf.crt --roots in.crt --purpose server',
  ],
  [
    'self-signed leaf under a name',
    { code: 'LEAF_SELF_SIGNED', question: { name: 'my host' } },
    'the leaf "leaf" is self-signed and not among the roots (SHA-256 f00d)',
    'a kubelet gets a signed certificate with serverTLSBootstrap: true',
    "kcert verify leaf.crt --roots in.crt --purpose server --name 'my host'",
  ],
  [
    'self-signed leaf from a server',
    { code: 'LEAF_SELF_SIGNED', file: null },
    'the leaf "leaf" is self-signed and not among the roots (SHA-256 f00d)',
    'to trust it, get its file from the owner and compare the SHA-256; a kubelet gets a signed certificate with serverTLSBootstrap: true',
    'kcert inspect leaf.crt',
  ],
  [
    'root from a file',
    { code: 'ROOT_NOT_TRUSTED', at: ca },
    'the chain ends in the CA "ca", which is not among the roots (SHA-256 f00d)',
    'if you do not trust it, the leaf is from another cluster, or the CA was replaced',
    'kcert verify leaf.crt --roots in.crt --purpose server',
  ],
  [
    'root from a server',
    { code: 'ROOT_NOT_TRUSTED', at: ca, file: null },
    'the chain ends in the CA "ca", which is not among the roots (SHA-256 f00d)',
    'to trust it, get its file from the owner and compare the SHA-256; if you do not trust it, the leaf is from another cluster, or the CA was replaced',
    'kcert inspect ca.crt',
  ],
  [
    'issuer with its name encoded otherwise',
    {
      code: 'ISSUER_UNKNOWN',
      at: certificate('l', issuer('Twin')),
      question: { roots: pool(ca), intermediates: pool(certificate('twin')) },
    },
    'the issuer of "l" is the subject of place of twin, but with another encoding (case, spaces or string type), and Go compares bytes',
    'reissue it with the subject of the CA copied byte for byte',
    'kcert inspect l.crt',
  ],
  [
    'unknown issuer',
    {
      code: 'ISSUER_UNKNOWN',
      at: certificate('l', issuer('x')),
      question: { roots: pool(ca) },
    },
    'the issuer of "l" is not in the inputs: CN=x',
    'add its certificate with --roots if you trust it, or else with --intermediates',
    'kcert inspect l.crt',
  ],
  [
    "kubeadm's issuer",
    {
      code: 'ISSUER_UNKNOWN',
      at: certificate('l', { ...issuer('etcd-ca'), authorityKeyId: 'bb' }),
    },
    'the issuer of "l" is not in the inputs: CN=etcd-ca (key identifier bb)',
    'add its certificate with --roots if you trust it, or else with --intermediates',
    'kcert verify leaf.crt --roots /etc/kubernetes/pki/etcd/ca.crt --purpose server',
  ],
  [
    'issuer without a name',
    {
      code: 'ISSUER_UNKNOWN',
      at: certificate('l', { issuer: parseName(encodeName([])) }),
    },
    'the issuer of "l" is not in the inputs: (empty)',
    'add its certificate with --roots if you trust it, or else with --intermediates',
    'kcert inspect l.crt',
  ],
  [
    'other key',
    {
      code: 'ISSUER_KEY_OTHER',
      at: certificate('l', { authorityKeyId: 'bb' }),
      refusal: { other: ca },
    },
    '"l" was not signed with the key of the CA "ca" in place of ca: its authority key identifier is bb, and that CA has aa',
    'its CA is usually the one before or after a rotation',
    'kcert inspect l.crt ca.crt -o tree',
  ],
  [
    'forged signature',
    {
      code: 'ISSUER_KEY_OTHER',
      at: certificate('l', { authorityKeyId: 'aa' }),
      refusal: { other: ca },
    },
    '"l" was not signed with the key of the CA "ca" in place of ca: the key identifiers match, but the signature does not verify, so it is damaged or forged',
    'its CA is usually the one before or after a rotation',
    'kcert inspect l.crt ca.crt -o tree',
  ],
  [
    'other key without identifiers',
    { code: 'ISSUER_KEY_OTHER', refusal: { other: ca } },
    '"leaf" was not signed with the key of the CA "ca" in place of ca: the signature does not verify',
    'its CA is usually the one before or after a rotation',
    'kcert inspect leaf.crt ca.crt -o tree',
  ],
  [
    'other key without identifier of the CA',
    {
      code: 'ISSUER_KEY_OTHER',
      at: certificate('l', { authorityKeyId: 'bb' }),
      refusal: { other: leaf },
    },
    '"l" was not signed with the key of the CA "leaf" in place of leaf: the signature does not verify',
    'its CA is usually the one before or after a rotation',
    'kcert inspect l.crt leaf.crt -o tree',
  ],
  [
    'weak signature',
    { code: 'SIGNATURE_WEAK' },
    '"leaf" is signed with SHA1-RSA, which Go rejects',
    'reissue it, signed with SHA-256 or better',
    'kcert inspect leaf.crt',
  ],
  [
    'unsupported signature',
    { code: 'SIGNATURE_UNSUPPORTED' },
    '"leaf" is signed with SHA1-RSA, in a form that Go does not support',
    'reissue it, signed with ECDSA, Ed25519 or RSA and SHA-256',
    'kcert inspect leaf.crt',
  ],
  [
    'unsupported key',
    { code: 'ISSUER_KEY_UNSUPPORTED', at: ca },
    'Go does not support the key of the CA "ca": RSA 512, which Kubernetes refuses since 1.33 (Go 1.24)',
    'replace it with a CA with ECDSA P-256 or RSA of 2048 to 8192 bits',
    'kcert inspect ca.crt',
  ],
  [
    'long key of an intermediate',
    { code: 'ISSUER_KEY_UNSUPPORTED', at: longCa, chain: [leaf, longCa, ca] },
    `Go does not support the key of the CA "long": ${longKey}`,
    'replace it with a CA with ECDSA P-256 or RSA of 2048 to 8192 bits',
    'kcert inspect long.crt',
  ],
  [
    'long key of a root that the server sends',
    { code: 'ISSUER_KEY_UNSUPPORTED', at: longCa, chain: [leaf, longCa] },
    `Go does not support the key of the CA "long": ${longKey}`,
    'remove this certificate, which the chain does not need, from long.crt',
    'kcert inspect long.crt',
  ],
  [
    'unsupported key without a size',
    {
      code: 'ISSUER_KEY_UNSUPPORTED',
      at: certificate('d', { publicKey: { algorithm: 'DSA' } }),
    },
    'Go does not support the key of the CA "d": DSA',
    'replace it with a CA with ECDSA P-256 or RSA of 2048 to 8192 bits',
    'kcert inspect d.crt',
  ],
  [
    'issuer without basic constraints',
    { code: 'ISSUER_NOT_CA', at: ca, refusal: { other: leaf } },
    '"ca" signed "leaf", but it is not a CA: it has no basic constraints',
    'reissue it with CA:TRUE, or sign "leaf" with a CA',
    'kcert inspect ca.crt',
  ],
  [
    'issuer that is no CA',
    {
      code: 'ISSUER_NOT_CA',
      at: certificate('n', { basicConstraints: {} }),
      refusal: { other: leaf },
    },
    '"n" signed "leaf", but it is not a CA: its basic constraints have CA:FALSE',
    'reissue it with CA:TRUE, or sign "leaf" with a CA',
    'kcert inspect n.crt',
  ],
  [
    'issuer that may not sign',
    { code: 'ISSUER_MAY_NOT_SIGN', at: ca },
    'the key usage of the CA "ca" lacks keyCertSign: cRLSign, digitalSignature',
    'reissue the CA certificate with keyCertSign',
    'kcert inspect ca.crt',
  ],
  [
    'path length',
    {
      code: 'PATH_LENGTH_EXCEEDED',
      at: certificate('p', { basicConstraints: { pathLength: 0 } }),
      chain: [leaf, ca, ca],
    },
    'the path length of the CA "p" allows 0 intermediates, and there are 1 (Go counts self-issued CAs, too)',
    'use a CA with a longer path length, or fewer intermediates',
    'kcert inspect p.crt',
  ],
  [
    'client certificate of a server',
    { code: 'USAGE_WRONG', at: clientLeaf, chain: [clientLeaf, ca] },
    'the leaf "c" has the extended key usage clientAuth, not serverAuth',
    'if a client uses it, add --purpose client, else reissue it with serverAuth',
    'kcert verify in.crt --purpose client',
  ],
  [
    'server certificate of a client',
    {
      code: 'USAGE_WRONG',
      at: serverLeaf,
      chain: [serverLeaf, ca],
      question: { purpose: 'client' },
    },
    'the leaf "s" has the extended key usage serverAuth, not clientAuth',
    'if a server uses it, add --purpose server, else reissue it with clientAuth',
    'kcert verify in.crt --purpose server',
  ],
  [
    'usages that fit neither',
    { code: 'USAGE_WRONG', at: clientLeaf, chain: [clientLeaf, serverLeaf] },
    'the leaf "c" has the extended key usage clientAuth, not serverAuth',
    'reissue it with serverAuth',
    'kcert inspect c.crt',
  ],
  [
    'name outside of the permitted',
    { code: 'NAME_NOT_ALLOWED', refusal: violation({}) },
    'the DNS name "a.b" of "leaf" is not in a subtree that the CA "ca" (place of ca) permits',
    'reissue it without that name, or with a CA that may sign for it',
    'kcert inspect leaf.crt',
  ],
  [
    'excluded name',
    { code: 'NAME_NOT_ALLOWED', refusal: violation({ excludedBy: 'b' }) },
    'the DNS name "a.b" of "leaf" is excluded by the CA "ca" (place of ca): "b"',
    'reissue it without that name, or with a CA that may sign for it',
    'kcert inspect leaf.crt',
  ],
  [
    'name that cannot be compared',
    {
      code: 'NAME_NOT_ALLOWED',
      refusal: violation({ unusable: 'no-host', constrainedBy: undefined }),
    },
    'the DNS name "a.b" of "leaf" cannot be compared with the name constraints of a CA above it',
    'reissue it without that name, or with a CA that may sign for it',
    'kcert inspect leaf.crt',
  ],
  [
    'policy',
    { code: 'POLICY_NOT_MET', at: ca },
    'a CA above the leaf "leaf" requires an explicit certificate policy, and no policy is valid for the whole chain',
    'reissue the certificates below that CA with one of its policies',
    'kcert inspect leaf.crt',
  ],
  [
    'too many candidates',
    { code: 'TOO_MANY_CANDIDATES' },
    'many certificates have the same names, and Go gives up after 100 tries',
    'remove certificates that do not belong to the chain',
    'kcert inspect leaf.crt',
  ],
  [
    'two user UIDs',
    { code: 'USER_UID_INVALID', at: uids('a', 'b') },
    'the chain is valid, but the subject of the leaf "u" has 2 user UIDs: "a", "b" (OID 1.3.6.1.4.1.57683.2), and an API server responds with 401',
    'reissue it with at most one user UID',
    'kcert inspect u.crt',
  ],
  [
    'empty user UID',
    { code: 'USER_UID_INVALID', at: uids('') },
    'the chain is valid, but the subject of the leaf "u" has an empty user UID (OID 1.3.6.1.4.1.57683.2), and an API server responds with 401',
    'reissue it with at most one user UID',
    'kcert inspect u.crt',
  ],
  [
    'subject without a common name',
    {
      code: 'SIGNATURE_WEAK',
      at: certificate('', { subject: { text: 'O=ops' } }),
    },
    '"O=ops" is signed with SHA1-RSA, which Go rejects',
    'reissue it, signed with SHA-256 or better',
    'kcert inspect undefined.crt',
  ],
  [
    'empty subject',
    { code: 'SIGNATURE_WEAK', at: certificate('', { subject: { text: '' } }) },
    '"(empty subject)" is signed with SHA1-RSA, which Go rejects',
    'reissue it, signed with SHA-256 or better',
    'kcert inspect undefined.crt',
  ],
])('%s', ([, given, reason, advice, next]) => {
  expect(wordsOf(given)).toEqual([reason, advice, next])
})
