import { DerReader, sameBytes, tagName, tags } from './der.ts'
import type { NameFields } from './json-fields.ts'
import { settled } from './lists.ts'
import { attributeTypeName } from './oids.ts'
import { Repeated } from './repeated.ts'
import { isStringTag, readString, readUniversal } from './strings.ts'
import { readTime } from './time.ts'

export interface NameAttribute {
  readonly oid: string
  /** Short name of RFC 4514 ("CN", "O") or the object identifier. */
  readonly type: string
  /** As in the certificate, including control and bidirectional characters. */
  readonly value: string
  /** DER of the value in hexadecimal, for types without a short name and values that are not text. */
  readonly derHex?: string
}

const oidCommonName = '2.5.4.3'
const oidOrganization = '2.5.4.10'
/** Kubernetes: the UID of the user that a client certificate identifies (k8s.io/apimachinery pkg/util/asn1). */
const oidUserUid = '1.3.6.1.4.1.57683.2'

/** A distinguished name: subject or issuer. */
export class Name {
  /** The last common name, which Go and Kubernetes use as the user. Values that are not strings are ignored. */
  readonly commonName: string | undefined
  /** All organizations, which Kubernetes uses as groups, in the order of the certificate. Only strings, as in Go. */
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
    let commonName: string | undefined
    const organization: string[] = []
    while (!reader.atEnd) {
      const rdn = reader.enter(tags.set, 'rdn')
      while (!reader.atEnd) {
        const { oid, value, derHex } = readAttribute(reader, anyValue)
        if (oid === oidCommonName && derHex === undefined) commonName = value
        if (oid === oidOrganization && derHex === undefined) organization.push(value)
      }
      reader.leave(rdn)
    }
    this.commonName = commonName
    this.organization = settled(organization)
  }

  get der(): Uint8Array {
    return this.bytes.subarray(this.start, this.stop)
  }

  /** In the order of the certificate. Each inner list is an RDN, usually with one attribute. */
  get rdns(): readonly (readonly NameAttribute[])[] {
    this.cachedRdns ??= this.readAgain()
    return this.cachedRdns
  }

  /** In the order of the certificate, across RDNs. */
  get attributes(): readonly NameAttribute[] {
    return this.rdns.flat()
  }

  /** The user's UIDs; undefined when there are none. API servers since 1.33 accept one and reject two. */
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
    while (!reader.atEnd) {
      const attributes: NameAttribute[] = []
      reader.each(tags.set, 'rdn', () => {
        attributes.push(readAttribute(reader, true))
      })
      rdns.push(settled(attributes))
    }
    return settled(rdns)
  }

  /** The bytes as a string, for maps: equal names have the same key, different names have different keys. */
  get key(): string {
    this.cachedKey ??= this.bytes.toString('latin1', this.start, this.stop)
    return this.cachedKey
  }

  /** RFC 4514 text: last RDN first, special characters escaped. Escape it again before printing it to a terminal. */
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

  /** True when both have the same bytes. Go matches issuer and subject in this way. */
  equals(other: Name): boolean {
    if (this === other) return true
    return sameBytes(this.bytes, this.start, this.stop, other.bytes, other.start, other.stop)
  }
}

/** Returns the fields of a name that reports show. */
export function nameFields({ text, commonName, organization, userUids }: Name): NameFields {
  return {
    text,
    ...(commonName === undefined ? {} : { commonName }),
    organization: [...organization],
    ...(userUids && { userUids: [...userUids] }),
  }
}

/**
 * Returns a Name (RFC 5280 section 4.1.2.4). Attribute values are character strings, as Go requires in certificates. With
 * `anyValue`, other types are accepted, as Go does in requests.
 */
export function readName(reader: DerReader, field: string, anyValue = false): Name {
  return inName(reader, field, () => new Name(reader, anyValue))
}

/** Returns a single name, as servers send for the CAs of their clients. Throws KCERT_X509_MALFORMED. */
export function parseName(der: Uint8Array): Name {
  return readName(new DerReader(der, 'name'), 'name', true)
}

const repeatedNames = new Repeated((reader) => new Name(reader, false))

/** Returns a name that many certificates share, such as their issuer's. Names with the same bytes share one Name. */
export function readRepeatedName(reader: DerReader, field: string): Name {
  return inName(reader, field, () => repeatedNames.of(reader))
}

/** Enters the SEQUENCE of a name. Errors in it include the field. */
function inName(reader: DerReader, field: string, read: () => Name): Name {
  const outer = reader.enter(tags.sequence, field)
  const { path } = reader
  reader.path = `${path}${field}.`
  const name = read()
  reader.path = path
  reader.leave(outer)
  return name
}

/** Returns an attribute, or rejects a malformed one. */
function readAttribute(reader: DerReader, anyValue: boolean): NameAttribute {
  const outer = reader.enter(tags.sequence, 'attribute')
  const oid = reader.oid('type')
  const type = attributeTypeName(oid)
  const tag = reader.next('value')
  const { bytes, header, start, stop } = reader
  let value: string | undefined
  if (isStringTag(tag)) {
    value =
      readString(bytes, tag, start, stop) ??
      reader.fail(type, `bytes that are not a valid ${tagName(tag)}`, start)
  } else {
    if (!anyValue) reader.fail(type, `${tagName(tag)} is not a string type that Go reads in names`, header)
    checkValue(reader, tag, header, stop, type)
    if (tag === tags.universalString) value = readUniversal(bytes, start, stop)
  }
  reader.leave(outer)
  if (value !== undefined && type !== oid && isStringTag(tag)) return { oid, type, value }
  const derHex = bytes.toString('hex', header, stop)
  return { oid, type, value: value ?? `#${derHex}`, derHex }
}

/** Values that are not strings are allowed in requests, but must match their types: Go decodes them and shows nothing. */
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
  // RFC 4514 section 2.4: a type without a short name shows the encoding of its value.
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

/**
 * Returns why API servers since Kubernetes 1.33 answer 401 to a client certificate with these user UIDs; undefined if they accept
 * it.
 */
export function userUidFault({ userUids: uids = [] }: Pick<Name, 'userUids'>): string | undefined {
  if (uids.length > 1) return `${uids.length} user UIDs: ${uids.map((uid) => JSON.stringify(uid)).join(', ')}`
  return uids[0] === '' ? 'an empty user UID' : undefined
}
