import { commandLine, fixed } from '../errors/command-line.ts'
import { spanText, timeText } from '../inspection/spans.ts'
import { kubeadmCas, kubeadmFolders } from '../pki/kubeadm.ts'
import type { Certificate } from '../x509/certificate.ts'
import type { ChainQuestion } from '../x509/chain.ts'
import { isTooLongForTls, minorsOfKey, unknownBefore138 } from '../x509/go-keys.ts'
import { hostAddress } from '../x509/hostname.ts'
import { isMlDsa } from '../x509/ml-dsa.ts'
import { userUidFault } from '../x509/name.ts'
import { nameOfOid } from '../x509/oids.ts'
import { areSameName } from '../x509/openssl-name.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import type { Refusal, RefusalCode } from '../x509/refusal.ts'

// What is said of a refused chain: the reason, with the names and values that decide, and what to do next.

export interface RefusalWords {
  readonly reason: string
  readonly next: string
}

/** What the words may refer to. */
export interface RefusalContext {
  readonly question: ChainQuestion
  /** "ca.crt: certificate 2" */
  readonly placeOf: (certificate: Certificate) => string
  /** "ca.crt", "-" or "10.0.0.1:6443". */
  readonly sourceOf: (certificate: Certificate) => string
  /** "ca.crt"; undefined for what came from a server or standard input: trust in that proves nothing. */
  readonly fileOf: (certificate: Certificate) => string | undefined
}

type Wording = (refusal: Refusal, context: RefusalContext) => RefusalWords

/** Returns why a chain is refused, and what to do next. */
export function refusalWords(refusal: Refusal, context: RefusalContext): RefusalWords {
  return wordings[refusal.code](refusal, context)
}

const wordings: Readonly<Record<RefusalCode, Wording>> = {
  CERT_EXPIRED: (refusal, { question, sourceOf }) => {
    const { certificate } = refusal
    const ago = spanText(question.at.getTime() - certificate.notAfter.getTime())
    return {
      reason: `${who(refusal)} expired on ${timeText(certificate.notAfter)}, ${ago} ago`,
      next: isLeaf(refusal)
        ? commandLine`renew it; which one it is and how: kcert inspect ${sourceOf(certificate)}`
        : 'give the CA certificate that is in force now; if there is none, the CA must be replaced, and all that it signed',
    }
  },
  CERT_NOT_YET_VALID: (refusal, { question }) => {
    const { certificate } = refusal
    const until = spanText(certificate.notBefore.getTime() - question.at.getTime())
    return {
      reason: `${who(refusal)} is not valid before ${timeText(certificate.notBefore)}, in ${until}`,
      next: 'verify at another time (--at TIME), or compare the clocks here and on the machine that issued it: date -u',
    }
  },
  CRITICAL_EXTENSION_UNKNOWN: (refusal) => ({
    reason: `${who(refusal)} has a critical extension that Go does not handle: ${refusal.certificate.unhandledCriticalExtensions.join(', ')}`,
    next: 'issue it again without that extension, or with the extension not critical',
  }),
  HOST_NAME_MISMATCH: ({ certificate }, { question }) => hostWords(certificate, question.name ?? ''),
  LEAF_SELF_SIGNED: ({ certificate }, context) => ({
    reason: `the leaf ${name(certificate)} signed itself, and is not among the roots`,
    next: [
      trustNext(certificate, context, 'to trust just this one'),
      'a kubelet gets a signed one with serverTLSBootstrap: true',
    ].join('; '),
  }),
  ROOT_NOT_TRUSTED: ({ certificate }, context) => ({
    reason: `the chain ends in the root ${name(certificate)}, which is not among the roots (SHA-256 ${certificate.fingerprintSha256})`,
    next: [
      trustNext(certificate, context, 'if this CA is to be trusted'),
      'else the leaf is of another cluster, or the CA was replaced',
    ].join('; '),
  }),
  ISSUER_UNKNOWN: unknownIssuerWords,
  ISSUER_KEY_OTHER: ({ certificate, other }, { placeOf }) => ({
    reason: `${name(certificate)} is signed by another key than that of the CA ${name(other)} in ${other && placeOf(other)}: ${keyIdWords(certificate, other)}`,
    next: 'find the CA that signed it, usually the one before or after a rotation, among all CA files: kcert inspect FILES -o tree',
  }),
  SIGNATURE_WEAK: ({ certificate }) => ({
    reason: `${name(certificate)} is signed with ${certificate.signatureAlgorithm}, which Go refuses`,
    next: 'issue it again, signed with SHA-256 or better',
  }),
  SIGNATURE_UNSUPPORTED: ({ certificate }) => ({
    reason: isMlDsa(certificate.signatureAlgorithm)
      ? `${name(certificate)} is signed with ${certificate.signatureAlgorithm}, which ${unknownBefore138}`
      : `${name(certificate)} is signed with ${certificate.signatureAlgorithm}, in a form that Go does not know`,
    next: 'issue it again, signed with ECDSA, Ed25519 or RSA and SHA-256',
  }),
  ISSUER_KEY_UNSUPPORTED: ({ certificate, chain }, { sourceOf }) => ({
    reason: `Go does not use the key of the CA ${name(certificate)}: ${keyWords(certificate.publicKey)}`,
    next:
      isTooLongForTls(certificate.publicKey) && !chain.slice(0, -1).includes(certificate)
        ? commandLine`leave this certificate, which is sent and not needed, out of ${sourceOf(certificate)}`
        : 'replace the CA by one with ECDSA P-256 or with RSA of 2048 to 8192 bits',
  }),
  LEAF_KEY_UNSUPPORTED: ({ certificate }) => ({
    reason: `the chain is valid, but TLS in Go does not use the key of the leaf ${name(certificate)}: ${keyWords(certificate.publicKey)}`,
    next: 'issue it again with a key of ECDSA P-256 or of RSA with 2048 to 8192 bits',
  }),
  ISSUER_NOT_CA: ({ certificate, other }, { sourceOf }) => ({
    reason: `${name(certificate)} signed ${name(other)}, but it is no CA: ${certificate.basicConstraints === undefined ? 'basic constraints are missing' : 'its basic constraints say so'}`,
    next: commandLine`issue it again with "CA:TRUE", or sign with a CA; what it is: kcert inspect ${sourceOf(certificate)}`,
  }),
  ISSUER_MAY_NOT_SIGN: ({ certificate }) => ({
    reason: `the CA ${name(certificate)} has a key usage without keyCertSign: ${certificate.keyUsage?.join(', ')}`,
    next: 'issue the CA again with the key usage keyCertSign',
  }),
  PATH_LENGTH_EXCEEDED: ({ certificate, chain }) => ({
    reason: `the CA ${name(certificate)} allows ${certificate.basicConstraints?.pathLength} intermediates below it, and there are ${chain.length - 2}`,
    next: 'use a CA with a longer path length, or sign the leaf with fewer intermediates; Go counts self-issued CAs too',
  }),
  USAGE_WRONG: (refusal, { question }) => usageWords(refusal, question),
  NAME_NOT_ALLOWED: constraintWords,
  POLICY_NOT_MET: ({ chain }) => ({
    reason: `a CA above the leaf ${name(chain[0])} demands an explicit certificate policy, and none holds from the root down`,
    next: 'issue the certificates below that CA with one of its policies',
  }),
  TOO_MANY_CANDIDATES: () => ({
    reason: 'among certificates of the same names no chain was found with 100 tries, where Go stops',
    next: 'leave out certificates that do not belong to the chain',
  }),
  USER_UID_INVALID: ({ certificate }) => ({
    reason: `the chain is valid, but the subject of the leaf ${name(certificate)} has ${userUidFault(certificate.subject)} (OID 1.3.6.1.4.1.57683.2), and an API server answers 401`,
    next: 'issue it again with one user UID, or with none',
  }),
}

/** "RSA 512, which Kubernetes refuses since 1.33 (Go 1.24)" */
function keyWords(key: PublicKeyInfo): string {
  const { algorithm, bits } = key
  const type = [nameOfOid(algorithm) ?? algorithm, bits].filter((part) => part !== undefined).join(' ')
  return [type, minorsOfKey(key)].filter((part) => part !== undefined).join(', ')
}

/** The common name in quotes, or the whole subject. */
function name(certificate: Certificate | undefined): string {
  const { commonName, text } = certificate?.subject ?? {}
  return `"${commonName || text || '(empty subject)'}"`
}

function isLeaf({ certificate, chain }: Refusal): boolean {
  return chain[0] === certificate
}

function who(refusal: Refusal): string {
  const role = isLeaf(refusal) ? 'leaf' : 'CA'
  return `the ${role} ${name(refusal.certificate)}`
}

/** A server that proves itself by its own word is not proven: the CA comes from a control-plane node. */
function trustNext(
  certificate: Certificate,
  { fileOf }: RefusalContext,
  when: 'to trust just this one' | 'if this CA is to be trusted',
): string {
  const file = fileOf(certificate)
  return file === undefined
    ? commandLine`${fixed(when)}: get the file from its owner and compare its SHA-256 ${certificate.fingerprintSha256}, then --roots FILE`
    : commandLine`${fixed(when)}: --roots ${file}`
}

function hostWords(certificate: Certificate, host: string): RefusalWords {
  const { dns, ip } = certificate.subjectAltNames
  const isAddress = hostAddress(host) !== undefined
  const all = [...dns, ...ip]
  const shown =
    all.length > 20 ? `${all.slice(0, 20).join(', ')} and ${all.length - 20} more` : all.join(', ')
  const valid =
    all.length === 0
      ? `has no host name or address among its subject alternative names, so it is not valid for ${host}`
      : `is valid for ${shown}, not for ${host}`
  const byCommonName = !isAddress && certificate.subject.commonName === host
  return {
    reason: `the leaf ${name(certificate)} ${valid}${byCommonName ? '; the common name does not count' : ''}`,
    next: commandLine`connect by a name that it has, or issue it again with ${host} (kubeadm: certSANs of the API server, then kubeadm init phase certs apiserver)`,
  }
}

function unknownIssuerWords({ certificate }: Refusal, { question, placeOf }: RefusalContext): RefusalWords {
  const { issuer, authorityKeyId } = certificate
  const all = [...question.roots.certificates, ...question.intermediates.certificates]
  const almost = all.find(({ subject }) => areSameName(subject, issuer))
  if (almost !== undefined) {
    return {
      reason: `${name(certificate)} names its issuer as ${placeOf(almost)} does, but encoded otherwise (case, spaces or string type), and Go compares bytes`,
      next: 'issue it again with the subject of the CA copied byte for byte',
    }
  }
  const known = kubeadmCas.find(({ commonName }) => commonName === issuer.commonName)
  const keyId = authorityKeyId === undefined ? '' : ` (key identifier ${authorityKeyId})`
  return {
    reason: `there is no certificate of the issuer of ${name(certificate)}: ${issuer.text || '(empty)'}${keyId}`,
    next:
      known === undefined
        ? 'add the certificate of that CA: with --intermediates FILE, or with --roots FILE when it is the root'
        : commandLine`on a kubeadm control plane that CA is ${kubeadmFolders.pki}/${known.file}.crt: --roots FILE`,
  }
}

function keyIdWords({ authorityKeyId }: Certificate, issuer: Certificate | undefined): string {
  const { subjectKeyId } = issuer ?? {}
  if (authorityKeyId === undefined || subjectKeyId === undefined) return 'the signature does not verify'
  if (authorityKeyId === subjectKeyId)
    return 'the key identifiers agree, but the signature does not verify, so it is damaged or forged'
  return `it asks for key identifier ${authorityKeyId}, and that CA has ${subjectKeyId}`
}

const usages = { server: 'serverAuth', client: 'clientAuth' } as const

function usageWords(refusal: Refusal, { purpose }: ChainQuestion): RefusalWords {
  const wanted = usages[purpose === 'client' ? 'client' : 'server']
  const { extendedKeyUsage } = refusal.certificate
  const other = purpose === 'client' ? 'server' : 'client'
  const fitsOther = refusal.chain.every(
    (one) => one.extendedKeyUsage.length === 0 || one.extendedKeyUsage.includes(usages[other]),
  )
  return {
    reason: `${who(refusal)} is for ${extendedKeyUsage.join(', ')}, not for ${wanted}`,
    next: fitsOther
      ? commandLine`if it is used by a ${other}: --purpose ${other}; else issue it again with ${wanted}`
      : commandLine`issue it again with the extended key usage ${wanted}`,
  }
}

function constraintWords(refusal: Refusal, { placeOf }: RefusalContext): RefusalWords {
  const { certificate } = refusal
  const { constrainedBy, kind, name: text, excludedBy, unusable } = refusal.violation ?? {}
  const by =
    constrainedBy === undefined
      ? 'a CA above it'
      : `the CA ${name(constrainedBy)} (${placeOf(constrainedBy)})`
  const verdict =
    unusable !== undefined
      ? `cannot be compared with the name constraints of ${by}`
      : excludedBy === undefined
        ? `is in no subtree that ${by} permits`
        : `is excluded by ${by}: "${excludedBy}"`
  const reason = `the ${kind} "${text}" of ${name(certificate)} ${verdict}`
  return { reason, next: `issue the certificate again without that name, or with a CA that may sign for it` }
}
