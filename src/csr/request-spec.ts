import type { KeyObject } from 'node:crypto'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Usage } from '../pki/usages.ts'
import { formatIp, parseIp } from '../x509/ip.ts'
import { type AltNamesDescription, createRequest } from '../x509/issuing.ts'
import type { NameInput } from '../x509/name-encoding.ts'
import type { KeyType } from '../x509/new-key.ts'
import { isDnsName, isNumericName, isSubdomain } from '../x509/plain-names.ts'
import { parseMailbox, uriDefect } from '../x509/syntax.ts'
import { quoted } from './quoting.ts'

/** A request before its creation: its content, and its signer. */
export interface RequestSpec {
  readonly subject: NameInput
  readonly altNames: Required<AltNamesDescription>
  readonly keyType: KeyType
  readonly objectName: string
  /** Undefined if not given. */
  readonly signerName?: string
  readonly usages?: readonly string[]
  /** The purpose of the certificate, when usages are not given: they depend on the key. */
  readonly purpose?: Extract<Usage, 'client auth' | 'server auth'>
  readonly expirationSeconds?: number
  /** The hash of the signature with an RSA key, when it differs from that of client-go and cfssl. */
  readonly rsaHash?: 'sha256'
  /** Notes for the requester. */
  readonly notices: readonly string[]
}

export const noAltNames: Required<AltNamesDescription> = { dns: [], ip: [], email: [], uri: [] }

export const defaultKeyType: KeyType = { algorithm: 'ECDSA', curve: 'P-256' }

/** Returns the DER of the request, signed with the key. */
export function makeRequest({ subject, altNames, rsaHash }: RequestSpec, key: KeyObject): Uint8Array {
  return createRequest({ subject, subjectAltNames: altNames, hash: rsaHash ?? usualRsaHash(key) }, key)
}

// client-go and cfssl use a longer hash for a longer key.
function usualRsaHash(key: KeyObject): 'sha256' | 'sha384' | 'sha512' {
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
  if (bits >= 4096) return 'sha512'
  return bits >= 3072 ? 'sha384' : 'sha256'
}

/** SANs as flags give them: all strings, kinds by flag. */
export type NamedAltNames = { readonly [Kind in keyof AltNamesDescription]?: readonly string[] | undefined }

/**
 * Returns SANs, each once, with addresses in Go's spelling. Throws KCERT_USAGE for an invalid name, which would yield a
 * certificate that no client accepts.
 */
export function altNamesOf(names: NamedAltNames): Required<AltNamesDescription> {
  const { dns = [], ip = [], email = [], uri = [] } = names
  return {
    dns: unique(dns.map(checkedDns)),
    ip: unique(ip.map(checkedIp)),
    email: unique(email.map(checkedEmail)),
    uri: unique(uri.map(checkedUri)),
  }
}

/** Returns the names of both, each once. */
export function joinedAltNames(
  one: Required<AltNamesDescription>,
  other: Required<AltNamesDescription>,
): Required<AltNamesDescription> {
  const join = (kind: keyof AltNamesDescription): string[] => unique([...one[kind], ...other[kind]])
  return { dns: join('dns'), ip: join('ip'), email: join('email'), uri: join('uri') }
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)]
}

function checkedDns(name: string): string {
  if (parseIp(name) !== undefined) throw wrongName('--dns', name, 'is an IP address', `--ip ${name}`)
  const plain = name.startsWith('*.') ? name.slice(2) : name
  const isNumbers = isNumericName(plain)
  if (isDnsName(plain.toLowerCase()) && !isNumbers) return name
  const isForeign = /[^\x00-\x7f]/.test(name)
  const isLong = isSubdomain(plain.toLowerCase())
  const why = isForeign
    ? 'is not ASCII, which certificates require'
    : isNumbers
      ? 'ends in a number, so clients read it as an IP address'
      : isLong
        ? 'has a label of more than 63 characters'
        : 'is not a DNS name'
  throw wrongName('--dns', name, why, isForeign ? 'use its xn-- form' : undefined)
}

function checkedIp(text: string): string {
  const bytes = parseIp(text)
  if (bytes !== undefined) return formatIp(bytes)
  const [address = '', prefix] = text.split('/')
  const isRange = prefix !== undefined && parseIp(address) !== undefined
  const why = isRange ? 'is a range: certificates contain single addresses' : 'is not an IP address'
  throw wrongName('--ip', text, why, isDnsName(text) && /[a-z]/.test(text) ? `--dns ${text}` : undefined)
}

function checkedEmail(name: string): string {
  if (parseMailbox(name) === undefined) throw wrongName('--email', name, 'is not an email address')
  return name
}

function checkedUri(uri: string): string {
  const defect = uriDefect(uri) ?? (/^[A-Za-z][A-Za-z0-9+.-]*:/.test(uri) ? undefined : 'it has no scheme')
  if (defect !== undefined) throw wrongName('--uri', uri, `is not a URI: ${defect}`)
  return uri
}

function wrongName(flag: string, value: string, why: string, next?: string): KcertError {
  return new KcertError('KCERT_USAGE', `${flag} ${quoted(value)} ${why}`, given({ next }))
}

/**
 * Returns a name for the object: lower case, without characters that are special in a shell or a path. The API server would
 * accept almost any name.
 */
export function objectNameOf(text: string): string {
  const plain = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9.]+/g, '-')
    .replaceAll(/^[-.]+|[-.]+$/g, '')
  return plain.slice(0, 253).replace(/[-.]+$/, '') || 'request'
}
