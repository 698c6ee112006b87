import type { OpensslErrorName } from './openssl-errors.ts'
import type { OpensslFacts } from './openssl-facts.ts'

// OpenSSL 3's checks of the extensions in a chain: whether issuers are CAs, path lengths, purposes, and with -x509_strict many
// rules of RFC 5280 that other verifiers ignore.

/** Leaf first. */
export type OpensslChain = readonly OpensslFacts[]

export interface FoundError {
  readonly name: OpensslErrorName
  readonly depth: number
  /** The certificate at that depth. */
  readonly facts: OpensslFacts
}

/** OpenSSL's numbers: 1 is a CA by its basic constraints, 3 to 5 are CAs by older criteria, 0 is not a CA. */
function caGrade({ certificate, isSelfSigned, isInvalid, nsCertType = 0 }: OpensslFacts): 0 | 1 | 3 | 4 | 5 {
  const { version, basicConstraints, keyUsage } = certificate
  if (isInvalid || (keyUsage !== undefined && !keyUsage.includes('keyCertSign'))) return 0
  if (basicConstraints !== undefined) return basicConstraints.ca ? 1 : 0
  if (version === 1 && isSelfSigned) return 3
  if (keyUsage !== undefined) return 4
  return (nsCertType & nsAnyCa) !== 0 ? 5 : 0
}

const nsSslClient = 0x80
const nsSslServer = 0x40
const nsSslCa = 0x04
const nsAnyCa = 0x07

/** Returns the first certificate whose extensions do not allow its position, and the reason. */
export function findExtensionsError(
  chain: OpensslChain,
  purpose: 'server' | 'client' | 'any',
  isStrict: boolean,
): FoundError | undefined {
  let below = 0
  for (const [depth, facts] of chain.entries()) {
    const name = ((): OpensslErrorName | undefined => {
      if (facts.hasUnknownCritical) return 'unhandled-critical'
      if (facts.isProxy) return 'proxy'
      const grade = caGrade(facts)
      const isLast = depth === chain.length - 1
      if (depth === 0 ? isStrict && grade > 1 : grade === 0 || ((!isLast || isStrict) && grade !== 1))
        return 'invalid-ca'
      const strict = isStrict && chain.length > 1 ? strictError(facts, isLast) : undefined
      if (strict !== undefined) return strict
      if (purpose !== 'any' && !fitsPurpose(facts, purpose, depth > 0)) return 'purpose'
      const { pathLength = Number.POSITIVE_INFINITY } = facts.certificate.basicConstraints ?? {}
      return depth > 1 && below > pathLength ? 'path-length' : undefined
    })()
    if (name !== undefined) return { name, depth, facts }
    // RFC 5280 section 4.2.1.9 does not count self-issued certificates, and neither does OpenSSL. Go counts them.
    if (depth > 0 && !facts.isSelfIssued) below++
  }
  return undefined
}

function fitsPurpose(facts: OpensslFacts, purpose: 'server' | 'client', isIssuer: boolean): boolean {
  const { certificate, nsCertType } = facts
  const { keyUsage, extendedKeyUsage } = certificate
  if (facts.isInvalid) return false
  // Unlike Go, OpenSSL does not accept anyExtendedKeyUsage for TLS.
  const fitting = purpose === 'server' ? ['serverAuth', 'msSGC', 'nsSGC'] : ['clientAuth']
  const isLimited = certificate.findExtension('2.5.29.37') !== undefined
  if (isLimited && !extendedKeyUsage.some((usage) => fitting.includes(usage))) return false
  if (isIssuer) {
    const grade = caGrade(facts)
    return grade === 5 ? ((nsCertType ?? 0) & nsSslCa) !== 0 : grade !== 0
  }
  const bits = purpose === 'server' ? nsSslServer : nsSslClient
  if (nsCertType !== undefined && (nsCertType & bits) === 0) return false
  const usages = purpose === 'server' ? serverKeyUsages : clientKeyUsages
  return keyUsage === undefined || keyUsage.some((usage) => usages.has(usage))
}

const serverKeyUsages = new Set<string>(['digitalSignature', 'keyEncipherment', 'keyAgreement'])
const clientKeyUsages = new Set<string>(['digitalSignature', 'keyAgreement'])

/** `-x509_strict`, in OpenSSL's order. */
function strictError(facts: OpensslFacts, isLast: boolean): OpensslErrorName | undefined {
  const { certificate, authorityKeyId, altNames } = facts
  const { basicConstraints, keyUsage, isCa, version } = certificate
  if (basicConstraints?.pathLength !== undefined) {
    if (!isCa) return 'path-length-of-no-ca'
    if (!keyUsage?.includes('keyCertSign')) return 'path-length-without-cert-sign'
  }
  if (isCa && !certificate.findExtension('2.5.29.19')?.critical) return 'constraints-not-critical'
  if (isCa && keyUsage === undefined) return 'no-key-usage'
  if (!isCa && keyUsage?.includes('keyCertSign')) return 'cert-sign-of-no-ca'
  if (certificate.issuer.rdns.length === 0) return 'issuer-empty'
  const isSubjectEmpty = certificate.subject.rdns.length === 0
  if (isSubjectEmpty && (isCa || keyUsage?.includes('cRLSign') || altNames === undefined))
    return 'subject-empty'
  if (isSubjectEmpty && altNames !== undefined && !certificate.findExtension('2.5.29.17')?.critical) {
    return 'subject-empty-names-not-critical'
  }
  if (altNames !== undefined && altNames.length === 0) return 'names-empty'
  if (version < 3) return certificate.extensions.length > 0 ? 'extensions-of-old-version' : undefined
  const hasAuthority = authorityKeyId?.keyId !== undefined
  if (!isLast && !facts.isSelfSigned && !hasAuthority) return 'no-authority-key-id'
  return isCa && certificate.subjectKeyId === undefined ? 'no-subject-key-id' : undefined
}
