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
  /** The file that certificates come from; null for a server. */
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
  const asked = { ...pools, at: new Date('2026-11-21T09:00:00Z'), purpose: 'server', ...question }
  const { reason, next } = refusalWords({ code, certificate: at, chain, ...refusal } as unknown as Refusal, {
    question: asked as unknown as ChainQuestion,
    placeOf: ({ subject }) => `place of ${subject.commonName}`,
    sourceOf: ({ subject }) => `${subject.commonName}.crt`,
    fileOf: () => file ?? undefined,
  })
  return [reason, next]
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
const uids = (...userUids: string[]) => certificate('u', { subject: { commonName: 'u', userUids } })

test.for<[name: string, given: Case, reason: string, next: string]>([
  [
    'expired leaf',
    { code: 'CERT_EXPIRED', at: oldLeaf, chain: [oldLeaf, ca] },
    'the leaf "old" expired on 2026-11-20T00:00:00Z, 33 hours ago',
    'renew it; which one it is and how: kcert inspect old.crt',
  ],
  [
    'expired CA',
    { code: 'CERT_EXPIRED', at: oldLeaf, chain: [leaf, oldLeaf] },
    'the CA "old" expired on 2026-11-20T00:00:00Z, 33 hours ago',
    'give the CA certificate that is in force now; if there is none, the CA must be replaced, and all that it signed',
  ],
  [
    'not yet valid',
    { code: 'CERT_NOT_YET_VALID', at: future, chain: [future] },
    'the leaf "new" is not valid before 2026-11-21T11:00:00Z, in 2 hours',
    'verify at another time (--at TIME), or compare the clocks here and on the machine that issued it: date -u',
  ],
  [
    'critical extensions',
    {
      code: 'CRITICAL_EXTENSION_UNKNOWN',
      at: certificate('x', { unhandledCriticalExtensions: ['1.2', '1.3'] }),
    },
    'the CA "x" has a critical extension that Go does not handle: 1.2, 1.3',
    'issue it again without that extension, or with the extension not critical',
  ],
  [
    'host name',
    {
      code: 'HOST_NAME_MISMATCH',
      at: certificate('h', { subjectAltNames: { dns: numbered(19), ip: ['::1'] } }),
      question: { name: 'h' },
    },
    'the leaf "h" is valid for n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16, n17, n18, ::1, not for h; the common name does not count',
    'connect by a name that it has, or issue it again with h (kubeadm: certSANs of the API server, then kubeadm init phase certs apiserver)',
  ],
  [
    'more than 20 names',
    {
      code: 'HOST_NAME_MISMATCH',
      at: certificate('h', { subjectAltNames: { dns: numbered(21), ip: [] } }),
      question: { name: 'x' },
    },
    'the leaf "h" is valid for n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16, n17, n18, n19 and 1 more, not for x',
    'connect by a name that it has, or issue it again with x (kubeadm: certSANs of the API server, then kubeadm init phase certs apiserver)',
  ],
  [
    'address as common name',
    {
      code: 'HOST_NAME_MISMATCH',
      at: certificate('10.0.0.1'),
      question: { name: '10.0.0.1' },
    },
    'the leaf "10.0.0.1" has no host name or address among its subject alternative names, so it is not valid for 10.0.0.1',
    'connect by a name that it has, or issue it again with 10.0.0.1 (kubeadm: certSANs of the API server, then kubeadm init phase certs apiserver)',
  ],
  [
    'self-signed leaf from a file',
    { code: 'LEAF_SELF_SIGNED' },
    'the leaf "leaf" signed itself, and is not among the roots',
    'to trust just this one: --roots in.crt; a kubelet gets a signed one with serverTLSBootstrap: true',
  ],
  [
    'self-signed leaf from a server',
    { code: 'LEAF_SELF_SIGNED', file: null },
    'the leaf "leaf" signed itself, and is not among the roots',
    'to trust just this one: get the file from its owner and compare its SHA-256 f00d, then --roots FILE; a kubelet gets a signed one with serverTLSBootstrap: true',
  ],
  [
    'root from a file',
    { code: 'ROOT_NOT_TRUSTED', at: ca },
    'the chain ends in the root "ca", which is not among the roots (SHA-256 f00d)',
    'if this CA is to be trusted: --roots in.crt; else the leaf is of another cluster, or the CA was replaced',
  ],
  [
    'root from a server',
    { code: 'ROOT_NOT_TRUSTED', at: ca, file: null },
    'the chain ends in the root "ca", which is not among the roots (SHA-256 f00d)',
    'if this CA is to be trusted: get the file from its owner and compare its SHA-256 f00d, then --roots FILE; else the leaf is of another cluster, or the CA was replaced',
  ],
  [
    'issuer with its name encoded otherwise',
    {
      code: 'ISSUER_UNKNOWN',
      at: certificate('l', issuer('Twin')),
      question: { roots: pool(ca), intermediates: pool(certificate('twin')) },
    },
    '"l" names its issuer as place of twin does, but encoded otherwise (case, spaces or string type), and Go compares bytes',
    'issue it again with the subject of the CA copied byte for byte',
  ],
  [
    'unknown issuer',
    {
      code: 'ISSUER_UNKNOWN',
      at: certificate('l', issuer('x')),
      question: { roots: pool(ca) },
    },
    'there is no certificate of the issuer of "l": CN=x',
    'add the certificate of that CA: with --intermediates FILE, or with --roots FILE when it is the root',
  ],
  [
    "kubeadm's issuer",
    {
      code: 'ISSUER_UNKNOWN',
      at: certificate('l', { ...issuer('etcd-ca'), authorityKeyId: 'bb' }),
    },
    'there is no certificate of the issuer of "l": CN=etcd-ca (key identifier bb)',
    'on a kubeadm control plane that CA is /etc/kubernetes/pki/etcd/ca.crt: --roots FILE',
  ],
  [
    'issuer without a name',
    {
      code: 'ISSUER_UNKNOWN',
      at: certificate('l', { issuer: parseName(encodeName([])) }),
    },
    'there is no certificate of the issuer of "l": (empty)',
    'add the certificate of that CA: with --intermediates FILE, or with --roots FILE when it is the root',
  ],
  [
    'other key',
    {
      code: 'ISSUER_KEY_OTHER',
      at: certificate('l', { authorityKeyId: 'bb' }),
      refusal: { other: ca },
    },
    '"l" is signed by another key than that of the CA "ca" in place of ca: it asks for key identifier bb, and that CA has aa',
    'find the CA that signed it, usually the one before or after a rotation, among all CA files: kcert inspect FILES -o tree',
  ],
  [
    'forged signature',
    {
      code: 'ISSUER_KEY_OTHER',
      at: certificate('l', { authorityKeyId: 'aa' }),
      refusal: { other: ca },
    },
    '"l" is signed by another key than that of the CA "ca" in place of ca: the key identifiers agree, but the signature does not verify, so it is damaged or forged',
    'find the CA that signed it, usually the one before or after a rotation, among all CA files: kcert inspect FILES -o tree',
  ],
  [
    'other key without identifiers',
    { code: 'ISSUER_KEY_OTHER', refusal: { other: ca } },
    '"leaf" is signed by another key than that of the CA "ca" in place of ca: the signature does not verify',
    'find the CA that signed it, usually the one before or after a rotation, among all CA files: kcert inspect FILES -o tree',
  ],
  [
    'other key without identifier of the CA',
    {
      code: 'ISSUER_KEY_OTHER',
      at: certificate('l', { authorityKeyId: 'bb' }),
      refusal: { other: leaf },
    },
    '"l" is signed by another key than that of the CA "leaf" in place of leaf: the signature does not verify',
    'find the CA that signed it, usually the one before or after a rotation, among all CA files: kcert inspect FILES -o tree',
  ],
  [
    'weak signature',
    { code: 'SIGNATURE_WEAK' },
    '"leaf" is signed with SHA1-RSA, which Go refuses',
    'issue it again, signed with SHA-256 or better',
  ],
  [
    'unsupported signature',
    { code: 'SIGNATURE_UNSUPPORTED' },
    '"leaf" is signed with SHA1-RSA, in a form that Go does not know',
    'issue it again, signed with ECDSA, Ed25519 or RSA and SHA-256',
  ],
  [
    'unsupported key',
    { code: 'ISSUER_KEY_UNSUPPORTED', at: ca },
    'Go does not use the key of the CA "ca": RSA 512, which Kubernetes refuses since 1.33 (Go 1.24)',
    'replace the CA by one with ECDSA P-256 or with RSA of 2048 to 8192 bits',
  ],
  [
    'unsupported key without a size',
    {
      code: 'ISSUER_KEY_UNSUPPORTED',
      at: certificate('d', { publicKey: { algorithm: 'DSA' } }),
    },
    'Go does not use the key of the CA "d": DSA',
    'replace the CA by one with ECDSA P-256 or with RSA of 2048 to 8192 bits',
  ],
  [
    'issuer without basic constraints',
    { code: 'ISSUER_NOT_CA', at: ca, refusal: { other: leaf } },
    '"ca" signed "leaf", but it is no CA: basic constraints are missing',
    'issue it again with "CA:TRUE", or sign with a CA; what it is: kcert inspect ca.crt',
  ],
  [
    'issuer that is no CA',
    {
      code: 'ISSUER_NOT_CA',
      at: certificate('n', { basicConstraints: {} }),
      refusal: { other: leaf },
    },
    '"n" signed "leaf", but it is no CA: its basic constraints say so',
    'issue it again with "CA:TRUE", or sign with a CA; what it is: kcert inspect n.crt',
  ],
  [
    'issuer that may not sign',
    { code: 'ISSUER_MAY_NOT_SIGN', at: ca },
    'the CA "ca" has a key usage without keyCertSign: cRLSign, digitalSignature',
    'issue the CA again with the key usage keyCertSign',
  ],
  [
    'path length',
    {
      code: 'PATH_LENGTH_EXCEEDED',
      at: certificate('p', { basicConstraints: { pathLength: 0 } }),
      chain: [leaf, ca, ca],
    },
    'the CA "p" allows 0 intermediates below it, and there are 1',
    'use a CA with a longer path length, or sign the leaf with fewer intermediates; Go counts self-issued CAs too',
  ],
  [
    'client certificate of a server',
    { code: 'USAGE_WRONG', at: clientLeaf, chain: [clientLeaf, ca] },
    'the leaf "c" is for clientAuth, not for serverAuth',
    'if it is used by a client: --purpose client; else issue it again with serverAuth',
  ],
  [
    'server certificate of a client',
    {
      code: 'USAGE_WRONG',
      at: serverLeaf,
      chain: [serverLeaf, ca],
      question: { purpose: 'client' },
    },
    'the leaf "s" is for serverAuth, not for clientAuth',
    'if it is used by a server: --purpose server; else issue it again with clientAuth',
  ],
  [
    'usages that fit neither',
    { code: 'USAGE_WRONG', at: clientLeaf, chain: [clientLeaf, serverLeaf] },
    'the leaf "c" is for clientAuth, not for serverAuth',
    'issue it again with the extended key usage serverAuth',
  ],
  [
    'name outside of the permitted',
    { code: 'NAME_NOT_ALLOWED', refusal: violation({}) },
    'the DNS name "a.b" of "leaf" is in no subtree that the CA "ca" (place of ca) permits',
    'issue the certificate again without that name, or with a CA that may sign for it',
  ],
  [
    'excluded name',
    { code: 'NAME_NOT_ALLOWED', refusal: violation({ excludedBy: 'b' }) },
    'the DNS name "a.b" of "leaf" is excluded by the CA "ca" (place of ca): "b"',
    'issue the certificate again without that name, or with a CA that may sign for it',
  ],
  [
    'name that cannot be compared',
    {
      code: 'NAME_NOT_ALLOWED',
      refusal: violation({ unusable: 'no-host', constrainedBy: undefined }),
    },
    'the DNS name "a.b" of "leaf" cannot be compared with the name constraints of a CA above it',
    'issue the certificate again without that name, or with a CA that may sign for it',
  ],
  [
    'policy',
    { code: 'POLICY_NOT_MET', at: ca },
    'a CA above the leaf "leaf" demands an explicit certificate policy, and none holds from the root down',
    'issue the certificates below that CA with one of its policies',
  ],
  [
    'too many candidates',
    { code: 'TOO_MANY_CANDIDATES' },
    'among certificates of the same names no chain was found with 100 tries, where Go stops',
    'leave out certificates that do not belong to the chain',
  ],
  [
    'two user UIDs',
    { code: 'USER_UID_INVALID', at: uids('a', 'b') },
    'the chain is valid, but the subject of the leaf "u" has 2 user UIDs: "a", "b" (OID 1.3.6.1.4.1.57683.2), and an API server answers 401',
    'issue it again with one user UID, or with none',
  ],
  [
    'empty user UID',
    { code: 'USER_UID_INVALID', at: uids('') },
    'the chain is valid, but the subject of the leaf "u" has an empty user UID (OID 1.3.6.1.4.1.57683.2), and an API server answers 401',
    'issue it again with one user UID, or with none',
  ],
  [
    'subject without a common name',
    {
      code: 'SIGNATURE_WEAK',
      at: certificate('', { subject: { text: 'O=ops' } }),
    },
    '"O=ops" is signed with SHA1-RSA, which Go refuses',
    'issue it again, signed with SHA-256 or better',
  ],
  [
    'empty subject',
    { code: 'SIGNATURE_WEAK', at: certificate('', { subject: { text: '' } }) },
    '"(empty subject)" is signed with SHA1-RSA, which Go refuses',
    'issue it again, signed with SHA-256 or better',
  ],
])('%s', ([, given, reason, next]) => {
  expect(wordsOf(given)).toEqual([reason, next])
})
