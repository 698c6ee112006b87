import { argumentVector, commandLine } from '../errors/command-line.ts'
import type { Advice } from '../errors/kcert-error.ts'
import { decodeBase64 } from '../kubeconfig/base64.ts'
import { entriesOf, itemsOf, type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import type { CertificateRequest } from '../x509/request.ts'
import type { Collection, Location } from './collection.ts'
import type { Group, ObjectEntry, Origin, Owner, RequestEntry } from './entries.ts'
import { nameText, type Place } from './problems.ts'
import { shapeOf } from './sniff.ts'

/** The parts of an inspection that reading a manifest needs. */
export interface ManifestContext {
  readonly collection: Collection
  /** Reads a value that may contain certificates, keys, a whole kubeconfig, or something else. */
  readonly readValue: (location: Location, bytes: Uint8Array) => Promise<Group | undefined>
  /** Reads bytes that should be PEM. */
  readonly readPem: (
    location: Location,
    bytes: Uint8Array,
    onRequest?: (request: CertificateRequest, entry: string) => void,
  ) => Group | undefined
}

// Kubernetes does not create a List of Lists.
const deepestList = 3

/** Collects the certificates, requests and keys of a Kubernetes object, or of a List of objects. Ignores other objects. */
export async function collectManifest(
  context: ManifestContext,
  origin: Origin,
  node: Node,
  depth = 0,
  listed = '',
): Promise<void> {
  // Items of a typed list have no kind: kubectl get --raw prints the API server's response.
  const kind = textOf(valueAt(node, 'kind')) || listed
  const items = valueAt(node, 'items')
  if (items?.kind === 'list' && (kind === '' || kind.endsWith('List'))) {
    if (depth >= deepestList) return
    for (const item of items.items)
      await collectManifest(context, origin, item, depth + 1, kind.slice(0, -'List'.length))
    return
  }
  // The kind is arbitrary text from the file, for example "constructor".
  if (Object.hasOwn(readers, kind)) await readers[kind]?.(new ManifestReader(context, origin, kind, node))
}

/** A reader for each kind of object. */
const readers: Readonly<Record<string, (reader: ManifestReader) => void | Promise<void>>> = {
  Secret: (reader) => reader.values('Secret'),
  ConfigMap: (reader) => reader.values('ConfigMap'),
  CertificateSigningRequest: (reader) => reader.signingRequest(),
  // The stub of its request is ignored: the API server verifies it, and it contains only the key.
  PodCertificateRequest: (reader) =>
    reader.plain('status.certificateChain', {
      kind: 'issued',
      request: undefined,
      signerName: reader.text('spec.signerName'),
    }),
  ValidatingWebhookConfiguration: (reader) => reader.webhooks(),
  MutatingWebhookConfiguration: (reader) => reader.webhooks(),
  APIService: (reader) => reader.apiService(),
  CustomResourceDefinition: (reader) =>
    reader.bundle('spec.conversion.webhook.clientConfig.caBundle', 'conversion webhook CA'),
  ClusterTrustBundle: (reader) => reader.plain('spec.trustBundle', { kind: 'ca-bundle', of: 'trust bundle' }),
}

/** Types of Secrets that contain only a token or a packed release, and never a certificate. */
export const passedOverTypes: ReadonlySet<string> = new Set([
  'bootstrap.kubernetes.io/token',
  'helm.sh/release.v1',
  'kubernetes.io/dockercfg',
  'kubernetes.io/dockerconfigjson',
  'kubernetes.io/basic-auth',
  'kubernetes.io/ssh-auth',
])

export const tlsType = 'kubernetes.io/tls'

/** The purpose of the two values of a TLS Secret. The API server requires both keys, but not their content. */
const tlsFields: Readonly<Record<string, { readonly of: 'certificates' | 'keys'; readonly name: string }>> = {
  'tls.crt': { of: 'certificates', name: 'certificate' },
  'tls.key': { of: 'keys', name: 'private key' },
}

class ManifestReader {
  private readonly context: ManifestContext
  private readonly origin: Origin
  private readonly node: Node
  private readonly namespace: string | undefined
  private readonly kind: string
  private readonly name: string
  /** "Secret kube-system/x"; empty if the source is only this object. */
  private readonly title: string

  constructor(context: ManifestContext, origin: Origin, kind: string, node: Node) {
    this.context = context
    this.origin = origin
    this.node = node
    this.kind = kind
    this.namespace = this.text('metadata.namespace')
    const generated = this.text('metadata.generateName')
    this.name = this.text('metadata.name') ?? (generated === undefined ? '(no name)' : `${generated}*`)
    this.title = origin.isObject
      ? ''
      : `${kind} ${this.namespace === undefined ? '' : `${nameText(this.namespace)}/`}${nameText(this.name)}`
  }

  /** Returns the field as written. */
  text(path: string): string | undefined {
    return textOf(this.at(path))
  }

  private at(path: string): Node | undefined {
    return valueAt(this.node, ...path.split('.'))
  }

  /** Reads a field that contains PEM without base64. */
  plain(path: string, owner: Owner): void {
    const text = this.text(path)
    if (text !== undefined) this.context.readPem(this.locationAt(path, owner), Buffer.from(text, 'utf8'))
  }

  async values(kind: 'Secret' | 'ConfigMap'): Promise<void> {
    const type = this.text('type')
    if (kind === 'Secret' && type !== undefined && passedOverTypes.has(type)) return
    const { origin, namespace, name } = this
    const { source } = origin
    const object: ObjectEntry = { source, entry: this.title, origin, kind, namespace, name, type, groups: [] }
    const [encoded, plain] = kind === 'Secret' ? ['data', 'stringData'] : ['binaryData', 'data']
    for (const [key, value] of entriesOf(valueAt(this.node, encoded))) {
      const isEmpty = textOf(value) === ''
      const bytes = isEmpty ? Buffer.alloc(0) : this.decoded(`${encoded}[${nameText(key)}]`, value)
      if (bytes !== undefined) await this.value(object, encoded, key, bytes)
    }
    for (const [key, value] of entriesOf(valueAt(this.node, plain))) {
      const text = textOf(value)
      if (text !== undefined) await this.value(object, plain, key, Buffer.from(text, 'utf8'))
    }
    if (object.groups.length > 0) this.context.collection.objects.push(object)
  }

  private async value(object: ObjectEntry, field: string, key: string, bytes: Uint8Array): Promise<void> {
    const path = `${field}[${nameText(key)}]`
    const { problems } = this.context.collection
    const before = problems.length
    const group = await this.context.readValue(this.locationAt(path, { kind: 'value', object, key }), bytes)
    if (group !== undefined) object.groups.push(group)
    const wanted = object.type === tlsType ? tlsFields[key] : undefined
    if (wanted === undefined || problems.length > before || (group?.[wanted.of].length ?? 0) > 0) return
    const isTwice = shapeOf(bytes) === 'base64'
    const found = bytes.length === 0 ? 'empty' : isTwice ? 'base64 once more' : `no ${wanted.name} in PEM`
    this.malformed(path, `${found}, in a Secret of type ${tlsType}`, {
      fix: isTwice
        ? 'encode it in base64 only once'
        : 'create the Secret again from the files tls.crt and tls.key',
      next: commandLine`kubectl create secret tls ${this.name} --cert tls.crt --key tls.key --dry-run=client -o yaml`,
    })
  }

  signingRequest(): void {
    const { node, context } = this
    const signerName = this.text('spec.signerName')
    const username = this.text('spec.username')
    const usages = itemsOf(valueAt(node, 'spec', 'usages')).map((usage) => textOf(usage) ?? '')
    const condition = conditionOf(node)
    let request: RequestEntry | undefined
    const requestBytes = this.decoded('spec.request', valueAt(node, 'spec', 'request'))
    if (requestBytes !== undefined) {
      const location = this.locationAt('spec.request', { kind: 'file' })
      const before = context.collection.problems.length
      context.readPem(location, requestBytes, (read, entry) => {
        const { source } = this.origin
        request = { source, entry, request: read, usages, condition, signerName, username }
        context.collection.requests.push(request)
      })
      if (request === undefined && context.collection.problems.length === before) {
        this.malformed('spec.request', 'no CERTIFICATE REQUEST in PEM', { code: 'REQUEST_UNREADABLE' })
      }
    }
    const issued = valueAt(node, 'status', 'certificate')
    const bytes = issued && this.decoded('status.certificate', issued)
    if (bytes !== undefined)
      context.readPem(this.locationAt('status.certificate', { kind: 'issued', request, signerName }), bytes)
  }

  webhooks(): void {
    for (const [index, webhook] of itemsOf(valueAt(this.node, 'webhooks')).entries()) {
      const name = textOf(valueAt(webhook, 'name')) ?? `${index}`
      const path = `webhooks[${nameText(name)}].clientConfig.caBundle`
      this.bundle(path, 'webhook CA', valueAt(webhook, 'clientConfig', 'caBundle'))
    }
  }

  apiService(): void {
    this.bundle('spec.caBundle', 'aggregated API CA')
    const path = 'spec.insecureSkipTLSVerify'
    if (this.text(path) !== 'true') return
    this.context.collection.addProblem(this.place(path), 'APISERVICE_INSECURE', {
      message:
        'insecureSkipTLSVerify is set: the API server does not verify the certificate of the aggregated API server',
      fix: 'set spec.caBundle to the CA of the aggregated API server and remove insecureSkipTLSVerify',
    })
  }

  bundle(path: string, of: string, value = this.at(path)): void {
    const bytes = value && this.decoded(path, value)
    if (bytes === undefined || bytes.length === 0) return
    const group = this.context.readPem(this.locationAt(path, { kind: 'ca-bundle', of }), bytes)
    if (group === undefined) this.malformed(path, 'no certificate in PEM')
  }

  private place(path: string): Place {
    return { source: this.origin.source, entry: this.title === '' ? path : `${this.title} ${path}` }
  }

  private locationAt(path: string, owner: Owner): Location {
    return { origin: this.origin, entry: this.place(path).entry, owner }
  }

  /** Returns the bytes of a base64 field; undefined when it is absent, or is not base64, which is then reported. */
  private decoded(path: string, value: Node | undefined): Uint8Array | undefined {
    const text = textOf(value)
    if (text === undefined || text === '') return undefined
    const outcome = decodeBase64(text)
    if ('bytes' in outcome) return outcome.bytes
    this.malformed(path, outcome.reason)
    return undefined
  }

  private fetchAdvice(): Advice {
    const { kind, name, namespace } = this
    const words = [kind.toLowerCase(), name, ...(namespace === undefined ? [] : ['-n', namespace])]
    // The author of a manifest chooses its names, and this may be pasted.
    return words.every((word) => /^[a-z0-9][a-z0-9.:-]*$|^-n$/.test(word))
      ? { fix: 'get the object again', next: commandLine`kubectl get ${argumentVector(words)} -o yaml` }
      : { fix: 'get the object again with kubectl get -o yaml' }
  }

  private malformed(
    path: string,
    reason: string,
    more: Advice & { readonly code?: 'REQUEST_UNREADABLE' } = {},
  ): void {
    const { code = 'FIELD_MALFORMED', ...advice } = more
    const given = Object.keys(advice).length === 0 ? this.fetchAdvice() : advice
    this.context.collection.addProblem(this.place(path), code, { message: `${path}: ${reason}`, ...given })
  }
}

/** Returns the condition as `kubectl get csr` shows it. */
function conditionOf(node: Node): string {
  const types = new Set(
    itemsOf(valueAt(node, 'status', 'conditions')).map((condition) => textOf(valueAt(condition, 'type'))),
  )
  const parts = types.has('Denied') ? ['Denied'] : types.has('Approved') ? ['Approved'] : ['Pending']
  if (types.has('Failed')) parts.push('Failed')
  if (textOf(valueAt(node, 'status', 'certificate'))) parts.push('Issued')
  return parts.join(',')
}
