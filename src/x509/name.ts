import { DerReader, sameOctets, tagName, tags } from './der.ts'
import { settled } from './lists.ts'
import { attributeTypeName } from './oids.ts'
import { Repeated } from './repeated.ts'
import { isStringTag, readString, readUniversal } from './strings.ts'
import { readTime } from './time.ts'

export interface NameAttribute {
  readonly oid: string
  /** Short name of RFC 4514 ("CN", "O") or the object identifier. */
  readonly type: string
  /** As it is in the certificate; control and bidirectional characters are still there. */
  readonly value: string
  /** DER of the value in hexadecimal, for types without short name and values that are no text. */
  readonly derHex?: string
}

const none: readonly string[] = Object.freeze([])
const oidCommonName = '2.5.4.3'
const oidOrganization = '2.5.4.10'
/** Of Kubernetes: the UID of the user that a client certificate is for (k8s.io/apimachinery pkg/util/asn1). */
const oidUserUid = '1.3.6.1.4.1.57683.2'

/** A distinguished name: subject or issuer. */
export class Name {
  /** The last common name, which is the one that Go and Kubernetes take as the user. Values that are no string do not count. */
  readonly commonName: string | undefined
  /** All organizations, which Kubernetes takes as groups, in the order of the certificate; only strings, as Go reads them. */
  readonly organization: readonly string[]
  private readonly bytes: Buffer
  private readonly start: number
  private readonly content: number
  private readonly stop: number
  private cachedRdns: readonly (readonly NameAttribute[])[] | undefined
  private cachedText: string | undefined
  private cachedKey: string | undefined

  /** Reads the name whose SEQUENCE the reader is in. */
  constructor(reader: DerReader, anyValue: boolean) {
    this.bytes = reader.bytes
    this.start = reader.header
    this.content = reader.offset
    this.stop = reader.end
    const kubernetes = new KubernetesNames()
    while (!reader.atEnd) checkRdn(reader, anyValue, kubernetes)
    this.commonName = kubernetes.user
    this.organization = kubernetes.groups
  }

  get der(): Uint8Array {
    return this.bytes.subarray(this.start, this.stop)
  }

  /** In the order of the certificate; one inner list is a relative distinguished name, often of one attribute. */
  get rdns(): readonly (readonly NameAttribute[])[] {
    this.cachedRdns ??= this.readAgain()
    return this.cachedRdns
  }

  /** In the order of the certificate, whatever relative distinguished name they are of. */
  get attributes(): readonly NameAttribute[] {
    return this.rdns.flat()
  }

  /** The user's UIDs, of which API servers since 1.33 take one and refuse two; undefined where there is none. */
  get userUids(): readonly string[] | undefined {
    const uids = this.attributes.filter(({ oid }) => oid === oidUserUid).map(({ value }) => value)
    return uids.length === 0 ? undefined : uids
  }

  // Everything was checked when the name was read. A table of 10,000 certificates shows two attributes of each.
  private readAgain(): readonly (readonly NameAttribute[])[] {
    const reader = new DerReader(this.bytes, 'name', this.bytes.length)
    reader.offset = this.content
    reader.end = this.stop
    const rdns: (readonly NameAttribute[])[] = []
    while (!reader.atEnd) rdns.push(readRdn(reader))
    return settled(rdns)
  }

  /** The octets as a string, for maps: the same for names that are equal, and for no others. */
  get key(): string {
    this.cachedKey ??= this.bytes.toString('latin1', this.start, this.stop)
    return this.cachedKey
  }

  /** RFC 4514 text: last relative name first, special characters escaped. Not safe for a terminal as it is. */
  get text(): string {
    this.cachedText ??= this.rdns
      .map((rdn) => rdn.map(attributeText).join('+'))
      .reverse()
      .join(',')
    return this.cachedText
  }

  get isEmpty(): boolean {
    return this.content === this.stop
  }

  /** True when both have the same octets, which is how Go matches issuer and subject. */
  equals(other: Name): boolean {
    if (this === other) return true
    return sameOctets(this.bytes, this.start, this.stop, other.bytes, other.start, other.stop)
  }
}

/** A name as reports show it. */
export interface NameFields {
  text: string
  commonName?: string
  organization: string[]
  userUids?: string[]
}

/** Returns what reports show of a name. */
export function nameFields({ text, commonName, organization, userUids }: Name): NameFields {
  return {
    text,
    ...(commonName === undefined ? {} : { commonName }),
    organization: [...organization],
    ...(userUids && { userUids: [...userUids] }),
  }
}

/**
 * Reads a Name (RFC 5280 section 4.1.2.4). Attribute values are character strings, as Go wants them in certificates;
 * `anyValue` also takes other types, as it does in requests.
 */
export function readName(reader: DerReader, field: string, anyValue = false): Name {
  return inName(reader, field, () => new Name(reader, anyValue))
}

/** Returns a name that stands alone, as servers send those of their clients' CAs. Throws KCERT_X509_MALFORMED. */
export function parseName(der: Uint8Array): Name {
  return readName(new DerReader(der, 'name'), 'name', true)
}

const repeatedNames = new Repeated((reader) => new Name(reader, false))

/** The same for a name that many certificates have: their issuer's. All with the same octets share one Name. */
export function readRepeatedName(reader: DerReader, field: string): Name {
  return inName(reader, field, () => repeatedNames.of(reader))
}

/** Reads the SEQUENCE of a name; errors in it name the field. */
function inName(reader: DerReader, field: string, read: () => Name): Name {
  const outer = reader.enter(tags.sequence, field)
  const { path } = reader
  reader.path = `${path}${field}.`
  const name = read()
  reader.path = path
  reader.leave(outer)
  return name
}

/** What Kubernetes takes from a subject. */
class KubernetesNames {
  user: string | undefined = undefined
  groups: readonly string[] = none
  private own: string[] | undefined = undefined

  /** One list for all certificates of one organization; a list of its own for a subject with several. */
  addGroup(group: readonly [string]): void {
    if (this.groups === none) this.groups = group
    else if (this.own === undefined) this.groups = this.own = [...this.groups, group[0]]
    else this.own.push(group[0])
  }
}

/** Reads a relative distinguished name and refuses what is wrong with it. */
function checkRdn(reader: DerReader, anyValue: boolean, found: KubernetesNames): void {
  const outer = reader.enter(tags.set, 'rdn')
  while (!reader.atEnd) checkAttribute(reader, anyValue, found)
  reader.leave(outer)
}

function checkAttribute(reader: DerReader, anyValue: boolean, found: KubernetesNames): void {
  const outer = reader.enter(tags.sequence, 'attribute')
  const oid = reader.oid('type')
  if (oid === oidOrganization && isStringTag(reader.bytes[reader.offset] ?? 0)) {
    found.addGroup(organizations.of(reader))
  } else {
    const value = checkedValue(reader, oid, anyValue)
    if (oid === oidCommonName && value !== undefined) found.user = value
  }
  reader.leave(outer)
}

// Many certificates are of one organization.
const organizations = new Repeated((reader): readonly [string] => [
  checkedValue(reader, oidOrganization, false)!,
])

/** The value of an attribute when it is a string. */
function checkedValue(reader: DerReader, oid: string, anyValue: boolean): string | undefined {
  const tag = reader.next('value')
  const { bytes, header, start, stop } = reader
  if (isStringTag(tag)) {
    const value = readString(bytes, tag, start, stop)
    if (value === undefined) reader.fail(attributeTypeName(oid), `octets that are no ${tagName(tag)}`, start)
    return value
  }
  if (!anyValue) {
    const reason = `${tagName(tag)} is no string type that Go reads in names`
    reader.fail(attributeTypeName(oid), reason, header)
  }
  checkValue(reader, tag, header, stop, attributeTypeName(oid))
  return undefined
}

/** One that was checked before. */
function readRdn(reader: DerReader): NameAttribute[] {
  const outer = reader.enter(tags.set, 'rdn')
  const attributes: NameAttribute[] = []
  while (!reader.atEnd) attributes.push(readAttribute(reader))
  reader.leave(outer)
  return settled(attributes)
}

function readAttribute(reader: DerReader): NameAttribute {
  const outer = reader.enter(tags.sequence, 'attribute')
  const oid = reader.oid('type')
  const type = attributeTypeName(oid)
  const tag = reader.next('value')
  const { bytes, header, start, stop } = reader
  reader.leave(outer)
  const derHex = bytes.toString('hex', header, stop)
  if (isStringTag(tag)) {
    const value = readString(bytes, tag, start, stop) ?? ''
    return type === oid ? { oid, type, value, derHex } : { oid, type, value }
  }
  const value = tag === tags.universalString ? readUniversal(bytes, start, stop) : undefined
  return { oid, type, value: value ?? `#${derHex}`, derHex }
}

/** Values that are no strings are allowed in requests, but must be what their types say: Go decodes them and shows nothing. */
function checkValue(reader: DerReader, tag: number, header: number, stop: number, field: string): void {
  reader.between(header, stop, () => {
    if (tag === tags.boolean) reader.boolean(field)
    else if (tag === tags.integer) reader.int64(field)
    else if (tag === tags.bitString) reader.bitString(field)
    else if (tag === tags.oid) reader.oid(field)
    else if (tag === tags.utcTime || tag === tags.generalizedTime) readTime(reader, field)
  })
}

function attributeText({ type, oid, value, derHex }: NameAttribute): string {
  // RFC 4514 section 2.4: a type without short name shows the encoding of its value.
  if (type === oid && derHex !== undefined) return `${oid}=#${derHex}`
  return value === `#${derHex}` ? `${type}=${value}` : `${type}=${escapeValue(value)}`
}

const needsEscape = /[\0"+,;<>\\]|^[ #]| $/

/** RFC 4514 section 2.4. */
function escapeValue(value: string): string {
  if (!needsEscape.test(value)) return value
  return value
    .replaceAll(/["+,;<>\\]/g, (c) => `\\${c}`)
    .replaceAll('\0', '\\00')
    .replace(/^[ #]/, (c) => `\\${c}`)
    .replace(/(?<!^\\) $/, '\\ ')
}

/** Returns what API servers since Kubernetes 1.33 answer with 401 in the user UIDs of a client certificate; undefined where nothing is wrong. */
export function userUidFault({ userUids: uids = [] }: Pick<Name, 'userUids'>): string | undefined {
  if (uids.length > 1) return `${uids.length} user UIDs: ${uids.map((uid) => JSON.stringify(uid)).join(', ')}`
  return uids[0] === '' ? 'an empty user UID' : undefined
}
