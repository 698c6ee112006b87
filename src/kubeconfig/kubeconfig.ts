import { given } from '../errors/given.ts'
import { readServiceAccountToken, type ServiceAccountToken } from '../x509/service-account-token.ts'
import { decodeBase64 } from './base64.ts'
import { fieldFaults } from './fields.ts'
import { isTrue, itemsOf, type Node, textOf, valueAt } from './node.ts'
import { clusterFaults, type UsabilityFault, userFaults } from './usability.ts'

/** Inline data or a file, as in client-go: if both are given, the data is used. */
export interface Material {
  /** The field that is used: "certificate-authority-data" or "certificate-authority". */
  readonly field: string
  readonly data?: Uint8Array
  /** As written: relative to the kubeconfig's folder. */
  readonly file?: string
}

/** A credential other than a certificate. Its secret parts are not kept. */
export type Credential =
  | { readonly kind: 'exec'; readonly command: string }
  | { readonly kind: 'auth-provider'; readonly name: string }
  /** `claims`: of a service account token. The token itself is not kept. */
  | { readonly kind: 'token'; readonly claims?: ServiceAccountToken }
  | { readonly kind: 'tokenFile'; readonly file: string }
  | { readonly kind: 'basic' }

interface Named {
  readonly name: string
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

/** A part that client-go rejects, or reads differently. */
export interface KubeconfigDefect {
  /** "users[admin].client-certificate-data", "clusters". */
  readonly field: string
  readonly reason: string
  readonly next?: string
  /** True when client-go rejects the whole file because of it. */
  readonly isFatal: boolean
}

export interface Kubeconfig {
  readonly clusters: readonly KubeconfigCluster[]
  readonly users: readonly KubeconfigUser[]
  readonly contexts: readonly KubeconfigContext[]
  readonly currentContext: string | undefined
  readonly defects: readonly KubeconfigDefect[]
}

// The largest legitimate ones come from tools that write one kubeconfig for a whole fleet of clusters.
const mostItems = 10_000

const parts = ['clusters', 'users', 'contexts'] as const

/** True for a document that is a kubeconfig by its kind, or has no kind, as client-go allows. */
export function isKubeconfig(node: Node): boolean {
  const kind = textOf(valueAt(node, 'kind')) || undefined
  const count = parts.filter((part) => valueAt(node, part) !== undefined).length
  return kind === undefined || kind === 'Config' ? count > 0 : count === parts.length
}

/**
 * Returns the content of a kubeconfig as client-go's clientcmd reads it: every cluster, user and context. Unknown fields are
 * ignored and parts may be empty. Parts that client-go rejects are still read as far as possible, and listed as defects.
 */
export function readKubeconfig(root: Node): Kubeconfig {
  const reader = new KubeconfigReader(fieldFaults(root).map((fault) => ({ ...fault, isFatal: true })))
  reader.version(root)
  return {
    clusters: reader.named(root, 'clusters', 'cluster', (named, node) => reader.cluster(named, node)),
    users: reader.named(root, 'users', 'user', (named, node) => reader.user(named, node)),
    contexts: reader.named(root, 'contexts', 'context', context),
    currentContext: filled(root, 'current-context'),
    defects: reader.defects,
  }
}

/**
 * Returns the cluster and user that components use: those of the current context, otherwise of the first context, otherwise the
 * first of each.
 */
export function currentOf({ contexts, clusters, users, currentContext }: Kubeconfig): {
  readonly cluster: KubeconfigCluster | undefined
  readonly user: KubeconfigUser | undefined
} {
  const context = contexts.find(({ name }) => name === currentContext) ?? contexts[0]
  return {
    cluster: clusters.find(({ name }) => name === context?.cluster) ?? clusters[0],
    user: users.find(({ name }) => name === context?.user) ?? users[0],
  }
}

interface EntryLocation extends Named {
  /** "users[admin]" */
  readonly path: string
}

class KubeconfigReader {
  readonly defects: KubeconfigDefect[]

  constructor(defects: KubeconfigDefect[]) {
    this.defects = defects
  }

  /** Both may be empty. schema.ParseGroupVersion also accepts "/" and "/v1". */
  version(root: Node): void {
    for (const [field, pattern, wanted] of [
      ['apiVersion', /^(?:\/?v1|\/)?$/, 'v1'],
      ['kind', /^(?:Config)?$/, 'Config'],
    ] as const) {
      if (!pattern.test(textOf(valueAt(root, field)) ?? ''))
        this.defects.push({ field, reason: `not ${wanted}`, isFatal: true })
    }
  }

  named<T>(
    root: Node,
    part: (typeof parts)[number],
    inner: string,
    read: (location: EntryLocation, node: Node | undefined) => T,
  ): T[] {
    const items = itemsOf(valueAt(root, part))
    if (items.length > mostItems) this.warn(part, `${items.length} items; the first ${mostItems} are read`)
    return items.slice(0, mostItems).map((item, index) => {
      const name = textOf(valueAt(item, 'name')) ?? ''
      return read({ name, path: `${part}[${name || index}]` }, valueAt(item, inner))
    })
  }

  cluster({ path, ...named }: EntryLocation, node: Node | undefined): KubeconfigCluster {
    const server = filled(node, 'server')
    if (server === undefined)
      this.warn(
        `${path}.server`,
        'missing or empty: clients refuse the context, and kubectl connects to localhost:8080',
      )
    this.unusable(path, clusterFaults(node))
    return {
      ...named,
      server,
      tlsServerName: filled(node, 'tls-server-name'),
      skipsTlsVerify: isTrue(valueAt(node, 'insecure-skip-tls-verify')),
      certificateAuthority: this.material(node, 'certificate-authority', path),
    }
  }

  user({ path, ...named }: EntryLocation, node: Node | undefined): KubeconfigUser {
    const clientCertificate = this.material(node, 'client-certificate', path)
    const clientKey = this.material(node, 'client-key', path)
    const credentials = credentialsOf(node)
    const names = (one: string): boolean => [one, `${one}-data`].some((field) => filled(node, field))
    if (names('client-certificate') && !names('client-key'))
      this.warn(path, 'a client certificate without client-key or client-key-data')
    if (names('client-key') && !names('client-certificate') && credentials.length === 0)
      this.warn(
        path,
        'a client key without client-certificate or client-certificate-data: clients ignore the key, and kubectl prompts for a user name',
        'put the certificate that was issued for this key into client-certificate-data, in base64',
      )
    this.unusable(path, userFaults(node))
    return { ...named, clientCertificate, clientKey, credentials }
  }

  private material(node: Node | undefined, name: string, path: string): Material | undefined {
    const dataField = `${name}-data`
    const written = filled(node, dataField)
    const file = filled(node, name)
    if (!written) return file ? { field: name, file } : undefined
    if (file)
      this.warn(
        `${path}.${name}`,
        `${dataField} is set too, and takes precedence; clients refuse a context with both`,
      )
    const decoded = decodeBase64(written)
    return 'bytes' in decoded ? { field: dataField, data: decoded.bytes } : undefined
  }

  private unusable(path: string, faults: Iterable<UsabilityFault>): void {
    for (const { field, reason, next } of faults)
      this.warn(`${path}.${field}`, `${reason}; clients refuse every context with it`, next)
  }

  private warn(field: string, reason: string, next?: string): void {
    this.defects.push({ field, reason, isFatal: false, ...(next !== undefined && { next }) })
  }
}

function context({ path: _path, ...named }: EntryLocation, node: Node | undefined): KubeconfigContext {
  return {
    ...named,
    cluster: textOf(valueAt(node, 'cluster')) ?? '',
    user: textOf(valueAt(node, 'user')) ?? '',
    namespace: filled(node, 'namespace'),
  }
}

function credentialsOf(node: Node | undefined): Credential[] {
  const found: Credential[] = []
  const exec = valueAt(node, 'exec')
  if (exec?.kind === 'map') found.push({ kind: 'exec', command: textOf(valueAt(exec, 'command')) ?? '' })
  const provider = valueAt(node, 'auth-provider')
  if (provider?.kind === 'map')
    found.push({ kind: 'auth-provider', name: textOf(valueAt(provider, 'name')) ?? '' })
  // The token takes precedence over the file. client-go uses the file only when the token is empty.
  const tokenFile = filled(node, 'tokenFile')
  const token = filled(node, 'token')
  if (token) found.push({ kind: 'token', ...given({ claims: readServiceAccountToken(token) }) })
  else if (tokenFile) found.push({ kind: 'tokenFile', file: tokenFile })
  if (filled(node, 'username') || filled(node, 'password')) found.push({ kind: 'basic' })
  return found
}

/** Returns the text of a field, with numbers and booleans as written; undefined for an empty one. */
function filled(node: Node | undefined, name: string): string | undefined {
  return textOf(valueAt(node, name)) || undefined
}
