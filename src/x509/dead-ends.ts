import type { Certificate } from './certificate.ts'
import type { Refusal, RefusalCode } from './chain.ts'
import type { BuiltPaths, DeadEnd } from './path.ts'

// When no chain reaches a root, Go says "unknown authority" and little else. The search knows more: which candidates it
// tried and why it gave them up. Of these the one that most likely is the operator's trouble is told.

type Explanation = Omit<Refusal, 'go'>

/** Returns the reason why no path reached a root, with the certificate at fault. */
export function explainPaths(leaf: Certificate, paths: BuiltPaths): Explanation {
  if (paths.refusal?.kind === 'limit')
    return { code: 'too-many-candidates', certificate: leaf, chain: [leaf] }
  const explanations = [...paths.deadEnds.map(explainDeadEnd), ...paths.orphans.map(explainOrphan)]
  // An issuer that did sign but may not, or no longer, is the reason; next an unfit signature; a missing issuer comes last,
  // because every chain that ends early ends so. Of equals the one closest to a root: there the search came furthest.
  const [likeliest] = explanations.toSorted(
    (a, b) => plausibility(b.code) - plausibility(a.code) || b.chain.length - a.chain.length,
  )
  return likeliest ?? explainOrphan([leaf])
}

const plausibilities: Partial<Record<RefusalCode, number>> = {
  'critical-extension': 4,
  'not-yet-valid': 4,
  expired: 4,
  'not-a-ca': 4,
  'no-cert-sign': 4,
  'path-length': 4,
  'weak-signature': 3,
  'unsupported-key': 3,
  'unsupported-signature': 2,
}

function plausibility(code: RefusalCode): number {
  return plausibilities[code] ?? 1
}

function explainDeadEnd({ below, candidate, reason }: DeadEnd): Explanation {
  const issued = below.at(-1)!
  const issuerAtFault = (code: RefusalCode): Explanation => {
    return { code, certificate: candidate, other: issued, chain: [...below, candidate] }
  }
  const issuedAtFault = (code: RefusalCode): Explanation => {
    return { code, certificate: issued, other: candidate, chain: below }
  }
  switch (reason) {
    case 'not-a-ca':
    case 'no-cert-sign':
      // These are found before the signature is looked at. A namesake that did not sign is not the trouble.
      return issued.isSignedBy(candidate) ? issuerAtFault(reason) : issuedAtFault('wrong-issuer-key')
    case 'algorithm-refused':
      return issuedAtFault(issued.isSignedBy(candidate) ? 'weak-signature' : 'wrong-issuer-key')
    case 'algorithm-unsupported':
      return issuedAtFault('unsupported-signature')
    case 'key-unsupported':
      return issuerAtFault('unsupported-key')
    case 'key-mismatch':
    case 'bad-signature':
      return issuedAtFault('wrong-issuer-key')
    default:
      return issuerAtFault(reason)
  }
}

function explainOrphan(below: readonly Certificate[]): Explanation {
  const last = below.at(-1)!
  const isRoot = last.isSelfIssued && last.isSignedBy(last)
  const code = !isRoot ? 'unknown-issuer' : below.length === 1 ? 'self-signed' : 'untrusted-root'
  return { code, certificate: last, chain: below }
}
