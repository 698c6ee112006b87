import type { Certificate } from './certificate.ts'
import type { ChainQuestion } from './chain.ts'
import { hostAddress, isNamedByCommonNameOnly, withoutBrackets } from './hostname.ts'
import type { ConstraintViolation } from './name-constraints.ts'
import { nameOfOid } from './oids.ts'
import type { DeadEnd, Unfitness } from './path.ts'
import type { Refusal } from './refusal.ts'
import { uriHost } from './syntax.ts'

// The exact error that a Go program logs for a rejected chain. Operators see this text and search for it. A test compares every
// error with Go's.

/** Returns what Go's crypto/x509 would log, for example "x509: certificate signed by unknown authority". */
export function goError({ go }: Refusal, { at }: ChainQuestion): string {
  switch (go.kind) {
    case 'limit':
      return 'x509: signature check attempts limit reached while verifying certificate chain'
    case 'host':
      return hostError(go.certificate, go.name)
    case 'unfit':
      return unfitError(go.certificate, go.reason, at)
    case 'usage':
      return 'x509: certificate specifies an incompatible key usage'
    case 'leaf-key':
      return leafKeyError(go.certificate)
    case 'rsa-too-long':
      return `tls: ${go.purpose} sent certificate containing RSA key larger than 8192 bits`
    case 'user':
      return go.uids.length > 1
        ? `expected 1 UID, but found multiple: [${go.uids.join(' ')}]`
        : 'UID cannot be an empty string'
    case 'no-chain':
      return noChainError(go.badUsage, go.badPolicies)
    case 'constraint':
      return `x509: a root or intermediate certificate is not authorized to sign for this name: ${constraintError(go.violation)}`
    case 'unknown-authority':
      return `x509: certificate signed by unknown authority${go.hint === undefined ? '' : hintWords(go.hint, at)}`
  }
}

/** The program that uses the leaf fails first: when it reads the key, or when it signs a handshake. */
function leafKeyError(leaf: Certificate): string {
  const { algorithm } = leaf.publicKey
  if (algorithm === 'RSA') return `tls: failed to sign handshake: ${keyError(leaf)}`
  return nameOfOid(algorithm) === 'X25519'
    ? 'tls: found unknown private key type in PKCS#8 wrapping'
    : 'tls: failed to parse private key'
}

function unfitError(certificate: Certificate, reason: Unfitness, at: Date): string {
  switch (reason) {
    case 'critical-extension':
      return 'x509: unhandled critical extension'
    case 'expired':
      return `${validityError} current time ${goTime(at)} is after ${goTime(certificate.notAfter)}`
    case 'not-yet-valid':
      return `${validityError} current time ${goTime(at)} is before ${goTime(certificate.notBefore)}`
    case 'path-length':
      return 'x509: too many intermediates for path length constraint'
    case 'not-a-ca':
    case 'no-cert-sign':
      return 'x509: certificate is not authorized to sign other certificates'
  }
}

const validityError = 'x509: certificate has expired or is not yet valid:'

function goTime(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z')
}

function noChainError(badUsage: number, badPolicies: number): string {
  const details = [
    ...(badUsage > 0 ? [`${badUsage} candidate chains with incompatible key usage`] : []),
    `${badPolicies} candidate chains with invalid policies`,
  ]
  return `x509: no valid chains built: ${details.join(', ')}`
}

// Keeps long lists out of the error.
const mostNames = 100

function hostError(certificate: Certificate, name: string): string {
  const address = hostAddress(name)
  const host = address === undefined ? name : withoutBrackets(name)
  if (isNamedByCommonNameOnly(certificate, host)) {
    return 'x509: certificate relies on legacy Common Name field, use SANs instead'
  }
  const { ip, dns } = certificate.subjectAltNames
  if (address !== undefined && ip.length === 0) {
    return `x509: cannot validate certificate for ${host} because it doesn't contain any IP SANs`
  }
  const names = address === undefined ? dns : ip
  if (names.length >= mostNames) {
    const kind = address === undefined ? 'names' : 'IP SANs'
    return `x509: certificate is valid for ${names.length} ${kind}, but none matched ${host}`
  }
  const valid = names.join(', ')
  return valid === ''
    ? `x509: certificate is not valid for any names, but wanted to match ${host}`
    : `x509: certificate is valid for ${valid}, not ${host}`
}

function constraintError({ kind, name, excludedBy, unusable }: ConstraintViolation): string {
  const quoted = goQuoted(name)
  switch (unusable) {
    case 'no-host':
      return `URI with empty host (${quoted}) cannot be matched against constraints`
    case 'address':
      return `URI with IP (${quoted}) cannot be matched against constraints`
    case 'bad-port':
      return `cannot parse URI host ${goQuoted(uriHost(name))}: address ${uriHost(name)}: too many colons in address`
    case 'not-a-name':
      if (kind === 'DNS name') return `x509: cannot parse dnsName ${quoted}`
      return kind === 'URI'
        ? `x509: internal error: URI SAN ${quoted} failed to parse`
        : `cannot parse rfc822Name ${quoted}`
  }
  if (excludedBy === undefined) return `${kind} ${quoted} is not permitted by any constraint`
  return `${kind} ${quoted} is excluded by constraint ${goQuoted(excludedBy)}`
}

function hintWords(hint: DeadEnd, at: Date): string {
  const { subject, serialNumber } = hint.candidate
  const name = subject.commonName || subject.organization[0] || `serial:${BigInt(`0x${serialNumber}`)}`
  return ` (possibly because of ${goQuoted(candidateError(hint, at))} while trying to verify candidate authority certificate ${goQuoted(name)})`
}

function candidateError({ issued, candidate, reason, among }: DeadEnd, at: Date): string {
  switch (reason) {
    case 'algorithm-refused':
      return `x509: cannot verify signature: insecure algorithm ${goAlgorithms[issued.signatureAlgorithm] ?? '?'}`
    case 'algorithm-unsupported':
      return issued.signatureAlgorithm === 'dsa-with-sha1'
        ? 'x509: cannot verify signature: insecure algorithm DSA-SHA1'
        : unimplemented
    case 'key-mismatch':
      return `x509: signature algorithm specifies an ${keyOfSignature(issued)} public key, but have public key of type ${goKeyTypes[candidate.publicKey.algorithm]}`
    case 'key-unsupported':
    case 'cannot-be-checked':
      return keyError(candidate)
    case 'bad-signature':
      return signatureErrors[candidate.publicKey.algorithm] ?? unimplemented
    case 'not-a-ca':
    case 'no-cert-sign':
      // The check whether its key may sign passes a version 1 certificate. Only the check of intermediates rejects it.
      return candidate.basicConstraints === undefined && candidate.version < 3 && among === 'intermediates'
        ? unfitError(candidate, reason, at)
        : 'x509: invalid signature: parent certificate cannot sign this kind of certificate'
    default:
      return unfitError(candidate, reason, at)
  }
}

const unimplemented = 'x509: cannot verify signature: algorithm unimplemented'

const goAlgorithms: Readonly<Record<string, string>> = {
  md5WithRSAEncryption: 'MD5-RSA',
  sha1WithRSAEncryption: 'SHA1-RSA',
  sha1WithRSASignature: 'SHA1-RSA',
  'ecdsa-with-SHA1': 'ECDSA-SHA1',
}

const goKeyTypes: Readonly<Record<string, string>> = {
  RSA: '*rsa.PublicKey',
  ECDSA: '*ecdsa.PublicKey',
  Ed25519: 'ed25519.PublicKey',
}

const signatureErrors: Readonly<Record<string, string>> = {
  RSA: 'crypto/rsa: verification error',
  ECDSA: 'x509: ECDSA verification failure',
  Ed25519: 'x509: Ed25519 verification failure',
}

function keyOfSignature({ signatureAlgorithm }: Certificate): string {
  if (signatureAlgorithm.startsWith('ecdsa')) return 'ECDSA'
  return signatureAlgorithm === 'Ed25519' ? 'Ed25519' : 'RSA'
}

function keyError({ publicKey }: Certificate): string {
  const { algorithm, bits = 0, rsaExponent = 0 } = publicKey
  if (algorithm !== 'RSA') return unimplemented
  if (bits < 1024) {
    return `crypto/rsa: ${bits}-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)`
  }
  if (rsaExponent < 2) return 'crypto/rsa: public exponent too small or negative'
  return rsaExponent % 2 === 0
    ? 'crypto/rsa: public exponent is even'
    : 'crypto/rsa: public exponent too large'
}

const shortEscapes: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '"': '\\"',
  '\\': '\\\\',
}

/** Returns the text in double quotes, as Go's %q writes it. */
function goQuoted(text: string): string {
  const escaped = text.replaceAll(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (character) => {
    const short = shortEscapes[character]
    if (short !== undefined) return short
    // biome-ignore lint/style/noNonNullAssertion: a match is one character
    const point = character.codePointAt(0)!
    if (point < 0x80) return `\\x${point.toString(16).padStart(2, '0')}`
    return point > 0xffff
      ? `\\U${point.toString(16).padStart(8, '0')}`
      : `\\u${point.toString(16).padStart(4, '0')}`
  })
  return `"${escaped}"`
}
