import type { Certificate } from './certificate.ts'
import type { BuiltPaths, DeadEnd, OwnDefect } from './path.ts'
import type { Refusal, RefusalCode } from './refusal.ts'
import { verifySignature } from './signature.ts'

// When no chain reaches a root, Go reports "unknown authority" and little else. The search has more detail: the candidates that
// it tried and the reasons it rejected them. kcert reports the most likely cause.

/** Codes for defects of a single certificate. */
export const ownCodes = {
  'critical-extension': 'CRITICAL_EXTENSION_UNKNOWN',
  'not-yet-valid': 'CERT_NOT_YET_VALID',
  expired: 'CERT_EXPIRED',
} as const satisfies Record<OwnDefect, RefusalCode>

type Explanation = Omit<Refusal, 'go'>

/** Returns the reason why no path reached a root, with the certificate at fault. */
export function explainPaths(leaf: Certificate, paths: BuiltPaths): Explanation {
  if (paths.refusal?.kind === 'limit')
    return { code: 'TOO_MANY_CANDIDATES', certificate: leaf, chain: [leaf] }
  const explanations = [...paths.deadEnds.map(explainDeadEnd), ...paths.orphans.map(explainOrphan)]
  // The first choice is an issuer that did sign but is not allowed to, or has expired. The next is an invalid signature. A
  // missing issuer comes last, because every incomplete chain ends with one. Among equal reasons, the one closest to a root wins,
  // because the search got furthest there.
  const [likeliest] = explanations.toSorted(
    (a, b) =>
      (plausibilities[b.code] ?? 1) - (plausibilities[a.code] ?? 1) || b.chain.length - a.chain.length,
  )
  return likeliest ?? explainOrphan({ below: [leaf], issued: leaf })
}

const plausibilities: Partial<Record<RefusalCode, number>> = {
  CRITICAL_EXTENSION_UNKNOWN: 4,
  CERT_NOT_YET_VALID: 4,
  CERT_EXPIRED: 4,
  ISSUER_NOT_CA: 4,
  ISSUER_MAY_NOT_SIGN: 4,
  PATH_LENGTH_EXCEEDED: 4,
  SIGNATURE_WEAK: 3,
  ISSUER_KEY_UNSUPPORTED: 3,
  SIGNATURE_UNSUPPORTED: 2,
}

function explainDeadEnd({ below, issued, candidate, reason }: DeadEnd): Explanation {
  const issuerAtFault = (code: RefusalCode): Explanation => {
    return { code, certificate: candidate, other: issued, chain: [...below, candidate] }
  }
  const issuedAtFault = (code: RefusalCode): Explanation => {
    // A root does not need an issuer. It is untrusted, however many CAs have the same name.
    if (code === 'ISSUER_KEY_OTHER' && isRoot(issued)) return explainOrphan({ below, issued })
    return { code, certificate: issued, other: candidate, chain: below }
  }
  switch (reason) {
    case 'not-a-ca':
    case 'no-cert-sign':
      // These checks run before the signature check. A CA with the same name that did not sign is not the cause.
      if (!issued.isSignedBy(candidate)) return issuedAtFault('ISSUER_KEY_OTHER')
      return issuerAtFault(reason === 'not-a-ca' ? 'ISSUER_NOT_CA' : 'ISSUER_MAY_NOT_SIGN')
    case 'algorithm-refused':
      return issuedAtFault(issued.isSignedBy(candidate) ? 'SIGNATURE_WEAK' : 'ISSUER_KEY_OTHER')
    case 'algorithm-unsupported':
      return issuedAtFault('SIGNATURE_UNSUPPORTED')
    case 'key-unsupported':
    case 'cannot-be-checked':
      // OpenSSL may support the algorithm. Again, a CA with the same name that did not sign is not the cause.
      return isOfAnotherKey(issued, candidate)
        ? issuedAtFault('ISSUER_KEY_OTHER')
        : issuerAtFault('ISSUER_KEY_UNSUPPORTED')
    case 'key-mismatch':
    case 'bad-signature':
      return issuedAtFault('ISSUER_KEY_OTHER')
    case 'path-length':
      return issuerAtFault('PATH_LENGTH_EXCEEDED')
    default:
      return issuerAtFault(ownCodes[reason])
  }
}

function isOfAnotherKey(issued: Certificate, { publicKey }: Certificate): boolean {
  const verdict = verifySignature(issued, publicKey, 'any')
  return !verdict.ok && (verdict.reason === 'key-mismatch' || verdict.reason === 'bad-signature')
}

function explainOrphan({ below, issued }: BuiltPaths['orphans'][number]): Explanation {
  const code = !isRoot(issued)
    ? 'ISSUER_UNKNOWN'
    : below.length === 1
      ? 'LEAF_SELF_SIGNED'
      : 'ROOT_NOT_TRUSTED'
  return { code, certificate: issued, chain: below }
}

function isRoot(certificate: Certificate): boolean {
  return certificate.isSelfIssued && certificate.isSignedBy(certificate)
}
