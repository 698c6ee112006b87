import { type OpensslFacts, RawName } from './openssl-facts.ts'
import { isWithin } from './openssl-name.ts'

// Name constraints as OpenSSL 3 applies them (RFC 5280 section 4.2.1.10). The differences from Go: directory names are compared,
// self-issued CAs are skipped, hosts of mailboxes and URIs match exactly. A common name is checked if there is no DNS name.

export type ConstraintError =
  | 'permitted-violation'
  | 'excluded-violation'
  | 'subtree-minmax'
  | 'unsupported-constraint-type'
  | 'unsupported-name-syntax'
  | 'unspecified'

const types = { email: 1, dns: 2, directory: 4, uri: 6, ip: 7 } as const

type Match = 'match' | 'no-match' | ConstraintError

/** Returns why the names of a certificate violate the constraints of one above it. */
export function opensslConstraintError(
  named: OpensslFacts,
  constraining: OpensslFacts,
  isLeaf: boolean,
): ConstraintError | undefined {
  const countNames = named.certificate.subject.attributes.length + (named.altNames?.length ?? 0)
  const countSubtrees = constraining.permitted.length + constraining.excluded.length
  if (countNames * countSubtrees > mostComparisons) return 'unspecified'
  for (const name of namesOf(named, isLeaf)) {
    const error = name === 'bad-syntax' ? 'unsupported-name-syntax' : errorOf(name, constraining)
    if (error !== undefined) return error
  }
  return undefined
}

/** OpenSSL's limit, which bounds the time for any pair of certificates. */
const mostComparisons = 2 ** 20

const oidEmailAddress = '1.2.840.113549.1.9.1'
const ia5Tag = '16'

function* namesOf(
  { certificate, altNames = [] }: OpensslFacts,
  isLeaf: boolean,
): Generator<RawName | 'bad-syntax'> {
  const { subject } = certificate
  const { attributes } = subject
  if (attributes.length > 0) yield new RawName(types.directory, subject.der)
  for (const { oid, value, derHex } of attributes) {
    if (oid !== oidEmailAddress) continue
    if (derHex !== undefined && !derHex.startsWith(ia5Tag)) yield 'bad-syntax'
    yield new RawName(types.email, Buffer.from(value, 'latin1'))
  }
  yield* altNames
  if (!isLeaf || altNames.some(({ type }) => type === types.dns)) return
  for (const { type, value } of attributes) {
    if (type === 'CN' && looksLikeHost(value)) yield new RawName(types.dns, Buffer.from(value, 'latin1'))
  }
}

// At least two labels. A label neither begins nor ends with a hyphen.
function looksLikeHost(commonName: string): boolean {
  const label = '[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?'
  return new RegExp(`^${label}(?:\\.${label})+$`).test(commonName.replace(/\0+$/, ''))
}

function errorOf(name: RawName, { permitted, excluded }: OpensslFacts): ConstraintError | undefined {
  let isInside: boolean | undefined
  for (const subtree of permitted) {
    if (subtree.base.type !== name.type) continue
    if (!subtree.hasNoBounds) return 'subtree-minmax'
    if (isInside === true) continue
    const match = matchOf(name, subtree.base)
    if (match !== 'match' && match !== 'no-match') return match
    isInside = match === 'match'
  }
  if (isInside === false) return 'permitted-violation'
  for (const subtree of excluded) {
    if (subtree.base.type !== name.type) continue
    if (!subtree.hasNoBounds) return 'subtree-minmax'
    const match = matchOf(name, subtree.base)
    if (match === 'match') return 'excluded-violation'
    if (match !== 'no-match') return match
  }
  return undefined
}

function matchOf(name: RawName, base: RawName): Match {
  switch (name.type) {
    case types.directory:
      return answer(isWithin(base.rdns, name.rdns))
    case types.dns:
      return answer(isSubdomain(name.lowerText, base.lowerText))
    case types.email:
      return matchMailbox(name, base)
    case types.uri:
      return matchUri(name.lowerText, base.lowerText)
    case types.ip:
      return matchAddress(name.content, base.content)
    default:
      return 'unsupported-constraint-type'
  }
}

function answer(isMatch: boolean): Match {
  return isMatch ? 'match' : 'no-match'
}

function isSubdomain(name: string, constraint: string): boolean {
  if (constraint === '') return true
  const rest = name.length - constraint.length
  if (rest < 0 || (rest > 0 && !constraint.startsWith('.') && name[rest - 1] !== '.')) return false
  return name.endsWith(constraint)
}

function isBelow(name: string, dotted: string): boolean {
  return name.length > dotted.length && name.endsWith(dotted)
}

function matchMailbox(name: RawName, base: RawName): Match {
  const at = name.text.lastIndexOf('@')
  if (at < 0) return 'unsupported-name-syntax'
  const baseAt = base.text.lastIndexOf('@')
  if (baseAt < 0 && base.text.startsWith('.')) return answer(isBelow(name.lowerText, base.lowerText))
  if (baseAt > 0 && name.text.slice(0, at) !== base.text.slice(0, baseAt)) return 'no-match'
  return answer(name.lowerText.slice(at + 1) === base.lowerText.slice(baseAt + 1))
}

function matchUri(name: string, constraint: string): Match {
  const colon = name.indexOf(':')
  if (colon < 0 || name.slice(colon + 1, colon + 3) !== '//') return 'unsupported-name-syntax'
  const behind = name.slice(colon + 3)
  const port = behind.indexOf(':')
  const end = port >= 0 ? port : behind.indexOf('/')
  const host = end < 0 ? behind : behind.slice(0, end)
  if (host === '') return 'unsupported-name-syntax'
  return answer(constraint.startsWith('.') ? isBelow(host, constraint) : host === constraint)
}

function matchAddress(address: Buffer, range: Buffer): Match {
  if (address.length * 2 !== range.length) return 'no-match'
  const differs = (byte: number, i: number): boolean =>
    ((byte ^ range.readUInt8(i)) & range.readUInt8(address.length + i)) !== 0
  return address.some(differs) ? 'no-match' : 'match'
}
