import { commandLine, embed } from '../errors/command-line.ts'
import { spanText, timeText } from '../inspection/spans.ts'
import { kubeadmCas, kubeadmFolders } from '../pki/kubeadm.ts'
import type { Certificate } from '../x509/certificate.ts'
import type { ChainQuestion, Purpose } from '../x509/chain.ts'
import { isTooLongForTls, minorsOfKey, unknownBefore138 } from '../x509/go-keys.ts'
import { hostAddress } from '../x509/hostname.ts'
import { isMlDsa } from '../x509/ml-dsa.ts'
import { userUidFault } from '../x509/name.ts'
import { nameOfOid } from '../x509/oids.ts'
import { areSameName } from '../x509/openssl-name.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import type { Refusal, RefusalCode } from '../x509/refusal.ts'

// The reason why a chain is not trusted, with the names and values that matter, and the next command.

export interface RefusalWords {
  readonly reason: string
  /** How to fix it. */
  readonly advice: string
  readonly next: string
}

/** The names and locations that the texts contain. */
export interface RefusalContext {
  readonly question: ChainQuestion
  /** "ca.crt: certificate 2" */
  readonly locationOf: (certificate: Certificate) => string
  /** "ca.crt", "-" or "10.0.0.1:6443". */
  readonly sourceOf: (certificate: Certificate) => string
  /** "ca.crt"; undefined for certificates from a server or standard input, which must not become roots. */
  readonly fileOf: (certificate: Certificate) => string | undefined
  /** "kcert verify a.crt --roots ca.crt --purpose client": the same command with another purpose. */
  readonly withPurpose?: ((purpose: Purpose) => string) | undefined
}

type Wording = (refusal: Refusal, context: RefusalContext) => RefusalWords

/** Returns why a chain is not trusted, and the next command. */
export function refusalWords(refusal: Refusal, context: RefusalContext): RefusalWords {
  return wordings[refusal.code](refusal, context)
}

const wordings: Readonly<Record<RefusalCode, Wording>> = {
  CERT_EXPIRED: (refusal, { question, sourceOf }) => {
    const { certificate } = refusal
    const ago = spanText(question.at.getTime() - certificate.notAfter.getTime())
    return {
      reason: `${who(refusal)} expired on ${timeText(certificate.notAfter)}, ${ago} ago`,
      advice: `${isLeaf(refusal) ? 'renew it' : 'use the current CA certificate, or replace the CA and reissue its certificates'}`,
      next: inspect(sourceOf(certificate)),
    }
  },
  CERT_NOT_YET_VALID: (refusal, { question }) => {
    const { certificate } = refusal
    const until = spanText(certificate.notBefore.getTime() - question.at.getTime())
    return {
      reason: `${who(refusal)} is not valid before ${timeText(certificate.notBefore)}, in ${until}`,
      advice: `compare the clocks of this machine and of the issuer`,
      next: 'date -u',
    }
  },
  CRITICAL_EXTENSION_UNKNOWN: (refusal, { sourceOf }) => ({
    reason: `${who(refusal)} has a critical extension that Go does not support: ${refusal.certificate.unhandledCriticalExtensions.join(', ')}`,
    advice: `reissue it without this extension, or not critical`,
    next: inspect(sourceOf(refusal.certificate)),
  }),
  HOST_NAME_MISMATCH: ({ certificate }, { question, sourceOf }) =>
    hostWords(certificate, question.name ?? '', sourceOf(certificate)),
  LEAF_SELF_SIGNED: ({ certificate }, context) => ({
    reason: `the leaf ${name(certificate)} is self-signed and not among the roots (SHA-256 ${certificate.fingerprintSha256})`,
    advice: `${ownerText(certificate, context)}a kubelet gets a signed certificate with serverTLSBootstrap: true`,
    next: trustNext(certificate, context),
  }),
  ROOT_NOT_TRUSTED: ({ certificate }, context) => ({
    reason: `the chain ends in the CA ${name(certificate)}, which is not among the roots (SHA-256 ${certificate.fingerprintSha256})`,
    advice: `${ownerText(certificate, context)}if you do not trust it, the leaf is from another cluster, or the CA was replaced`,
    next: trustNext(certificate, context),
  }),
  ISSUER_UNKNOWN: unknownIssuerWords,
  ISSUER_KEY_OTHER: ({ certificate, other }, { locationOf, sourceOf }) => ({
    reason: `${name(certificate)} was not signed with the key of the CA ${name(other)} in ${other && locationOf(other)}: ${keyIdWords(certificate, other)}`,
    advice: `its CA is usually the one before or after a rotation`,
    next: commandLine`kcert inspect ${[...new Set([certificate, other ?? certificate].map(sourceOf))]} -o tree`,
  }),
  SIGNATURE_WEAK: ({ certificate }, { sourceOf }) => ({
    reason: `${name(certificate)} is signed with ${certificate.signatureAlgorithm}, which Go rejects`,
    advice: `reissue it, signed with SHA-256 or better`,
    next: inspect(sourceOf(certificate)),
  }),
  SIGNATURE_UNSUPPORTED: ({ certificate }, { sourceOf }) => ({
    reason: `${name(certificate)} is signed with ${certificate.signatureAlgorithm}, ${isMlDsa(certificate.signatureAlgorithm) ? `which ${unknownBefore138}` : 'in a form that Go does not support'}`,
    advice: `reissue it, signed with ECDSA, Ed25519 or RSA and SHA-256`,
    next: inspect(sourceOf(certificate)),
  }),
  ISSUER_KEY_UNSUPPORTED: ({ certificate, chain }, { sourceOf }) => ({
    reason: `Go does not support the key of the CA ${name(certificate)}: ${keyWords(certificate.publicKey)}`,
    advice:
      isTooLongForTls(certificate.publicKey) && !chain.slice(0, -1).includes(certificate)
        ? `remove this certificate, which the chain does not need, from ${sourceOf(certificate)}`
        : 'replace it with a CA with ECDSA P-256 or RSA of 2048 to 8192 bits',
    next: inspect(sourceOf(certificate)),
  }),
  LEAF_KEY_UNSUPPORTED: ({ certificate }, { sourceOf }) => ({
    reason: `the chain is valid, but TLS in Go does not support the key of the leaf ${name(certificate)}: ${keyWords(certificate.publicKey)}`,
    advice: `reissue it with an ECDSA P-256 key or an RSA key of 2048 to 8192 bits`,
    next: inspect(sourceOf(certificate)),
  }),
  ISSUER_NOT_CA: ({ certificate, other }, { sourceOf }) => ({
    reason: `${name(certificate)} signed ${name(other)}, but it is not a CA: ${certificate.basicConstraints === undefined ? 'it has no basic constraints' : 'its basic constraints have CA:FALSE'}`,
    advice: `reissue it with CA:TRUE, or sign ${name(other)} with a CA`,
    next: inspect(sourceOf(certificate)),
  }),
  ISSUER_MAY_NOT_SIGN: ({ certificate }, { sourceOf }) => ({
    reason: `the key usage of the CA ${name(certificate)} lacks keyCertSign: ${certificate.keyUsage?.join(', ')}`,
    advice: `reissue the CA certificate with keyCertSign`,
    next: inspect(sourceOf(certificate)),
  }),
  PATH_LENGTH_EXCEEDED: ({ certificate, chain }, { sourceOf }) => ({
    reason: `the path length of the CA ${name(certificate)} allows ${certificate.basicConstraints?.pathLength} intermediates, and there are ${chain.length - 2} (Go counts self-issued CAs, too)`,
    advice: `use a CA with a longer path length, or fewer intermediates`,
    next: inspect(sourceOf(certificate)),
  }),
  USAGE_WRONG: usageWords,
  NAME_NOT_ALLOWED: constraintWords,
  POLICY_NOT_MET: ({ chain, certificate }, { sourceOf }) => ({
    reason: `a CA above the leaf ${name(chain[0])} requires an explicit certificate policy, and no policy is valid for the whole chain`,
    advice: `reissue the certificates below that CA with one of its policies`,
    next: inspect(sourceOf(chain[0] ?? certificate)),
  }),
  TOO_MANY_CANDIDATES: ({ certificate }, { sourceOf }) => ({
    reason: 'many certificates have the same names, and Go gives up after 100 tries',
    advice: 'remove certificates that do not belong to the chain',
    next: inspect(sourceOf(certificate)),
  }),
  USER_UID_INVALID: ({ certificate }, { sourceOf }) => ({
    reason: `the chain is valid, but the subject of the leaf ${name(certificate)} has ${userUidFault(certificate.subject)} (OID 1.3.6.1.4.1.57683.2), and an API server responds with 401`,
    advice: `reissue it with at most one user UID`,
    next: inspect(sourceOf(certificate)),
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

function inspect(source: string): string {
  return commandLine`kcert inspect ${source}`
}

/** A certificate that a server sends does not prove its identity: the CA must come from elsewhere, such as a control-plane node. */
function ownerText(certificate: Certificate, { fileOf }: RefusalContext): string {
  return fileOf(certificate) === undefined
    ? 'to trust it, get its file from the owner and compare the SHA-256; '
    : ''
}

/** Returns the same command with this certificate as a root. */
function trustNext(certificate: Certificate, { fileOf, sourceOf, question }: RefusalContext): string {
  const file = fileOf(certificate)
  if (file === undefined) return inspect(sourceOf(certificate))
  const { leaf, purpose, name: host } = question
  const named = host === undefined ? undefined : embed(commandLine`--name ${host}`)
  return commandLine`kcert verify ${sourceOf(leaf)} --roots ${file} --purpose ${purpose} ${named}`
}

function hostWords(certificate: Certificate, host: string, source: string): RefusalWords {
  const { dns, ip } = certificate.subjectAltNames
  const isAddress = hostAddress(host) !== undefined
  const all = [...dns, ...ip]
  const shown =
    all.length > 20 ? `${all.slice(0, 20).join(', ')} and ${all.length - 20} more` : all.join(', ')
  const valid =
    all.length === 0
      ? `has no host name or IP address among its SANs, so it is not valid for ${host}`
      : `is valid for ${shown}, not for ${host}`
  const byCommonName = !isAddress && certificate.subject.commonName === host
  return {
    reason: `the leaf ${name(certificate)} ${valid}${byCommonName ? ' (the common name is ignored)' : ''}`,
    advice: `connect to a name that it has, or reissue it with ${host} (kubeadm: certSANs of the API server, then kubeadm init phase certs apiserver)`,
    next: inspect(source),
  }
}

function unknownIssuerWords(
  { certificate }: Refusal,
  { question, locationOf, sourceOf }: RefusalContext,
): RefusalWords {
  const { issuer, authorityKeyId } = certificate
  const all = [...question.roots.certificates, ...question.intermediates.certificates]
  const almost = all.find(({ subject }) => areSameName(subject, issuer))
  if (almost !== undefined) {
    return {
      reason: `the issuer of ${name(certificate)} is the subject of ${locationOf(almost)}, but with another encoding (case, spaces or string type), and Go compares bytes`,
      advice: `reissue it with the subject of the CA copied byte for byte`,
      next: inspect(sourceOf(certificate)),
    }
  }
  const known = kubeadmCas.find(({ commonName }) => commonName === issuer.commonName)
  const keyId = authorityKeyId === undefined ? '' : ` (key identifier ${authorityKeyId})`
  return {
    reason: `the issuer of ${name(certificate)} is not in the inputs: ${issuer.text || '(empty)'}${keyId}`,
    advice: `add its certificate with --roots if you trust it, or else with --intermediates`,
    next:
      known === undefined
        ? inspect(sourceOf(certificate))
        : commandLine`kcert verify ${sourceOf(question.leaf)} --roots ${`${kubeadmFolders.pki}/${known.file}.crt`} --purpose ${question.purpose}`,
  }
}

function keyIdWords({ authorityKeyId }: Certificate, issuer: Certificate | undefined): string {
  const { subjectKeyId } = issuer ?? {}
  if (authorityKeyId === undefined || subjectKeyId === undefined) return 'the signature does not verify'
  if (authorityKeyId === subjectKeyId)
    return 'the key identifiers match, but the signature does not verify, so it is damaged or forged'
  return `its authority key identifier is ${authorityKeyId}, and that CA has ${subjectKeyId}`
}

const usages = { server: 'serverAuth', client: 'clientAuth' } as const

function usageWords(refusal: Refusal, { question, sourceOf, withPurpose }: RefusalContext): RefusalWords {
  const { purpose } = question
  const wanted = usages[purpose === 'client' ? 'client' : 'server']
  const { extendedKeyUsage } = refusal.certificate
  const other = purpose === 'client' ? 'server' : 'client'
  const fitsOther = refusal.chain.every(
    (one) => one.extendedKeyUsage.length === 0 || one.extendedKeyUsage.includes(usages[other]),
  )
  return {
    reason: `${who(refusal)} has the extended key usage ${extendedKeyUsage.join(', ')}, not ${wanted}`,
    advice: `${fitsOther ? `if a ${other} uses it, add --purpose ${other}, else reissue it with ${wanted}` : `reissue it with ${wanted}`}`,
    next: (fitsOther ? withPurpose?.(other) : undefined) ?? inspect(sourceOf(refusal.certificate)),
  }
}

function constraintWords(refusal: Refusal, { locationOf, sourceOf }: RefusalContext): RefusalWords {
  const { certificate } = refusal
  const { constrainedBy, kind, name: text, excludedBy, unusable } = refusal.violation ?? {}
  const by =
    constrainedBy === undefined
      ? 'a CA above it'
      : `the CA ${name(constrainedBy)} (${locationOf(constrainedBy)})`
  const verdict =
    unusable !== undefined
      ? `cannot be compared with the name constraints of ${by}`
      : excludedBy === undefined
        ? `is not in a subtree that ${by} permits`
        : `is excluded by ${by}: "${excludedBy}"`
  const reason = `the ${kind} "${text}" of ${name(certificate)} ${verdict}`
  return {
    reason: `${reason}`,
    advice: `reissue it without that name, or with a CA that may sign for it`,
    next: inspect(sourceOf(certificate)),
  }
}
