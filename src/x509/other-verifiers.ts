import { type ChainQuestion, type ChainVerdict, verifyChain } from './chain.ts'
import { hostAddress, withoutBrackets } from './hostname.ts'
import { isMlDsa } from './ml-dsa.ts'
import { isValidForHostInNode } from './node-hostname.ts'
import { opensslFacts } from './openssl-facts.ts'
import { findOpensslError, type OpensslError, type OpensslSettings } from './openssl-path.ts'
import type { RefusalCode } from './refusal.ts'

// Cluster clients are not all written in Go. These verifiers sometimes give other results, so a certificate works with kubectl
// and fails in a script, or the reverse.

interface Verifier {
  readonly settings: OpensslSettings
  /** TLS has no purpose "any". */
  readonly purposes: readonly ChainQuestion['purpose'][]
  readonly isValidForHost: (question: ChainQuestion, host: string) => boolean
}

/** The supported verifiers other than Go: `openssl verify`, the TLS of Node.js 24 and of Python 3.13. */
const otherVerifiers = {
  openssl: {
    settings: { authLevel: 0, isStrict: false, takesPartialChain: false },
    purposes: ['server', 'client', 'any'],
    isValidForHost: (question, host) => isValidForHostInOpenssl(question, host, true),
  },
  node: {
    settings: { authLevel: 2, isStrict: false, takesPartialChain: false },
    purposes: ['server', 'client'],
    isValidForHost: ({ leaf, purpose }, host) => purpose === 'client' || isValidForHostInNode(leaf, host),
  },
  python: {
    settings: { authLevel: 2, isStrict: true, takesPartialChain: true },
    purposes: ['server', 'client'],
    isValidForHost: (question, host) =>
      question.purpose === 'client' || isValidForHostInOpenssl(question, host, false),
  },
} as const satisfies Record<string, Verifier>

type OtherVerifier = keyof typeof otherVerifiers

export interface OtherVerdict {
  readonly verifier: OtherVerifier
  readonly accepts: boolean
  /** The error that the verifier would show; absent when it accepts. */
  readonly error?: OpensslError
  /** Set when the result differs from Go's: the reason, as a sentence that begins with "it". */
  readonly difference?: string
}

/** Returns the result of each other verifier, and the reason if it differs from Go's result. */
export function askOtherVerifiers(
  question: ChainQuestion,
  go: ChainVerdict = verifyChain(question),
): OtherVerdict[] {
  const verdicts: OtherVerdict[] = []
  for (const verifier of Object.keys(otherVerifiers) as OtherVerifier[]) {
    const { purposes }: Verifier = otherVerifiers[verifier]
    if (!purposes.includes(question.purpose)) continue
    const error = errorOf(verifier, question)
    const accepts = error === undefined
    const difference =
      accepts === go.trusted
        ? undefined
        : `it ${error === undefined ? whyAccepted(go) : whyRefused(error, question)}`
    verdicts.push({ verifier, accepts, ...(error && { error }), ...(difference && { difference }) })
  }
  return verdicts
}

function errorOf(verifier: OtherVerifier, question: ChainQuestion): OpensslError | undefined {
  const { settings, isValidForHost }: Verifier = otherVerifiers[verifier]
  const { leaf, roots, intermediates, name } = question
  if (opensslFacts(leaf).x509 === undefined) {
    return { code: 0, text: 'cannot be read', depth: 0, certificate: leaf }
  }
  const isMismatch = name !== undefined && name !== '' && !isValidForHost(question, name)
  const isAddress = name !== undefined && hostAddress(name) !== undefined
  return findOpensslError(
    {
      ...question,
      roots: roots.certificates,
      intermediates: intermediates.certificates,
      nameError: isMismatch ? (isAddress ? 'address-mismatch' : 'hostname-mismatch') : undefined,
    },
    settings,
  )
}

function isValidForHostInOpenssl({ leaf }: ChainQuestion, host: string, partialWildcards: boolean): boolean {
  const x509 = opensslFacts(leaf).x509
  const isAddress = hostAddress(host) !== undefined
  try {
    const matched = isAddress
      ? x509?.checkIP(withoutBrackets(host))
      : x509?.checkHost(host, { partialWildcards })
    return matched !== undefined
  } catch {
    // OpenSSL does not accept the name, because it contains a NUL.
    return false
  }
}

/** Completes a sentence that begins with the verifier's name. */
function whyRefused({ code, text, certificate }: OpensslError, { at }: ChainQuestion): string {
  const isOver = Math.floor(certificate.notAfter.getTime() / 1000) === Math.floor(at.getTime() / 1000)
  if (code === 10 && isOver) return 'treats a certificate as expired in the second of its notAfter'
  return refusalWords[code] ?? `says "${text}"`
}

const refusalWords: Readonly<Record<number, string>> = {
  0: 'cannot parse the certificate',
  1: 'stops at this number of names and constraints',
  2: 'requires a chain that ends in a self-signed root, and the last CA is not self-signed',
  7: 'uses the first CA of that name without trying its key, and another CA created the signature',
  10: 'uses another path, in which a certificate has expired',
  18: 'does not accept a self-signed leaf that is not itself a root',
  19: 'uses a path that ends in a self-signed certificate that is not among the roots',
  20: 'does not find the issuer: it skips CAs with another key identifier, and requires a self-signed root at the end',
  25: 'uses another path, which is longer than a CA in it allows',
  26: 'checks usages more strictly: anyExtendedKeyUsage does not count for TLS, and the key usage of the leaf must allow it',
  32: 'uses a CA whose key usage lacks keyCertSign',
  34: 'does not support a critical extension',
  47: 'compares all names with the constraints of CAs, directory names and common names too, and hosts of mailboxes and URIs exactly',
  48: 'compares all names with the constraints of CAs, directory names and common names too',
  49: 'does not support name constraints with a minimum or maximum',
  51: 'does not support name constraints of this type',
  53: 'cannot compare a name with the constraints of a CA',
  62: 'matches host names differently',
  64: 'matches IP addresses differently',
  66: 'requires RSA keys of at least 2048 bits',
  67: 'requires RSA keys of at least 2048 bits in CAs',
  68: 'does not accept this hash in a signature',
  79: 'requires basic constraints in every CA of the chain',
  80: 'follows RFC 5280 strictly: only CAs have a path length',
  81: 'follows RFC 5280 strictly: a CA with a path length has the key usage keyCertSign',
  82: 'follows RFC 5280 strictly: only CAs have the key usage keyCertSign',
  83: 'follows RFC 5280 strictly: the issuer is not empty',
  84: 'follows RFC 5280 strictly: the subject of a CA is not empty',
  85: 'follows RFC 5280 strictly: every certificate below a root has an authority key identifier',
  86: 'follows RFC 5280 strictly: every CA has a subject key identifier',
  87: 'follows RFC 5280 strictly: the SANs are not empty',
  88: 'follows RFC 5280 strictly: with an empty subject the SANs are critical',
  89: 'follows RFC 5280 strictly: the basic constraints of a CA are critical',
  92: 'follows RFC 5280 strictly: every CA has a key usage',
  93: 'follows RFC 5280 strictly: extensions are for version 3',
}

function whyAccepted(go: ChainVerdict): string | undefined {
  if (go.trusted) return undefined
  const { code, certificate } = go.refusal
  const algorithm =
    code === 'SIGNATURE_UNSUPPORTED' ? certificate.signatureAlgorithm : certificate.publicKey.algorithm
  const isOfAlgorithm = code.endsWith('_UNSUPPORTED')
  if (code === 'LEAF_KEY_UNSUPPORTED' && certificate.publicKey.defect !== undefined)
    return 'does not use the key of the leaf to verify the chain'
  if (isOfAlgorithm && isMlDsa(algorithm)) return 'supports ML-DSA since OpenSSL 3.5'
  return acceptanceWords[code] ?? 'finds a path that it accepts'
}

const acceptanceWords: Partial<Record<RefusalCode, string>> = {
  CRITICAL_EXTENSION_UNKNOWN: 'supports the critical extension',
  HOST_NAME_MISMATCH:
    'uses the common name if there is no DNS name, or accepts a wildcard for a part of a label',
  ISSUER_UNKNOWN: 'compares names without regard to case and string type, where Go compares bytes',
  ISSUER_KEY_OTHER: 'finds the issuer by a name that differs in case or string type, where Go compares bytes',
  SIGNATURE_WEAK: 'does not check the strength of signatures',
  SIGNATURE_UNSUPPORTED: 'supports the signature algorithm',
  ISSUER_KEY_UNSUPPORTED: 'accepts the key',
  LEAF_KEY_UNSUPPORTED: 'accepts the key',
  ISSUER_NOT_CA: 'accepts older indications that a certificate is a CA',
  PATH_LENGTH_EXCEEDED: 'does not count self-issued CAs',
  NAME_NOT_ALLOWED:
    'compares names with constraints differently: it skips the names of self-issued CAs, and compares no wildcard with a single host',
  POLICY_NOT_MET: 'does not check policies by default',
  TOO_MANY_CANDIDATES: 'does not try as many candidates',
  USER_UID_INVALID: 'does not check user UIDs of Kubernetes',
}
