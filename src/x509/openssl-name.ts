import { DerReader, tags } from './der.ts'
import type { Name } from './name.ts'
import { oncePer } from './once-per.ts'

// OpenSSL ignores case, string type and repeated spaces when it compares names (RFC 5280 section 7.1, roughly). Go compares
// bytes.

/** One text per RDN. Texts are equal when OpenSSL considers the RDNs equal. */
export type CanonicalName = readonly string[]

export const canonicalName = oncePer((name: Name): CanonicalName => canonicalRdns(name.der))

export function areSameName(a: Name, b: Name): boolean {
  const [first, second] = [canonicalName(a), canonicalName(b)]
  return first.length === second.length && isWithin(first, second)
}

/** True when the name begins with the whole base: RFC 5280 section 4.2.1.10 for directory names. */
export function isWithin(base: CanonicalName, name: CanonicalName): boolean {
  return base.length <= name.length && base.every((rdn, i) => rdn === name[i])
}

/** Returns the RDNs of a Name in DER. Unreadable names are compared by their bytes. */
export function canonicalRdns(der: Uint8Array): CanonicalName {
  const reader = new DerReader(der, 'name')
  const rdns: string[] = []
  reader.each(tags.sequence, '', () => {
    const attributes: string[] = []
    reader.each(tags.set, '', () => {
      attributes.push(canonicalAttribute(reader))
    })
    rdns.push(attributes.sort().join('\0'))
  })
  return rdns
}

function canonicalAttribute(reader: DerReader): string {
  return reader.within(tags.sequence, '', () => {
    const type = reader.oidOfAnySize('')
    reader.next('')
    const text = textOfLast(reader)
    const value = text === undefined ? `#${Buffer.from(reader.lastElement).toString('hex')}` : folded(text)
    return `${type}=${value}`
  })
}

function textOfLast({ tag, bytes, start, stop }: DerReader): string | undefined {
  switch (tag) {
    case tags.utf8String:
      return bytes.toString('utf8', start, stop)
    case tags.printableString:
    case tags.ia5String:
    case tags.t61String:
    case 0x1a:
      return bytes.toString('latin1', start, stop)
    case tags.bmpString:
      return Buffer.from(bytes.subarray(start, stop)).swap16().toString('utf16le')
    default:
      return undefined
  }
}

function folded(text: string): string {
  return text
    .replaceAll(/[ \t\n\v\f\r]+/g, ' ')
    .replaceAll(/^ | $/g, '')
    .replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
