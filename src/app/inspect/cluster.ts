import { hash } from 'node:crypto'
import { announcedBy, announcedIn, announcements } from '../../cluster/announced-servers.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { type ObjectOf, resources } from '../../cluster/kinds.ts'
import type { Selection } from '../../cluster/objects.ts'
import { getOne, listEach } from '../../cluster/readable.ts'
import type { Resource } from '../../cluster/resource.ts'
import { hostPort } from '../../errors/host-port.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Inspection } from '../../inspection/inspection.ts'
import { passedOverTypes } from '../../inspection/read-manifest.ts'
import type { Endpoint } from '../../tls/endpoint.ts'

// `kcert inspect --cluster`: reads a cluster object by object, page by page. Of an object, only its findings are kept; of a
// private key, only the public key.

/** The result of reading a cluster, in addition to the report. */
export interface Scan {
  /** Why reading stopped; earlier results are in the report. */
  readonly failure: KcertError | undefined
  readonly notes: readonly string[]
  /** False if the API server forbade reading a part. */
  readonly isPermitted: boolean
}

/** Where the findings go. */
export type Findings = Pick<Inspection, 'addObject' | 'addRefused'>

/** Which objects to read, as kubectl's -n and -l select them. */
export interface ClusterScope {
  readonly namespace?: string | undefined
  readonly selector?: string | undefined
}

export function isScoped({ namespace, selector }: ClusterScope): boolean {
  return namespace !== undefined || selector !== undefined
}

interface ScannedKind {
  readonly kind: string
  /** The prefix of the name, as kubectl accepts it: "secret shop/web-tls"; default is the kind in lower case. */
  readonly word?: string
  readonly resource: Resource
  readonly selection?: Selection
  readonly isNamespaced?: true
}

// The server omits Secrets that never contain a certificate: packed Helm releases alone are most of the bytes in many clusters.
const secretTypes = [...passedOverTypes].map((type) => `type!=${type}`).join(',')

const kinds: readonly ScannedKind[] = [
  {
    kind: 'Secret',
    resource: resources.secrets,
    selection: { fieldSelector: secretTypes },
    isNamespaced: true,
  },
  { kind: 'ConfigMap', resource: resources.configMaps, isNamespaced: true },
  { kind: 'ValidatingWebhookConfiguration', resource: resources.validating },
  { kind: 'MutatingWebhookConfiguration', resource: resources.mutating },
  { kind: 'APIService', resource: resources.apiServices },
  { kind: 'CustomResourceDefinition', word: 'crd', resource: resources.definitions },
  { kind: 'CertificateSigningRequest', word: 'csr', resource: resources.requests },
  { kind: 'PodCertificateRequest', resource: resources.podCertificateRequests, isNamespaced: true },
  { kind: 'ClusterTrustBundle', resource: resources.clusterTrustBundles },
]

/** ConfigMaps with the CAs that a cluster trusts, for users who may not list all ConfigMaps. */
const published = [
  { namespace: 'default', name: 'kube-root-ca.crt' },
  { namespace: 'kube-public', name: 'cluster-info' },
  { namespace: 'kube-system', name: 'extension-apiserver-authentication' },
]

const rootCa = 'kube-root-ca.crt'

/**
 * Reads the objects of one kind, named by the plural of its resource. Returns false if the API server does not serve it. Throws as
 * `ObjectsApi.list` does, but not for a forbidden list.
 */
export async function scanKind(cluster: Cluster, findings: Findings, plural: string): Promise<boolean> {
  const scanner = new Scanner(cluster, findings, {})
  for (const kind of kinds) if (kind.resource.resource === plural) await scanner.readKind(kind)
  return !scanner.isIncomplete
}

/** Reads a cluster into an inspection. A forbidden part is a problem in the report, and reading continues. */
export async function scanCluster(
  cluster: Cluster,
  inspection: Findings,
  scope: ClusterScope = {},
): Promise<Scan> {
  const scanner = new Scanner(cluster, inspection, scope)
  try {
    for (const kind of kinds)
      if (kind.isNamespaced || scope.namespace === undefined) await scanner.readKind(kind)
    const notes = [...scanner.notes(), ...(await scanner.unservedNotes())]
    return { failure: undefined, notes, isPermitted: scanner.isPermitted }
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    return { failure: error, notes: scanner.notes(), isPermitted: scanner.isPermitted }
  }
}

interface ApiServers {
  /** HOST:PORT of the kubeconfig */
  readonly own: string
  /** The others, from the EndpointSlice. */
  readonly announced: readonly Endpoint[]
  /** True if reading the EndpointSlice is forbidden. */
  readonly hidden: boolean
  /** All that the EndpointSlice lists; undefined if it was not read, or lists none. */
  readonly count: number | undefined
}

/** Returns the addresses of the API servers. */
export async function apiServersOf(cluster: Cluster): Promise<ApiServers> {
  const { host: server, port: ownPort } = URL.parse(cluster.server) ?? { host: '', port: '' }
  const own = ownPort === '' ? `${server}:443` : server
  const announced: Endpoint[] = []
  const names = new Set<string>()
  try {
    for await (const slice of listEach(cluster.objects, announcements, announcedBy)) {
      for (const { host, port } of announcedIn(slice)) {
        const name = hostPort(host, port)
        names.add(name)
        if (name !== own) announced.push({ name, host, port })
      }
    }
  } catch (error) {
    // The first kind of object that is read reports any other failure.
    if (!(error instanceof KcertError)) throw error
    return { own, announced, hidden: error.code === 'KCERT_API_FORBIDDEN', count: undefined }
  }
  return { own, announced, hidden: false, count: names.size || undefined }
}

class Scanner {
  isPermitted = true
  private readonly cluster: Cluster
  private readonly inspection: Findings
  private readonly scope: ClusterScope
  /** Digest of the content of kube-root-ca.crt → number of namespaces with it. Its users can write 1 MiB into each. */
  private readonly rootCas = new Map<string, number>()
  private readonly unserved: string[] = []

  constructor(cluster: Cluster, inspection: Findings, scope: ClusterScope) {
    this.cluster = cluster
    this.inspection = inspection
    this.scope = scope
  }

  /** True if the API server does not serve a kind. */
  get isIncomplete(): boolean {
    return this.unserved.length > 0
  }

  notes(): string[] {
    const counts = [...this.rootCas.values()]
    const [most = 0] = counts.toSorted((a, b) => b - a)
    if (counts.length === 1 && most > 1)
      return [`${rootCa} is the same in all ${most} namespaces, and shown once`]
    if (counts.length < 2) return []
    return [
      `${rootCa} is not the same in all namespaces: ${counts.length} different versions, each shown once`,
    ]
  }

  /**
   * An API server of another version may serve the kinds that this one does not. kcert does not try: the addresses of the others
   * come from an object that other users may write, and the user's credentials must not go there.
   */
  async unservedNotes(): Promise<string[]> {
    if (this.unserved.length === 0) return []
    const { count } = await apiServersOf(this.cluster)
    if (count === 1) return []
    const which = count === undefined ? 'how many there are is unknown' : `there are ${count}`
    return [
      `${this.unserved.join(' and ')}: not served by the API server that kcert read, and ${which}. One of another version may serve them: give its URL with --server`,
    ]
  }

  async readKind(scanned: ScannedKind): Promise<void> {
    const { namespace, selector } = this.scope
    const { kind } = scanned
    const resource = { ...scanned.resource, ...(namespace !== undefined && { namespace }) }
    const selection = { ...scanned.selection, ...(selector !== undefined && { labelSelector: selector }) }
    // A list that is restarted returns objects twice.
    const seen = new Set<string>()
    try {
      for await (const object of listEach(this.cluster.objects, resource, selection)) {
        const name = nameOf(object)
        if (seen.has(name)) continue
        seen.add(name)
        await this.read(scanned, name, object)
      }
    } catch (error) {
      if (!(error instanceof KcertError)) throw error
      if (error.code === 'KCERT_API_NOT_FOUND') {
        this.unserved.push(`${kind}s`)
        return
      }
      if (error.code !== 'KCERT_API_FORBIDDEN') throw error
      this.isPermitted = false
      this.inspection.addRefused(`${resource.resource} of the cluster`, error)
      if (kind === 'ConfigMap' && !isScoped(this.scope)) await this.readPublished(scanned)
    }
  }

  private async readPublished(scanned: ScannedKind): Promise<void> {
    for (const { namespace, name } of published) {
      try {
        const object = await getOne(this.cluster.objects, { ...scanned.resource, namespace, name })
        if (object !== undefined) await this.read(scanned, `${namespace}/${name}`, object)
      } catch (error) {
        const isRefused = error instanceof KcertError && error.code === 'KCERT_API_FORBIDDEN'
        if (!isRefused) throw error
      }
    }
  }

  private async read(
    { kind, word = kind.toLowerCase() }: ScannedKind,
    name: string,
    object: ObjectOf<string>,
  ): Promise<void> {
    if (kind === 'ConfigMap' && name.endsWith(`/${rootCa}`) && this.isKnownRootCa(object)) return
    await this.inspection.addObject(`${word} ${name}`, object, kind)
  }

  private isKnownRootCa({ data }: ObjectOf<'configmaps'>): boolean {
    const text = data?.['ca.crt']
    if (text === undefined) return false
    const digest = hash('sha256', text)
    const count = this.rootCas.get(digest) ?? 0
    this.rootCas.set(digest, count + 1)
    return count > 0
  }
}

function nameOf({ metadata: { name, namespace } }: ObjectOf<string>): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}
