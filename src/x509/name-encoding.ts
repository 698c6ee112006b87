import { tags } from './der.ts'
import { directoryString, elementOf, ia5String, oid, sequence } from './der-writer.ts'
import { Name } from './name.ts'
import { isOidName, oidOf } from './oids.ts'

/** A subject, by the names of its attributes. */
export interface NameDescription {
  /** The groups in Kubernetes. */
  readonly organization?: readonly string[]
  readonly organizationalUnit?: readonly string[]
  /** The user in Kubernetes. */
  readonly commonName?: string
}

export interface AttributeDescription {
  /** Short name ("CN", "O", "DC") or object identifier. */
  readonly type: string
  readonly value: string
}

/** A parsed name, whose bytes are kept; a description; or RDNs in the order of the certificate. */
export type NameInput = Name | NameDescription | readonly (readonly AttributeDescription[])[]

/** Returns the DER of a Name. */
export function encodeName(input: NameInput): Uint8Array {
  if (input instanceof Name) return input.der
  const rdns = isRdns(input) ? input : rdnsOf(input)
  const sets = rdns.map((rdn) => elementOf(tags.set, rdn.map(encodeAttribute).sort(Buffer.compare)))
  return elementOf(tags.sequence, sets)
}

function isRdns(
  input: NameDescription | readonly (readonly AttributeDescription[])[],
): input is readonly (readonly AttributeDescription[])[] {
  return Array.isArray(input)
}

/** The order, and several values of one type in one RDN, match Go's pkix.Name. */
function rdnsOf(name: NameDescription): AttributeDescription[][] {
  const attributes: readonly (readonly [type: string, values: readonly string[] | undefined])[] = [
    ['O', name.organization],
    ['OU', name.organizationalUnit],
    ['CN', name.commonName === undefined ? [] : [name.commonName]],
  ]
  return attributes
    .map(([type, values = []]) => values.map((value) => ({ type, value })))
    .filter((rdn) => rdn.length > 0)
}

// RFC 5280 appendix A.1: the two attributes that are always IA5String.
const ia5Types: ReadonlySet<string> = new Set(['DC', 'emailAddress'])

function encodeAttribute({ type, value }: AttributeDescription): Uint8Array {
  const dotted = isOidName(type) ? oidOf(type) : type
  return sequence(oid(dotted), ia5Types.has(type) ? ia5String(value) : directoryString(value))
}
