import type { KeyObject } from 'node:crypto'
import type { Certificate } from './certificate.ts'
import { opensslConstraintError } from './openssl-constraints.ts'
import { type OpensslErrorName, opensslErrors } from './openssl-errors.ts'
import { type FoundError, findExtensionsError, type OpensslChain } from './openssl-extensions.ts'
import { isLikelyIssuer, type OpensslFacts, opensslFacts } from './openssl-facts.ts'
import { securityBitsOfKey, securityBitsOfSignature } from './security-bits.ts'

// OpenSSL 3's result for the same question, which all clients based on it share: curl, Python, Ruby, Node. OpenSSL builds only
// one chain and selects the first issuer that looks right for each certificate. If that signature is invalid, verification fails.
// Written from its behavior (3.0 to 3.5) and compared with `openssl verify` in tests.

export interface OpensslSettings {
  /** `-auth_level`, which TLS derives from its security level: 0 none, 1 at least 80 bits, 2 at least 112. */
  readonly authLevel: 0 | 1 | 2
  /** `-x509_strict`: enforces what RFC 5280 requires of CAs. Python's default since 3.13. */
  readonly isStrict: boolean
  /** `-partial_chain`: a trusted certificate ends the chain even if it is not a root. Python's default since 3.13. */
  readonly takesPartialChain: boolean
}

export interface OpensslQuestion {
  readonly leaf: Certificate
  readonly roots: readonly Certificate[]
  readonly intermediates: readonly Certificate[]
  readonly at: Date
  readonly purpose: 'server' | 'client' | 'any'
  /** Set when the leaf is not valid for the requested name. Clients differ in how they match names. */
  readonly nameError?: 'hostname-mismatch' | 'address-mismatch' | undefined
}

/** Number and text of an OpenSSL X509_V_ERR, and the certificate that it refers to. */
export interface OpensslError {
  readonly code: number
  readonly text: string
  readonly depth: number
  readonly certificate: Certificate
}

/** OpenSSL's default for `-verify_depth`, plus one for the leaf, which is not counted. */
const mostCertificates = 101

/** Returns OpenSSL's error for a chain, or undefined when it accepts it. */
export function findOpensslError(
  question: OpensslQuestion,
  settings: OpensslSettings,
): OpensslError | undefined {
  const leaf = opensslFacts(question.leaf)
  const fail = ({ name, depth, facts: { certificate } }: FoundError): OpensslError => {
    const [code, text] = opensslErrors[name]
    return { code, text, depth, certificate }
  }
  const least = bitsOfLevel[settings.authLevel]
  if (securityBitsOfKey(leaf.certificate) < least)
    return fail({ name: 'leaf-key-too-weak', depth: 0, facts: leaf })
  const built = buildChain(leaf, question, settings)
  const { chain } = built
  if (built.error !== undefined) return fail(built.error)
  const found =
    findExtensionsError(chain, question.purpose, settings.isStrict) ??
    authLevelError(chain, least) ??
    (question.nameError && { name: question.nameError, depth: 0, facts: leaf }) ??
    signatureOrTimeError(chain, question.at) ??
    constraintsError(chain)
  return found && fail(found)
}

const bitsOfLevel = { 0: 0, 1: 80, 2: 112 } as const

interface BuiltChain {
  readonly chain: OpensslChain
  readonly error?: FoundError
}

/** Looks for trusted issuers first at every step. After a trusted one, all further issuers are trusted ones. */
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
  let last = leaf

  for (;;) {
    const mayGrow = chain.length <= mostCertificates
    const issuer = mayGrow ? bestIssuer(trusted, last, at) : undefined
    if (issuer !== undefined) {
      // A self-signed certificate must itself be the trusted one. One with the same name may be an impostor.
      const isMimic = last.isSelfSigned && !last.certificate.equals(issuer.certificate)
      if (last.isSelfSigned && !isMimic) countUntrusted = chain.length - 1
      if (!last.isSelfSigned) {
        chain.push(issuer)
        last = issuer
      }
      if (!isMimic) {
        maySearchUntrusted = false
        if (issuer.isSelfSigned || takesPartialChain) return { chain }
        continue
      }
    }
    if (!maySearchUntrusted) break
    const next = last.isSelfSigned || !mayGrow ? undefined : bestUntrustedIssuer(untrusted, chain, last, at)
    if (next === undefined) break
    untrusted.splice(untrusted.indexOf(next), 1)
    chain.push(next)
    last = next
    countUntrusted = chain.length
  }

  const isTrustedLeaf =
    takesPartialChain &&
    countUntrusted === chain.length &&
    question.roots.some((root) => root.equals(leaf.certificate))
  if (isTrustedLeaf) return { chain: [...chain] }
  const depth = chain.length - 1
  return { chain, error: { name: deadEndError(chain, last, countUntrusted), depth, facts: last } }
}

function deadEndError(chain: OpensslChain, last: OpensslFacts, countUntrusted: number): OpensslErrorName {
  if (chain.length > mostCertificates) return 'chain-too-long'
  if (last.isSelfSigned) return chain.length === 1 ? 'self-signed-leaf' : 'self-signed-in-chain'
  return countUntrusted < chain.length ? 'unable-to-get-issuer' : 'unable-to-get-issuer-locally'
}

/** The first one that looks right and is currently valid, otherwise the one with the latest expiry. */
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
  last: OpensslFacts,
  at: Date,
): OpensslFacts | undefined {
  const mayRepeat = last.isSelfIssued && chain.length === 1
  const candidates = untrusted.filter(
    ({ certificate }) => mayRepeat || !chain.some((one) => one.certificate.equals(certificate)),
  )
  return bestIssuer(candidates, last, at)
}

/** In whole seconds. OpenSSL treats a certificate as expired in the second of its notAfter; Go still accepts it. */
function timeError({ certificate }: OpensslFacts, at: Date): 'not-yet-valid' | 'expired' | undefined {
  const now = Math.floor(at.getTime() / 1000)
  if (certificate.notBefore.getTime() / 1000 > now) return 'not-yet-valid'
  return certificate.notAfter.getTime() / 1000 <= now ? 'expired' : undefined
}

function authLevelError(chain: OpensslChain, least: number): FoundError | undefined {
  for (const [depth, facts] of chain.entries()) {
    const { certificate } = facts
    if (depth > 0 && securityBitsOfKey(certificate) < least) return { name: 'ca-key-too-weak', depth, facts }
    const isAnchor = depth === chain.length - 1
    if (!isAnchor && securityBitsOfSignature(certificate) < least)
      return { name: 'digest-too-weak', depth, facts }
  }
  return undefined
}

/** From the root down: each signature, then each time. The root's own signature is not checked. */
function signatureOrTimeError(chain: OpensslChain, at: Date): FoundError | undefined {
  for (const [depth, issued] of [...chain.entries()].reverse()) {
    const issuer = chain[depth + 1]
    if (issuer !== undefined) {
      const { keyUsage } = issuer.certificate
      if (keyUsage !== undefined && !keyUsage.includes('keyCertSign'))
        return { name: 'no-cert-sign', depth: depth + 1, facts: issuer }
      const key = keyOf(issuer.certificate)
      if (key === undefined) return { name: 'undecodable-issuer-key', depth: depth + 1, facts: issuer }
      if (!issued.x509?.verify(key)) return { name: 'signature-failure', depth, facts: issued }
    }
    const name = timeError(issued, at)
    if (name !== undefined) return { name, depth, facts: issued }
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

function constraintsError(chain: OpensslChain): FoundError | undefined {
  for (const [depth, facts] of [...chain.entries()].reverse()) {
    if (depth !== 0 && facts.isSelfIssued) continue
    for (const constraining of chain.slice(depth + 1).reverse()) {
      if (!constraining.hasConstraints) continue
      const name = opensslConstraintError(facts, constraining, depth === 0)
      if (name !== undefined) return { name, depth, facts }
    }
  }
  return undefined
}
