import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { entriesOf, isTrue, itemsOf, type MapNode, type Node } from '../kubeconfig/node.ts'
import { goName } from '../x509/go-name.ts'
import { parseIp } from '../x509/ip.ts'
import type { AltNamesDescription } from '../x509/issuing.ts'
import type { AttributeDescription } from '../x509/name-encoding.ts'
import { isRsaLength, type KeyType } from '../x509/new-key.ts'
import { parseDuration } from './duration.ts'

/** The input of `cfssl genkey` and `cfssl gencert -initca`: cfssl's csr.CertificateRequest. */
export interface CfsslRequest {
  /** As cfssl writes it: in the order of Go's pkix.Name, then OID and E of `names`. */
  readonly subject: readonly (readonly AttributeDescription[])[]
  readonly altNames: Required<AltNamesDescription>
  /** ECDSA P-256 by default. */
  readonly keyType: KeyType
  /** Present when the file has a "ca" section. */
  readonly ca?: CfsslCaSection
  /** Members with a value that kcert ignores: "delegation_enabled", "extensions". */
  readonly leftOut: readonly string[]
}

interface CfsslCaSection {
  readonly expiryMs?: number
  readonly backdateMs?: number
  readonly pathLength?: number
}

/**
 * Returns a request from cfssl's JSON (or the same in YAML). Matches members in any case and ignores unknown ones, as Go does.
 * Throws KCERT_CFSSL_INVALID with the invalid member.
 */
export async function readCfsslRequest(text: string): Promise<CfsslRequest> {
  const { documents, defects } = await readDocuments(text)
  const [root] = documents
  if (defects.length > 0 || documents.length !== 1 || root?.kind !== 'map') {
    throw new KcertError('KCERT_CFSSL_INVALID', 'the cfssl request is not a JSON object', {
      why: defects[0]?.reason ?? 'it begins with "{" and has members such as CN, names, hosts and key',
    })
  }
  const request = new Members(root, '')
  const ca = request.map('ca')
  return {
    subject: subjectOf(request),
    altNames: altNamesOfHosts(request.texts('hosts')),
    keyType: keyTypeOf(request.map('key')),
    ...(ca === undefined ? {} : { ca: caSectionOf(ca) }),
    leftOut: ['delegation_enabled', 'extensions', 'crl_url'].filter((name) => request.hasValue(name)),
  }
}

/** Returns hosts by kind, in cfssl's order: IP address, email address, URI, and DNS name for all others. */
export function altNamesOfHosts(hosts: readonly string[]): Required<AltNamesDescription> {
  const kinds: Record<ReturnType<typeof kindOfHost>, string[]> = { ip: [], email: [], uri: [], dns: [] }
  // Files from before cfssl supported "no hosts" contain [""].
  for (const host of hosts.filter((name) => name !== '')) kinds[kindOfHost(host)].push(host)
  return kinds
}

function kindOfHost(host: string): 'ip' | 'email' | 'uri' | 'dns' {
  if (parseIp(host) !== undefined) return 'ip'
  if (/^[^\s@<>:/]+@[^\s@<>:/]+$/.test(host)) return 'email'
  return /^(?:[A-Za-z][A-Za-z0-9+.-]*:|\/)/.test(host) ? 'uri' : 'dns'
}

function subjectOf(request: Members): AttributeDescription[][] {
  const attributes: AttributeDescription[] = []
  const extra: AttributeDescription[] = []
  const add = (to: AttributeDescription[], type: string, value: string | undefined): void => {
    if (value !== undefined && value !== '') to.push({ type, value })
  }
  for (const name of request.maps('names')) {
    for (const type of ['C', 'ST', 'L', 'O', 'OU']) add(attributes, type, name.text(type))
    for (const [oid, value] of name.map('OID')?.textEntries() ?? []) {
      if (!/^[0-2](?:\.(?:0|[1-9]\d{0,9})){1,20}$/.test(oid))
        throw refuse(`names: OID "${oid}"`, 'it is not an object identifier')
      add(extra, oid, value)
    }
    add(extra, 'emailAddress', name.text('E'))
  }
  add(attributes, 'CN', request.text('CN'))
  add(attributes, 'serialNumber', request.text('serialnumber'))
  return [...goName(attributes).rdns, ...extra.map((attribute) => [attribute])]
}

function keyTypeOf(key: Members | undefined): KeyType {
  if (key === undefined) return { algorithm: 'ECDSA', curve: 'P-256' }
  const algorithm = key.text('algo') ?? ''
  const size = key.number('size') ?? 0
  if (algorithm === 'ed25519') return { algorithm: 'Ed25519' }
  // cfssl's limits.
  if (algorithm === 'rsa' && isRsaLength(size, 8192)) return { algorithm: 'RSA', bits: size }
  if (algorithm === 'ecdsa' && (size === 256 || size === 384 || size === 521)) {
    return { algorithm: 'ECDSA', curve: `P-${size}` }
  }
  throw refuse(
    `key: algo "${algorithm}", size ${size}`,
    'cfssl has rsa with 2048 to 8192 bits, ecdsa with 256, 384 or 521, and ed25519',
  )
}

function caSectionOf(ca: Members): CfsslCaSection {
  const expiry = ca.text('expiry')
  const backdate = ca.text('backdate')
  const length = ca.number('pathlen') ?? 0
  if (length < 0 || length > 255) throw refuse(`ca: pathlen ${length}`, 'it is 0 to 255')
  // Zero means "no limit" unless pathlenzero is set.
  const isLimited = length > 0 || ca.isTrue('pathlenzero')
  return {
    ...(expiry ? { expiryMs: durationOf('expiry', expiry) } : {}),
    ...(backdate ? { backdateMs: durationOf('backdate', backdate) } : {}),
    ...(isLimited ? { pathLength: length } : {}),
  }
}

function durationOf(member: string, text: string): number {
  try {
    return parseDuration(text)
  } catch (error) {
    throw error instanceof KcertError ? refuse(`ca.${member}: ${error.message}`, error.why ?? '') : error
  }
}

/** The members of a JSON object, matched in any case as in Go's encoding/json, each with its required type. */
class Members {
  private readonly values = new Map<string, Node>()
  private readonly node: MapNode
  private readonly path: string

  constructor(node: MapNode, path: string) {
    this.node = node
    this.path = path
    for (const [name, value] of entriesOf(node)) this.values.set(name.toLowerCase(), value)
  }

  text(name: string): string | undefined {
    const node = this.given(name)
    return node && this.textOf(node, name)
  }

  texts(name: string): string[] {
    return this.list(name).map((item) => this.textOf(item, name))
  }

  number(name: string): number | undefined {
    const node = this.given(name)
    if (node === undefined) return undefined
    const isWhole = node.kind === 'scalar' && node.type === 'number' && /^-?\d{1,9}$/.test(node.text)
    return isWhole ? Number(node.text) : this.refuseKind(name, 'a whole number')
  }

  isTrue(name: string): boolean {
    return isTrue(this.given(name))
  }

  map(name: string): Members | undefined {
    const node = this.given(name)
    return node && this.membersOf(node, name, 'an object')
  }

  maps(name: string): Members[] {
    return this.list(name).map((item) => this.membersOf(item, name, 'a list of objects'))
  }

  private membersOf(node: Node, name: string, wanted: string): Members {
    return node.kind === 'map' ? new Members(node, `${this.path}${name}.`) : this.refuseKind(name, wanted)
  }

  textEntries(): [string, string][] {
    return entriesOf(this.node).map(([name, value]) => [name, this.textOf(value, name)])
  }

  hasValue(name: string): boolean {
    const node = this.given(name)
    if (node === undefined || node.kind === 'map') return node !== undefined
    return node.kind === 'list' ? node.items.length > 0 : node.type !== 'boolean' || isTrue(node)
  }

  private list(name: string): readonly Node[] {
    const node = this.given(name)
    return node === undefined || node.kind === 'list' ? itemsOf(node) : this.refuseKind(name, 'a list')
  }

  private textOf(node: Node, name: string): string {
    return node.kind === 'scalar' && node.type === 'string'
      ? node.text
      : this.refuseKind(name, 'text in quotes')
  }

  /** Returns the value; undefined for null, which means absent. */
  private given(name: string): Node | undefined {
    const node = this.values.get(name.toLowerCase())
    return node?.kind === 'scalar' && node.type === 'null' ? undefined : node
  }

  private refuseKind(name: string, wanted: string): never {
    throw refuse(`${this.path}${name}`, `it must be ${wanted}`)
  }
}

function refuse(what: string, why: string): KcertError {
  return new KcertError('KCERT_CFSSL_INVALID', `the cfssl request is invalid: ${what}`, { why })
}
