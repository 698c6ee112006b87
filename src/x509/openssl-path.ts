import type { KeyObject } from 'node:crypto'
import type { Certificate } from './certificate.ts'
import { opensslConstraintError } from './openssl-constraints.ts'
import { isLikelyIssuer, type OpensslFacts, opensslFacts } from './openssl-facts.ts'
import { securityBitsOfKey, securityBitsOfSignature } from './security-bits.ts'

// What OpenSSL 3 answers to the same question, and with it every client that is built on it: curl, Python, Ruby, Node.
// It builds one chain only, and takes for each certificate the first issuer that looks right; a signature that does not hold
// afterwards is the end. Written from its behaviour (3.0 to 3.5) and held against `openssl verify` in tests.

export interface OpensslSettings {
  /** `-auth_level`, which TLS takes from its security level: 0 none, 1 at least 80 bits, 2 at least 112. */
  readonly authLevel: 0 | 1 | 2
  /** `-x509_strict`: what RFC 5280 demands of CAs is insisted on. Python's default since 3.13. */
  readonly isStrict: boolean
  /** `-partial_chain`: a trusted certificate ends the chain though it is no root. Python's default since 3.13. */
  readonly takesPartialChain: boolean
}

export interface OpensslQuestion {
  readonly leaf: Certificate
  readonly roots: readonly Certificate[]
  readonly intermediates: readonly Certificate[]
  readonly at: Date
  readonly purpose: 'server' | 'client' | 'any'
  /** Set when the leaf is not valid for the name that is asked for: how names match differs from client to client. */
  readonly nameError?: 'hostname-mismatch' | 'address-mismatch' | undefined
}

/** Number and words of an X509_V_ERR of OpenSSL, and the certificate that it is about. */
export interface OpensslError {
  readonly code: number
  readonly text: string
  readonly depth: number
  readonly certificate: Certificate
}

const errors = {
  'unable-to-get-issuer': [2, 'unable to get issuer certificate'],
  'undecodable-issuer-key': [6, 'unable to decode issuer public key'],
  'signature-failure': [7, 'certificate signature failure'],
  'not-yet-valid': [9, 'certificate is not yet valid'],
  expired: [10, 'certificate has expired'],
  'self-signed-leaf': [18, 'self-signed certificate'],
  'self-signed-in-chain': [19, 'self-signed certificate in certificate chain'],
  'unable-to-get-issuer-locally': [20, 'unable to get local issuer certificate'],
  'chain-too-long': [22, 'certificate chain too long'],
  'path-length': [25, 'path length constraint exceeded'],
  purpose: [26, 'unsuitable certificate purpose'],
  'no-cert-sign': [32, 'key usage does not include certificate signing'],
  'unhandled-critical': [34, 'unhandled critical extension'],
  proxy: [40, 'proxy certificates not allowed, please set the appropriate flag'],
  'permitted-violation': [47, 'permitted subtree violation'],
  'excluded-violation': [48, 'excluded subtree violation'],
  'subtree-minmax': [49, 'name constraints minimum and maximum not supported'],
  'unsupported-constraint-type': [51, 'unsupported name constraint type'],
  'unsupported-name-syntax': [53, 'unsupported or invalid name syntax'],
  'hostname-mismatch': [62, 'hostname mismatch'],
  'address-mismatch': [64, 'IP address mismatch'],
  'leaf-key-too-weak': [66, 'EE certificate key too weak'],
  'ca-key-too-weak': [67, 'CA certificate key too weak'],
  'digest-too-weak': [68, 'CA signature digest algorithm too weak'],
  'invalid-ca': [79, 'invalid CA certificate'],
  'path-length-of-no-ca': [80, 'Path length invalid for non-CA cert'],
  'path-length-without-cert-sign': [81, 'Path length given without key usage keyCertSign'],
  'cert-sign-of-no-ca': [82, 'Key usage keyCertSign invalid for non-CA cert'],
  'issuer-empty': [83, 'Issuer name empty'],
  'subject-empty': [84, 'Subject name empty'],
  'no-authority-key-id': [85, 'Missing Authority Key Identifier'],
  'no-subject-key-id': [86, 'Missing Subject Key Identifier'],
  'names-empty': [87, 'Empty Subject Alternative Name extension'],
  'subject-empty-names-not-critical': [88, 'Subject empty and Subject Alt Name extension not critical'],
  'constraints-not-critical': [89, 'Basic Constraints of CA cert not marked critical'],
  'no-key-usage': [92, 'CA cert does not include key usage extension'],
  'extensions-of-old-version': [93, 'Using cert extension requires at least X509v3'],
} as const satisfies Record<string, readonly [number, string]>

type ErrorName = keyof typeof errors

/** OpenSSL's default of `-verify_depth`, and one more: the leaf is not counted. */
const mostCertificates = 101

/** Returns OpenSSL's error for a chain, or undefined when it accepts it. */
export function findOpensslError(
  question: OpensslQuestion,
  settings: OpensslSettings,
): OpensslError | undefined {
  const leaf = opensslFacts(question.leaf)
  const fail = (name: ErrorName, depth: number, { certificate }: OpensslFacts): OpensslError => {
    const [code, text] = errors[name]
    return { code, text, depth, certificate }
  }
  if (securityBitsOfKey(leaf.certificate) < leastBits(settings)) return fail('leaf-key-too-weak', 0, leaf)
  const built = buildChain(leaf, question, settings)
  const { chain } = built
  if (built.error !== undefined) return fail(built.error, chain.length - 1, chain.at(-1)!)
  for (const check of [extensionsError, authLevelError, nameError, signatureOrTimeError, constraintsError]) {
    const found = check(chain, question, settings)
    if (found !== undefined) return fail(found.name, found.depth, chain[found.depth]!)
  }
  return undefined
}

type OpensslChain = readonly OpensslFacts[]

interface Found {
  readonly name: ErrorName
  readonly depth: number
}

interface BuiltChain {
  readonly chain: OpensslChain
  readonly error?: ErrorName
}

/** Trusted issuers are looked for first at every step; once one is in the chain, only trusted ones follow. */
function buildChain(
  leaf: OpensslFacts,
  question: OpensslQuestion,
  { takesPartialChain }: OpensslSettings,
): BuiltChain {
  const { at } = question
  const trusted = question.roots.map(opensslFacts)
  const untrusted = question.intermediates.map(opensslFacts)
  const chain = [leaf]
  let countUntrusted = 1
  let maySearchUntrusted = true

  for (;;) {
    const last = chain.at(-1)!
    const mayGrow = chain.length <= mostCertificates
    const issuer = mayGrow ? bestIssuer(trusted, last, at) : undefined
    if (issuer !== undefined) {
      // A self-signed certificate must itself be the trusted one: one of the same name may be an impostor.
      const isMimic = last.isSelfSigned && !last.certificate.equals(issuer.certificate)
      if (last.isSelfSigned && !isMimic) countUntrusted = chain.length - 1
      if (!last.isSelfSigned) chain.push(issuer)
      if (!isMimic) {
        maySearchUntrusted = false
        if (issuer.isSelfSigned || takesPartialChain) return { chain }
        continue
      }
    }
    if (!maySearchUntrusted) break
    const next = last.isSelfSigned || !mayGrow ? undefined : bestUntrustedIssuer(untrusted, chain, at)
    if (next === undefined) break
    untrusted.splice(untrusted.indexOf(next), 1)
    chain.push(next)
    countUntrusted = chain.length
  }

  const isTrustedLeaf = takesPartialChain && countUntrusted === chain.length && isAmong(question.roots, leaf)
  if (isTrustedLeaf) return { chain: [...chain] }
  return { chain, error: deadEndError(chain, countUntrusted) }
}

function isAmong(roots: readonly Certificate[], { certificate }: OpensslFacts): boolean {
  return roots.some((root) => root.equals(certificate))
}

function deadEndError(chain: OpensslChain, countUntrusted: number): ErrorName {
  if (chain.length > mostCertificates) return 'chain-too-long'
  if (chain.at(-1)!.isSelfSigned) return chain.length === 1 ? 'self-signed-leaf' : 'self-signed-in-chain'
  return countUntrusted < chain.length ? 'unable-to-get-issuer' : 'unable-to-get-issuer-locally'
}

/** The first that looks right and is valid now; else the one that lasted longest. */
function bestIssuer(
  candidates: readonly OpensslFacts[],
  issued: OpensslFacts,
  at: Date,
): OpensslFacts | undefined {
  let best: OpensslFacts | undefined
  for (const candidate of candidates) {
    if (candidate.x509 === undefined || !isLikelyIssuer(candidate, issued)) continue
    if (timeError(candidate, at) === undefined) return candidate
    if (best === undefined || candidate.certificate.notAfter > best.certificate.notAfter) best = candidate
  }
  return best
}

function bestUntrustedIssuer(
  untrusted: readonly OpensslFacts[],
  chain: OpensslChain,
  at: Date,
): OpensslFacts | undefined {
  const last = chain.at(-1)!
  const mayRepeat = last.isSelfIssued && chain.length === 1
  const candidates = untrusted.filter(
    ({ certificate }) => mayRepeat || !chain.some((one) => one.certificate.equals(certificate)),
  )
  return bestIssuer(candidates, last, at)
}

/** Whole seconds; a certificate is over in the second in which it ends, where Go still takes it. */
function timeError({ certificate }: OpensslFacts, at: Date): 'not-yet-valid' | 'expired' | undefined {
  const now = Math.floor(at.getTime() / 1000)
  if (certificate.notBefore.getTime() / 1000 > now) return 'not-yet-valid'
  return certificate.notAfter.getTime() / 1000 <= now ? 'expired' : undefined
}

/** 1 is a CA by its basic constraints; 3 to 5 by older signs; 0 is none. OpenSSL's own numbers. */
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

function extensionsError(
  chain: OpensslChain,
  { purpose }: OpensslQuestion,
  { isStrict }: OpensslSettings,
): Found | undefined {
  let below = 0
  for (const [depth, facts] of chain.entries()) {
    const name = ((): ErrorName | undefined => {
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
    if (name !== undefined) return { name, depth }
    // RFC 5280 section 4.2.1.9 does not count self-issued ones, and so OpenSSL does not; Go does.
    if (depth > 0 && !facts.isSelfIssued) below++
  }
  return undefined
}

function fitsPurpose(facts: OpensslFacts, purpose: 'server' | 'client', isIssuer: boolean): boolean {
  const { certificate, nsCertType } = facts
  const { keyUsage, extendedKeyUsage } = certificate
  if (facts.isInvalid) return false
  // anyExtendedKeyUsage is not taken for TLS, other than in Go.
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
function strictError(facts: OpensslFacts, isLast: boolean): ErrorName | undefined {
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

const bitsOfLevel = { 0: 0, 1: 80, 2: 112 } as const

function leastBits({ authLevel }: OpensslSettings): number {
  return bitsOfLevel[authLevel]
}

function authLevelError(
  chain: OpensslChain,
  _question: OpensslQuestion,
  settings: OpensslSettings,
): Found | undefined {
  const least = leastBits(settings)
  for (const [depth, { certificate }] of chain.entries()) {
    if (depth > 0 && securityBitsOfKey(certificate) < least) return { name: 'ca-key-too-weak', depth }
    const isAnchor = depth === chain.length - 1
    if (!isAnchor && securityBitsOfSignature(certificate) < least) return { name: 'digest-too-weak', depth }
  }
  return undefined
}

function nameError(_chain: OpensslChain, question: OpensslQuestion): Found | undefined {
  return question.nameError && { name: question.nameError, depth: 0 }
}

/** From the root down: each signature, then each time. The root's own signature is not asked for. */
function signatureOrTimeError(chain: OpensslChain, { at }: OpensslQuestion): Found | undefined {
  for (let depth = chain.length - 1; depth >= 0; depth--) {
    const issued = chain[depth]!
    const issuer = chain[depth + 1]
    if (issuer !== undefined) {
      const { keyUsage } = issuer.certificate
      if (keyUsage !== undefined && !keyUsage.includes('keyCertSign'))
        return { name: 'no-cert-sign', depth: depth + 1 }
      const key = keyOf(issuer.certificate)
      if (key === undefined) return { name: 'undecodable-issuer-key', depth: depth + 1 }
      if (!issued.x509?.verify(key)) return { name: 'signature-failure', depth }
    }
    const name = timeError(issued, at)
    if (name !== undefined) return { name, depth }
  }
  return undefined
}

function keyOf({ publicKey }: Certificate): KeyObject | undefined {
  try {
    return publicKey.keyObject()
  } catch {
    return undefined
  }
}

function constraintsError(chain: OpensslChain): Found | undefined {
  for (let depth = chain.length - 1; depth >= 0; depth--) {
    const named = chain[depth]!
    if (depth !== 0 && named.isSelfIssued) continue
    for (let above = chain.length - 1; above > depth; above--) {
      const constraining = chain[above]!
      if (!constraining.hasConstraints) continue
      const name = opensslConstraintError(named, constraining, depth === 0)
      if (name !== undefined) return { name, depth }
    }
  }
  return undefined
}
