import { decodeBase64 } from './base64.ts'
import { entriesOf, isTrue, itemsOf, type Node, type Range, textOf, valueAt } from './node.ts'

/** Inline data or a file, as client-go takes them: where both are given the data counts. */
export interface Material {
  /** The field that counts: "certificate-authority-data" or "certificate-authority". */
  readonly field: string
  readonly data?: Uint8Array
  /** As written: relative to the kubeconfig's folder. */
  readonly file?: string
}

/** A way to say who one is that needs no certificate. What is secret in it is not kept. */
export type Credential =
  | { readonly kind: 'exec'; readonly command: string }
  | { readonly kind: 'auth-provider'; readonly name: string }
  | { readonly kind: 'token' }
  | { readonly kind: 'tokenFile'; readonly file: string }
  | { readonly kind: 'basic' }

/** Where a field stands in the text, for editing in place. */
export interface FieldPlace {
  readonly key: Range
  readonly value: Range
}

interface Named {
  readonly name: string
  /** Of the whole list item. */
  readonly range: Range
  /** Fields of the inner object ("cluster", "user", "context"). */
  readonly fields: ReadonlyMap<string, FieldPlace>
}

export interface KubeconfigCluster extends Named {
  readonly server: string | undefined
  readonly tlsServerName: string | undefined
  readonly skipsTlsVerify: boolean
  readonly certificateAuthority: Material | undefined
}

export interface KubeconfigUser extends Named {
  readonly clientCertificate: Material | undefined
  readonly clientKey: Material | undefined
  readonly credentials: readonly Credential[]
}

export interface KubeconfigContext extends Named {
  readonly cluster: string
  readonly user: string
  readonly namespace: string | undefined
}

/** Something that client-go would not take, or take otherwise than it reads. */
export interface KubeconfigDefect {
  /** "users[admin].client-certificate-data", "clusters". */
  readonly field: string
  readonly reason: string
  readonly next?: string
  /** True when client-go refuses the whole file for it. */
  readonly isFatal: boolean
}

export interface Kubeconfig {
  readonly clusters: readonly KubeconfigCluster[]
  readonly users: readonly KubeconfigUser[]
  readonly contexts: readonly KubeconfigContext[]
  readonly currentContext: string | undefined
  readonly defects: readonly KubeconfigDefect[]
}

// The largest honest ones are made by tools that write one for a whole fleet of clusters.
const mostItems = 10_000

const parts = ['clusters', 'users', 'contexts'] as const

/** True for a document that is a kubeconfig, or means to be one: by its kind, or, as client-go allows, without any. */
export function isKubeconfig(node: Node): boolean {
  const kind = textOf(valueAt(node, 'kind'))
  const count = parts.filter((part) => valueAt(node, part) !== undefined).length
  return kind === undefined || kind === 'Config' ? count > 0 : count === parts.length
}

/**
 * Returns what a kubeconfig holds, as client-go's clientcmd reads it: every cluster, user and context, unknown fields passed
 * over, empty parts allowed. What client-go would refuse is still read as far as it can be, and said among the defects.
 */
export function readKubeconfig(root: Node): Kubeconfig {
  const reader = new KubeconfigReader()
  for (const [field, wanted] of [
    ['apiVersion', 'v1'],
    ['kind', 'Config'],
  ] as const) {
    const value = valueAt(root, field)
    if (value !== undefined && !isNull(value) && textOf(value) !== wanted)
      reader.refuse(field, `not ${wanted}`)
  }
  reader.preferences(valueAt(root, 'preferences'))
  reader.extensions(root, 'extensions')
  return {
    clusters: reader.named(root, 'clusters', 'cluster', (named, node) => reader.cluster(named, node)),
    users: reader.named(root, 'users', 'user', (named, node) => reader.user(named, node)),
    contexts: reader.named(root, 'contexts', 'context', (named, node) => reader.context(named, node)),
    currentContext: reader.text(root, 'current-context', 'current-context') || undefined,
    defects: reader.defects,
  }
}

interface Spot extends Named {
  /** "users[admin]" */
  readonly path: string
}

class KubeconfigReader {
  readonly defects: KubeconfigDefect[] = []

  refuse(field: string, reason: string): void {
    this.defects.push({ field, reason, isFatal: true })
  }

  named<T>(
    root: Node,
    part: (typeof parts)[number],
    inner: string,
    read: (spot: Spot, node: Node | undefined) => T,
  ): T[] {
    const list = valueAt(root, part)
    if (list !== undefined && list.kind !== 'list' && !isNull(list)) this.refuse(part, 'not a list')
    const items = itemsOf(list)
    if (items.length > mostItems) {
      const reason = `${items.length} items; the first ${mostItems} are read`
      this.defects.push({ field: part, reason, isFatal: false })
    }
    const seen = new Set<string>()
    return items.slice(0, mostItems).map((item, index) => {
      const name = this.text(item, 'name', `${part}[${index}].name`) ?? ''
      const path = `${part}[${name === '' ? index : name}]`
      if (item.kind !== 'map' && !isNull(item)) this.refuse(path, 'not an object')
      if (seen.has(name)) this.refuse(path, `the name ${JSON.stringify(name)} is there twice`)
      seen.add(name)
      const node = valueAt(item, inner)
      if (node !== undefined && node.kind !== 'map' && !isNull(node))
        this.refuse(`${path}.${inner}`, 'not an object')
      this.extensions(node, `${path}.extensions`)
      return read({ name, path, range: item.range, fields: placesOf(node) }, node)
    })
  }

  cluster({ path, ...named }: Spot, node: Node | undefined): KubeconfigCluster {
    const skips = this.boolean(node, 'insecure-skip-tls-verify', path)
    const server = this.text(node, 'server', `${path}.server`) || undefined
    if (server === undefined) {
      const reason = 'missing or empty: clients refuse the context, and kubectl asks localhost:8080'
      this.defects.push({ field: `${path}.server`, reason, isFatal: false })
    }
    return {
      ...named,
      server,
      tlsServerName: this.text(node, 'tls-server-name', `${path}.tls-server-name`) || undefined,
      skipsTlsVerify: isTrue(skips),
      certificateAuthority: this.material(node, 'certificate-authority', path),
    }
  }

  user({ path, ...named }: Spot, node: Node | undefined): KubeconfigUser {
    const clientCertificate = this.material(node, 'client-certificate', path)
    const clientKey = this.material(node, 'client-key', path)
    if (clientCertificate !== undefined && clientKey === undefined) {
      this.defects.push({
        field: path,
        reason: 'a client certificate without client-key or client-key-data',
        isFatal: false,
      })
    }
    const credentials = this.credentials(node, path)
    const namesCertificate = ['client-certificate', 'client-certificate-data'].some((one) =>
      textOf(valueAt(node, one)),
    )
    if (clientKey !== undefined && !namesCertificate && credentials.length === 0) {
      this.defects.push({
        field: path,
        reason:
          'a client key without client-certificate or client-certificate-data: clients ignore the key, and kubectl asks for a user name',
        next: 'put the certificate that was issued for this key into client-certificate-data, in base64',
        isFatal: false,
      })
    }
    return { ...named, clientCertificate, clientKey, credentials }
  }

  context({ path, ...named }: Spot, node: Node | undefined): KubeconfigContext {
    return {
      ...named,
      cluster: this.text(node, 'cluster', `${path}.cluster`) ?? '',
      user: this.text(node, 'user', `${path}.user`) ?? '',
      namespace: this.text(node, 'namespace', `${path}.namespace`) || undefined,
    }
  }

  preferences(node: Node | undefined): void {
    if (node !== undefined && node.kind !== 'map' && !isNull(node))
      this.refuse('preferences', 'not an object')
    this.boolean(node, 'colors', 'preferences')
    this.extensions(node, 'preferences.extensions')
  }

  /** What is in them is their owners'; that they are a list, each with a name of its own, is client-go's. */
  extensions(node: Node | undefined, field: string): void {
    const list = valueAt(node, 'extensions')
    if (list !== undefined && list.kind !== 'list' && !isNull(list))
      this.refuse(field, 'not a list of name and extension')
    const taken = new Set<string>()
    for (const [index, item] of itemsOf(list).slice(0, mostItems).entries()) {
      const path = `${field}[${index}]`
      if (item.kind !== 'map' && !isNull(item)) this.refuse(path, 'not an object')
      const name = this.text(item, 'name', `${path}.name`) ?? ''
      if (taken.has(name)) this.refuse(path, `the name ${JSON.stringify(name)} is there twice`)
      // An extension of null takes no name; no name at all is one too.
      const extension = valueAt(item, 'extension')
      if (extension !== undefined && !isNull(extension)) taken.add(name)
    }
  }

  private boolean(node: Node | undefined, name: string, path: string): Node | undefined {
    const value = valueAt(node, name)
    if (value !== undefined && !isNull(value) && (value.kind !== 'scalar' || value.type !== 'boolean'))
      this.refuse(`${path}.${name}`, 'neither true nor false')
    return value
  }

  private credentials(node: Node | undefined, path: string): Credential[] {
    const found: Credential[] = []
    const exec = valueAt(node, 'exec')
    if (exec?.kind === 'map') found.push({ kind: 'exec', command: textOf(valueAt(exec, 'command')) ?? '' })
    const provider = valueAt(node, 'auth-provider')
    if (provider?.kind === 'map')
      found.push({ kind: 'auth-provider', name: textOf(valueAt(provider, 'name')) ?? '' })
    const tokenFile = this.text(node, 'tokenFile', `${path}.tokenFile`)
    // The token counts before the file; client-go falls back on the file only when it is empty.
    if (this.text(node, 'token', `${path}.token`)) found.push({ kind: 'token' })
    else if (tokenFile) found.push({ kind: 'tokenFile', file: tokenFile })
    if (this.text(node, 'username', `${path}.username`) || this.text(node, 'password', `${path}.password`)) {
      found.push({ kind: 'basic' })
    }
    return found
  }

  private material(node: Node | undefined, name: string, path: string): Material | undefined {
    const dataField = `${name}-data`
    const written = this.text(node, dataField, `${path}.${dataField}`)
    const file = this.text(node, name, `${path}.${name}`)
    if (!written) return file ? { field: name, file } : undefined
    if (file) {
      const reason = `${dataField} is there too, and counts; clients refuse a context with both`
      this.defects.push({ field: `${path}.${name}`, reason, isFatal: false })
    }
    const decoded = decodeBase64(written)
    if ('bytes' in decoded) return { field: dataField, data: decoded.bytes }
    this.refuse(`${path}.${dataField}`, decoded.reason)
    return undefined
  }

  /** The text of a field; numbers and booleans are given as written, but client-go does not take them for text. */
  text(node: Node | undefined, name: string, field: string): string | undefined {
    const value = valueAt(node, name)
    if (value === undefined || isNull(value)) return undefined
    if (value.kind !== 'scalar') this.refuse(field, 'not a text')
    else if (value.type !== 'string')
      this.refuse(field, `a ${value.type} without quotes, where a text is wanted`)
    return textOf(value)
  }
}

function isNull(node: Node): boolean {
  return node.kind === 'scalar' && node.type === 'null'
}

function placesOf(node: Node | undefined): ReadonlyMap<string, FieldPlace> {
  if (node?.kind !== 'map') return new Map()
  return new Map(
    entriesOf(node).map(([name, value]) => [name, { key: node.entries.get(name)!.key, value: value.range }]),
  )
}
