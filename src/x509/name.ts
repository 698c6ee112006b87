import { type DerReader, sameOctets, tagName, tags } from './der.ts'
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

/** A distinguished name: subject or issuer. */
export class Name {
  /** In the order of the certificate, whatever relative distinguished name they are of. */
  readonly attributes: readonly NameAttribute[]
  /** Undefined where each relative distinguished name is one attribute, as nearly everywhere. */
  private readonly mixedRdns: readonly (readonly NameAttribute[])[] | undefined
  private readonly bytes: Buffer
  private readonly start: number
  private readonly stop: number
  private cachedText: string | undefined
  private cachedKey: string | undefined

  constructor(bytes: Buffer, start: number, stop: number, rdns: readonly (readonly NameAttribute[])[]) {
    this.bytes = bytes
    this.start = start
    this.stop = stop
    const areSingle = rdns.every((rdn) => rdn.length === 1)
    this.attributes = areSingle ? rdns.map((rdn) => rdn[0]!) : rdns.flat()
    this.mixedRdns = areSingle ? undefined : rdns
    this.cachedText = undefined
    this.cachedKey = undefined
  }

  get der(): Uint8Array {
    return this.bytes.subarray(this.start, this.stop)
  }

  /** In the order of the certificate; one inner list is a relative distinguished name, often of one attribute. */
  get rdns(): readonly (readonly NameAttribute[])[] {
    return this.mixedRdns ?? this.attributes.map((attribute) => [attribute])
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

  /** The last common name, which is the one that Go and Kubernetes take as the user. Values that are no string do not count. */
  get commonName(): string | undefined {
    let found: string | undefined
    for (const { oid, value, derHex } of this.attributes)
      if (oid === oidCommonName && derHex === undefined) found = value
    return found
  }

  /** All organizations, which Kubernetes takes as groups, in the order of the certificate; only strings, as Go reads them. */
  get organization(): readonly string[] {
    let found: string[] | undefined
    for (const { oid, value, derHex } of this.attributes) {
      if (oid !== oidOrganization || derHex !== undefined) continue
      if (found === undefined) found = [value]
      else found.push(value)
    }
    return found ?? none
  }

  get isEmpty(): boolean {
    return this.attributes.length === 0 && this.mixedRdns === undefined
  }

  /** True when both have the same octets, which is how Go matches issuer and subject. */
  equals(other: Name): boolean {
    if (this === other) return true
    return sameOctets(this.bytes, this.start, this.stop, other.bytes, other.start, other.stop)
  }
}

/**
 * Reads a Name (RFC 5280 section 4.1.2.4). Attribute values are character strings, as Go wants them in certificates;
 * `anyValue` also takes other types, as it does in requests.
 */
export function readName(reader: DerReader, field: string, anyValue = false): Name {
  const outer = reader.enter(tags.sequence, field)
  const path = reader.path
  reader.path = `${path}${field}.`
  const name = nameWithin(reader, anyValue)
  reader.path = path
  reader.leave(outer)
  return name
}

const repeatedNames = new Repeated((reader) => nameWithin(reader, false))

/** The same for a name that many certificates have: their issuer's. All with the same octets share one Name. */
export function readRepeatedName(reader: DerReader, field: string): Name {
  const outer = reader.enter(tags.sequence, field)
  const path = reader.path
  reader.path = `${path}${field}.`
  const name = repeatedNames.of(reader)
  reader.path = path
  reader.leave(outer)
  return name
}

/** The Name whose SEQUENCE the reader is in. */
function nameWithin(reader: DerReader, anyValue: boolean): Name {
  const { bytes, header, end } = reader
  const rdns: NameAttribute[][] = []
  while (!reader.atEnd) rdns.push(readRdn(reader, anyValue))
  return new Name(bytes, header, end, rdns)
}

function readRdn(reader: DerReader, anyValue: boolean): NameAttribute[] {
  const outer = reader.enter(tags.set, 'rdn')
  const attributes: NameAttribute[] = []
  while (!reader.atEnd) attributes.push(readAttribute(reader, anyValue))
  reader.leave(outer)
  return settled(attributes)
}

function readAttribute(reader: DerReader, anyValue: boolean): NameAttribute {
  const outer = reader.enter(tags.sequence, 'attribute')
  const oid = reader.oid('type')
  const type = attributeTypeName(oid)
  const tag = reader.next('value')
  const { bytes, header, start, stop } = reader
  reader.leave(outer)
  if (isStringTag(tag)) {
    const value = readString(bytes, tag, start, stop)
    if (value === undefined) reader.fail(type, `octets that are no ${tagName(tag)}`, start)
    return type === oid
      ? { oid, type, value, derHex: bytes.toString('hex', header, stop) }
      : { oid, type, value }
  }
  if (!anyValue) reader.fail(type, `${tagName(tag)} is no string type that Go reads in names`, header)
  checkValue(reader, tag, header, stop, type)
  const derHex = bytes.toString('hex', header, stop)
  const value = tag === tags.universalString ? readUniversal(bytes, start, stop) : undefined
  return { oid, type, value: value ?? `#${derHex}`, derHex }
}

/** Values that are no strings are allowed in requests, but must be what their types say: Go decodes them and shows nothing. */
function checkValue(reader: DerReader, tag: number, header: number, stop: number, field: string): void {
  const { offset, end } = reader
  reader.offset = header
  reader.end = stop
  if (tag === tags.boolean) reader.boolean(field)
  else if (tag === tags.integer) reader.int64(field)
  else if (tag === tags.bitString) reader.bitString(field)
  else if (tag === tags.oid) reader.oid(field)
  else if (tag === tags.utcTime || tag === tags.generalizedTime) readTime(reader, field)
  reader.offset = offset
  reader.end = end
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
