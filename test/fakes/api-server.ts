import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { CertificateAuthority } from '../../src/ca/certificate-authority.ts'
import { issueRoot } from '../../src/ca/root.ts'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { generatePrivateKey, parseKeyType, writePrivateKey } from '../../src/x509/new-key.ts'
import { writePem } from '../../src/x509/pem.ts'
import { type AccessRule, type Attributes, type FakeUser, isAllowed, isFor } from './api-server-access.ts'
import { type Fault, Faults } from './api-server-faults.ts'
import { changedRequest, controllerSigner, newRequest, type Signer } from './api-server-requests.ts'
import {
  type Event,
  type Json,
  type Key,
  Refused,
  Store,
  type Stored,
  selector,
  tooOld,
} from './api-server-store.ts'
import { serveExec } from './pod-exec.ts'
import { rehearsal } from './rehearsal.ts'

export interface FakeOptions {
  readonly rules?: readonly AccessRule[]
  /** Bearer token → its user. */
  readonly tokens?: Readonly<Record<string, FakeUser>>
  /** `controller` emulates kube-controller-manager; a function emulates any other signer; absent: nothing is signed. */
  readonly signer?: 'controller' | Signer
  /** Its clock, for creation times, certificates and the header Date (default that of this machine). */
  readonly now?: () => Date
  /** The interval of bookmarks for a watch that allows them. */
  readonly bookmarkMs?: number
  /** Kinds ("servicecidrs") that this server does not serve, as in older releases. */
  readonly without?: readonly string[]
  /** Groups of CustomResourceDefinitions. */
  readonly customGroups?: readonly string[]
  /** Kinds of certificates.k8s.io besides requests, with the version that serves each; none, as in Kubernetes up to 1.36. */
  readonly certificateKinds?: Readonly<Record<string, string>>
  /** SANs of the serving certificate. */
  readonly servingNames?: { readonly dns?: readonly string[]; readonly ip?: readonly string[] }
  /** notAfter of the serving certificate. */
  readonly servingNotAfter?: Date
}

/** A program to run in a container of a pod. */
export interface FakeExec {
  readonly namespace: string
  readonly pod: string
  readonly container: string
  readonly command: readonly string[]
  readonly username: string
}

export interface SeenCall extends Attributes {
  readonly username: string
  readonly fault: Fault['kind'] | undefined
}

/** The user of a kubeconfig: a client certificate of the cluster's CA, or a token of `tokens`. */
export type KubeconfigUser =
  | { readonly username: string; readonly groups?: readonly string[]; readonly notAfter?: Date }
  | { readonly token: string }

const dayMs = 86_400_000

/** The part that kubectl needs to find Secrets. */
const discovery: Readonly<Record<string, object>> = {
  '/api': { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
  '/api/v1': {
    kind: 'APIResourceList',
    groupVersion: 'v1',
    resources: [
      { name: 'secrets', singularName: 'secret', namespaced: true, kind: 'Secret', verbs: ['get', 'list'] },
    ],
  },
}
const administrator: KubeconfigUser = { username: 'kubernetes-admin', groups: ['system:masters'] }

/** Starts an API server on loopback. api-server.md is its contract. */
export async function startApiServer(options: FakeOptions = {}): Promise<FakeApiServer> {
  const server = new FakeApiServer(options)
  await server.listen()
  return server
}

export class FakeApiServer {
  /** The CA of server and clients, which `signer: 'controller'` also uses for signing. */
  readonly signingCa: CertificateAuthority
  readonly caPem: string
  readonly faults = new Faults()
  readonly calls: SeenCall[] = []
  /** The total number of TCP connections, and the maximum of concurrent ones. */
  connections = 0
  mostConnections = 0
  signer: Signer | undefined
  rules: readonly AccessRule[]
  /** Throws Refused for an object that a policy rejects at its creation. */
  admit: ((key: Key, object: Json, username: string) => void) | undefined
  /** Returns the program in a container as a kubelet starts it, or throws Refused. */
  exec: ((asked: FakeExec) => ChildProcessWithoutNullStreams) | undefined
  /** Users whose credentials the server no longer accepts. */
  readonly refusedUsers = new Set<string>()
  /** The subprotocols of exec that the server offers. */
  execProtocols: readonly string[] = ['v5.channel.k8s.io', 'v4.channel.k8s.io']
  readonly #store: Store
  readonly #options: FakeOptions
  readonly #now: () => Date
  readonly #sockets = new Set<Duplex>()
  readonly #server

  constructor(options: FakeOptions) {
    this.#options = options
    this.#now = options.now ?? (() => new Date())
    this.#store = new Store(this.#now)
    this.rules = options.rules ?? []
    const key = generatePrivateKey(parseKeyType('ECDSA-P256'))
    const certificate = issueRoot(
      { subject: { commonName: 'kubernetes' }, ttlMs: 3650 * dayMs },
      key,
      this.#now(),
      randomBytes(8).toString('hex'),
    )
    this.signingCa = { names: { ca: 'ca.pem', key: 'ca-key.pem' }, certificate, key }
    this.caPem = writePem('CERTIFICATE', certificate.der)
    this.signer =
      options.signer === 'controller' ? controllerSigner(this.signingCa, this.#now) : options.signer
    const { dns = ['localhost', 'kubernetes'], ip = ['127.0.0.1', '::1'] } = options.servingNames ?? {}
    const serving = this.issue('kube-apiserver', [], {
      usage: 'serverAuth',
      names: { dns, ip },
      ...(options.servingNotAfter && { notAfter: options.servingNotAfter }),
    })
    this.#server = createServer(
      {
        key: serving.key,
        cert: serving.certificate,
        ca: this.caPem,
        requestCert: true,
        rejectUnauthorized: false,
      },
      (request, response) => {
        void this.#answer(request, response)
      },
    )
    // If the machine of a client pauses for a while, its connections stay open.
    this.#server.keepAliveTimeout = 600_000
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      if (!rehearsal.isOn) {
        this.connections++
        this.mostConnections = Math.max(this.mostConnections, this.#sockets.size)
      }
      socket.once('close', () => this.#sockets.delete(socket))
    })
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head))
    this.#store.listen((event) => this.#sign(event))
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`
  }

  get openConnections(): number {
    return this.#sockets.size
  }

  /** Closes the server and all connections. */
  async close(): Promise<void> {
    this.dropConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Stores an object as if a client had created it, or replaces the existing one. */
  put(key: Key, object: Json): Stored {
    const name = (object.metadata as { name: string }).name
    if (!this.#store.has(key, name)) return this.#store.create(key, object)
    return this.#store.replace(key, name, {}, () => object)
  }

  /** Returns the stored object; undefined if there is none. */
  peek(key: Key, name: string): Stored | undefined {
    return this.#store.has(key, name) ? this.#store.get(key, name) : undefined
  }

  all(key: Key): Stored[] {
    return this.#store.all(key)
  }

  remove(key: Key, name: string): void {
    this.#store.delete(key, name)
  }

  /** Calls the listener after each change. */
  onChange(listener: (event: Event) => void): void {
    this.#store.listen(listener)
  }

  /** Compacts the store: continued lists and watches that start at a version get 410. */
  compact(): void {
    this.#store.compact()
  }

  /** Writes a kubeconfig for a user (default: an administrator). Returns its path. */
  writeKubeconfig(path: string, user: KubeconfigUser = administrator, cluster: Json = {}): string {
    const base64 = (text: string): string => Buffer.from(text).toString('base64')
    const credential = (): Json => {
      if ('token' in user) return { token: user.token }
      const { username, groups = [], notAfter } = user
      const issued = this.issue(username, groups, { usage: 'clientAuth', ...(notAfter && { notAfter }) })
      return {
        'client-certificate-data': base64(issued.certificate),
        'client-key-data': base64(issued.key),
      }
    }
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'fake',
          cluster: { server: this.url, 'certificate-authority-data': base64(this.caPem), ...cluster },
        },
      ],
      users: [{ name: 'someone', user: credential() }],
      contexts: [{ name: 'someone@fake', context: { cluster: 'fake', user: 'someone' } }],
      'current-context': 'someone@fake',
    }
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, JSON.stringify(config, undefined, 2), { mode: 0o600 })
    return path
  }

  /** Issues a certificate and key in PEM from the cluster's CA. */
  issue(
    commonName: string,
    organization: readonly string[],
    {
      usage,
      names = {},
      notAfter = new Date(this.#now().getTime() + 365 * dayMs),
    }: {
      usage: 'serverAuth' | 'clientAuth'
      names?: { dns?: readonly string[]; ip?: readonly string[] }
      notAfter?: Date
    },
  ): { certificate: string; key: string } {
    const key = generatePrivateKey(parseKeyType('ECDSA-P256'))
    const der = issueCertificate(
      {
        serialNumber: randomBytes(8).toString('hex').replace(/^./, '1'),
        subject: { commonName, organization: [...organization] },
        issuer: this.signingCa.certificate.subject,
        notBefore: new Date(Math.min(this.#now().getTime(), notAfter.getTime()) - dayMs),
        notAfter,
        publicKey: key,
        keyUsage: ['digitalSignature'],
        extendedKeyUsage: [usage],
        basicConstraints: { ca: false },
        subjectAltNames: { dns: [...(names.dns ?? [])], ip: [...(names.ip ?? [])] },
      },
      this.signingCa.key,
    )
    return { certificate: writePem('CERTIFICATE', der), key: writePrivateKey(key, 'pkcs8') }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('Date', this.#now().toUTCString())
    const text = await bodyOf(request)
    const url = new URL(request.url ?? '/', 'https://fake')
    const route = routeOf(request.method ?? 'GET', url)
    const user = impersonated(this.#userOf(request), request)
    if (user === undefined) return send(response, statusOf(new Refused(401, 'Unauthorized', 'Unauthorized')))
    // RBAC comes first: a user who may not list a kind gets 403 even where the kind is not served.
    const isHidden = route !== undefined && this.#isUnknown(route) && isAllowed(this.rules, user, route)
    if (route === undefined || isHidden)
      return send(response, this.#plain(url.pathname, request.headers.accept))
    const fault = rehearsal.isOn ? undefined : this.faults.next(route)
    if (!rehearsal.isOn)
      this.calls.push({ ...attributesOf(route), username: user.username, fault: fault?.kind })
    try {
      if (fault !== undefined && before(fault, request, response)) return
      if (!isAllowed(this.rules, user, route)) throw forbidden(user, route)
      if (route.verb === 'watch' && fault?.kind === 'hostile') return fault.answer!(response, undefined)
      if (route.verb === 'watch')
        return this.#watch(url, route, { request, response, cut: fault?.kind === 'cut' })
      const object = text === '' ? {} : (JSON.parse(text) as Json)
      const contentType = request.headers['content-type'] ?? ''
      const result = this.#perform({ route, url, object, user, contentType })
      if (fault !== undefined && after(fault, request, response, result)) return
      send(response, { status: route.verb === 'create' ? 201 : 200, body: result })
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      send(response, statusOf(error))
    }
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = new URL(request.url ?? '/', 'https://fake')
    const route = routeOf('GET', url)
    const user = impersonated(this.#userOf(request), request)
    try {
      if (user === undefined) throw new Refused(401, 'Unauthorized', 'Unauthorized')
      const { name = '', namespace = '', subresource } = route ?? {}
      if (route === undefined || subresource !== 'exec') throw new Refused(404, 'NotFound', 'not found')
      const fault = this.faults.next(route)
      this.calls.push({ ...attributesOf(route), username: user.username, fault: fault?.kind })
      if (fault?.kind === 'reset-before') return void socket.destroy()
      if (fault !== undefined)
        throw new Refused(500, 'InternalError', 'error dialing backend: connection refused')
      if (!isAllowed(this.rules, user, route)) throw forbidden(user, route)
      this.#store.get({ group: '', version: 'v1', resource: 'pods', namespace }, name)
      const { username } = user
      const query = url.searchParams
      const program = this.exec?.({
        ...{ namespace, pod: name, username },
        container: query.get('container') ?? '',
        command: query.getAll('command'),
      })
      if (program === undefined) throw new Refused(404, 'NotFound', 'no exec')
      serveExec(request, socket, head, program, this.execProtocols)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      const { status, body } = statusOf(error)
      const text = JSON.stringify(body)
      socket.end(
        `HTTP/1.1 ${status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
      )
    }
  }

  #isUnknown({ group, resource, key }: Route): boolean {
    const isCustom = this.#options.customGroups?.includes(group) === true
    if ((!groups.has(group) && !isCustom) || this.#options.without?.includes(resource) === true) return true
    return group === 'certificates.k8s.io' && this.#certificateKinds(key.version)[resource] === undefined
  }

  /** Returns the kinds of certificates.k8s.io in a version. `signers` has rights but no objects. */
  #certificateKinds(version: string): Readonly<Record<string, string>> {
    const all = { certificatesigningrequests: 'v1', signers: 'v1', ...this.#options.certificateKinds }
    return Object.fromEntries(Object.entries(all).filter(([, served]) => served === version))
  }

  #discovered(path: string): object | undefined {
    const [, group, version] = /^\/apis\/(certificates\.k8s\.io)(?:\/([^/]+))?$/.exec(path) ?? []
    if (group === undefined) return discovery[path]
    const versions = [...new Set(['v1', ...Object.values(this.#options.certificateKinds ?? {})])]
    if (version === undefined)
      return {
        kind: 'APIGroup',
        name: group,
        versions: versions.map((one) => ({ groupVersion: `${group}/${one}`, version: one })),
      }
    if (!versions.includes(version)) return undefined
    const names = Object.keys(this.#certificateKinds(version)).filter((name) => name !== 'signers')
    return {
      kind: 'APIResourceList',
      groupVersion: `${group}/${version}`,
      resources: names.map((name) => ({ name })),
    }
  }

  #plain(path: string, accept = ''): { status: number; body: unknown } {
    // Its only media type (pkg/routes/openidmetadata.go). A request for another one gets 406.
    if (path === '/openid/v1/jwks')
      return /application\/jwk-set\+json|\*\/\*/.test(accept)
        ? { status: 200, body: { keys: [{ kty: 'RSA', use: 'sig', kid: 'one' }] } }
        : { status: 406, body: '406: Not Acceptable\n' }
    if (path === '/version') return { status: 200, body: { major: '1', minor: '36', gitVersion: 'v1.36.3' } }
    if (path === '/readyz' || path === '/livez' || path === '/healthz') return { status: 200, body: 'ok' }
    const known = this.#discovered(path)
    return known === undefined ? { status: 404, body: '404 page not found\n' } : { status: 200, body: known }
  }

  #perform({ route, url, object, user, contentType }: Work): Json {
    const { key, name, verb, subresource } = route
    const dryRun = rehearsal.isOn || url.searchParams.get('dryRun') === 'All'
    const review = verb === 'create' && this.#review(key, object, user)
    if (review) return review
    const isRequest = key.resource === 'certificatesigningrequests'
    switch (verb) {
      case 'list':
        return this.#list(key, url)
      case 'get':
        return this.#store.get(key, name!)
      case 'create':
        refuseName(object)
        this.admit?.(key, object, user.username)
        return this.#store.create(key, isRequest ? newRequest(object, user) : object, dryRun)
      case 'delete': {
        const { preconditions } = object as { preconditions?: Json }
        if (dryRun) this.#store.get(key, name!)
        else this.#store.delete(key, name!, preconditions)
        return { apiVersion: 'v1', kind: 'Status', status: 'Success' }
      }
      default:
    }
    const now = this.#now()
    const given = verb === 'patch' ? patched(this.#store.get(key, name!), object, contentType) : object
    const preconditions = verb === 'patch' ? object : given
    const change = (old: Stored): Json => {
      if (isRequest) {
        if (subresource !== undefined) this.#refuseSigner(user, old, given, subresource)
        return changedRequest(old, given, subresource, now)
      }
      if (subresource === 'status') return { ...old, status: given.status }
      return 'status' in old && subresource === undefined
        ? { ...given, status: given.status ?? old.status }
        : given
    }
    return this.#store.replace(key, name!, Array.isArray(preconditions) ? {} : preconditions, change, dryRun)
  }

  #list(key: Key, url: URL): Json {
    const query = url.searchParams
    const matches = selector(query.get('labelSelector'), query.get('fieldSelector'), key)
    const page = this.#store.page(key, matches, Number(query.get('limit') ?? 0), query.get('continue'))
    return {
      kind: `${kindOf(key)}List`,
      apiVersion: apiVersionOf(key),
      metadata: {
        resourceVersion: String(page.version),
        ...(page.next && { continue: page.next, remainingItemCount: page.left }),
      },
      // As in the API server, items have neither kind nor apiVersion.
      items: page.items.map(({ kind, apiVersion, ...item }) => item),
    }
  }

  #watch(url: URL, { key, name }: Route, { request, response, cut }: WatchConnection): void {
    const query = url.searchParams
    const fields = name === undefined ? query.get('fieldSelector') : `metadata.name=${name}`
    const matches = selector(query.get('labelSelector'), fields, key)
    response.writeHead(200, { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' })
    response.flushHeaders()
    const emit = (type: string, object: Json): void => {
      response.write(`${JSON.stringify({ type, object })}\n`)
    }
    const tell = (event: Event): void => {
      const { group, resource, namespace } = event.key
      if (group !== key.group || resource !== key.resource) return
      if (key.namespace !== undefined && namespace !== key.namespace) return
      if (!matches(event.object)) return
      emit(event.type, event.object)
      if (cut) end(() => request.socket.destroy())
    }
    const stop = this.#store.listen(tell)
    const bookmark = (): void =>
      emit('BOOKMARK', {
        kind: kindOf(key),
        apiVersion: apiVersionOf(key),
        metadata: { resourceVersion: String(this.#store.version) },
      })
    const allows = query.get('allowWatchBookmarks') === 'true'
    const bookmarks = allows ? setInterval(bookmark, this.#options.bookmarkMs ?? 60_000) : undefined
    const seconds = Number(query.get('timeoutSeconds') ?? 1800)
    const timer = setTimeout(() => {
      if (allows) bookmark()
      end(() => response.end())
    }, seconds * 1000)
    const end = (how: () => void): void => {
      stop()
      clearInterval(bookmarks)
      clearTimeout(timer)
      how()
    }
    response.once('close', () => end(() => {}))
    try {
      const from = query.get('resourceVersion') ?? ''
      if (from === '' || from === '0')
        for (const object of this.#store.all(key).filter(matches)) emit('ADDED', object)
      else for (const event of this.#store.since(Number(from))) tell(event)
    } catch (error) {
      emit('ERROR', statusOf(error as Refused).body as Json)
      end(() => response.end())
    }
  }

  /** The access and identity reviews, which store nothing. */
  #review({ group, resource }: Key, object: Json, user: FakeUser): Json | undefined {
    const spec = (object.spec ?? {}) as {
      user?: string
      groups?: string[]
      resourceAttributes?: Partial<Attributes>
    }
    const verdict = (who: Pick<FakeUser, 'username' | 'groups'>): Json => {
      const attributes = { verb: '', group: '', resource: '', ...spec.resourceAttributes }
      return { ...object, status: { allowed: isAllowed(this.rules, who, attributes) } }
    }
    switch (`${group}/${resource}`) {
      case 'authentication.k8s.io/selfsubjectreviews': {
        const { username, groups, uid, extra } = user
        return { ...object, status: { userInfo: { username, uid, groups, extra } } }
      }
      case 'authorization.k8s.io/selfsubjectaccessreviews':
        return verdict(user)
      case 'authorization.k8s.io/subjectaccessreviews':
        return verdict({ username: spec.user ?? '', groups: spec.groups ?? [] })
      case 'authorization.k8s.io/selfsubjectrulesreviews': {
        const own = this.rules.filter((rule) => isFor(rule, user))
        const everything = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }
        const resourceRules = own.map(({ verbs, groups, resources, names }) => ({
          verbs,
          apiGroups: groups,
          resources,
          ...(names && { resourceNames: names }),
        }))
        const isMaster = user.groups.includes('system:masters')
        const rules = isMaster ? [everything, ...resourceRules] : resourceRules
        return { ...object, status: { resourceRules: rules, nonResourceRules: [], incomplete: false } }
      }
      default:
        return undefined
    }
  }

  /** The admission plugins CertificateApproval and CertificateSigning. */
  #refuseSigner(user: FakeUser, old: Stored, given: Json, subresource: string): void {
    const { spec, status } = old as unknown as RequestObject
    const after = (given as unknown as RequestObject).status
    if (subresource === 'status' && JSON.stringify(after ?? {}) === JSON.stringify(status ?? {})) return
    const verb = subresource === 'approval' ? 'approve' : 'sign'
    const ask = (name: string): boolean =>
      isAllowed(this.rules, user, { verb, group: 'certificates.k8s.io', resource: 'signers', name })
    if (ask(spec.signerName) || ask(`${spec.signerName.split('/')[0]}/*`)) return
    throw new Refused(
      403,
      'Forbidden',
      `certificatesigningrequests.certificates.k8s.io "${old.metadata.name}" is forbidden: user not permitted to ${verb} requests with signerName "${spec.signerName}"`,
    )
  }

  #sign({ type, key, object }: Event): void {
    if (this.signer === undefined || type === 'DELETED' || key.resource !== 'certificatesigningrequests')
      return
    setImmediate(() => {
      const { name, resourceVersion } = object.metadata
      const now = this.peek(key, name)
      if (now?.metadata.resourceVersion !== resourceVersion) return
      const request = now as unknown as RequestObject
      const answer = this.signer?.(request)
      if (answer === undefined) return
      const failed = { type: 'Failed', status: 'True', reason: 'SignerValidationFailure' }
      const status =
        'failed' in answer
          ? {
              ...request.status,
              conditions: [...(request.status?.conditions ?? []), { ...failed, message: answer.failed }],
            }
          : { ...request.status, certificate: Buffer.from(answer.certificatePem).toString('base64') }
      this.#store.replace(key, name, now, (old) =>
        changedRequest(old, { ...now, status }, 'status', this.#now()),
      )
    })
  }

  #userOf(request: IncomingMessage): FakeUser | undefined {
    const user = this.#authenticated(request)
    return user !== undefined && this.refusedUsers.has(user.username) ? undefined : user
  }

  #authenticated(request: IncomingMessage): FakeUser | undefined {
    const authenticated = 'system:authenticated'
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    if (bearer !== undefined) {
      const user = this.#options.tokens?.[bearer]
      return user && { ...user, groups: [...user.groups, authenticated] }
    }
    const socket = request.socket as TLSSocket
    const peer = socket.getPeerX509Certificate()
    if (peer === undefined) return { username: 'system:anonymous', groups: ['system:unauthenticated'] }
    // By the server's injected clock, so that a test can let a certificate expire.
    const isInTime = peer.validFromDate <= this.#now() && this.#now() <= peer.validToDate
    if (!isInTime || (!socket.authorized && String(socket.authorizationError) !== 'CERT_HAS_EXPIRED'))
      return undefined
    const fields = peer.subject.split('\n').map((field) => field.split(/=(.*)/s))
    const values = (type: string): string[] =>
      fields.filter(([name]) => name === type).map(([, value = '']) => value)
    return { username: values('CN')[0] ?? '', groups: [...values('O'), authenticated] }
  }
}

/** A user with all rights may impersonate other users. */
function impersonated(user: FakeUser | undefined, { headers }: IncomingMessage): FakeUser | undefined {
  const name = headers['impersonate-user']
  if (user === undefined || typeof name !== 'string' || !user.groups.includes('system:masters')) return user
  const groups = String(headers['impersonate-group'] ?? '').split(', ')
  const uid = headers['impersonate-uid']
  const extra = Object.entries(headers).filter(([header]) => header.startsWith('impersonate-extra-'))
  return {
    username: name,
    groups: [...groups.filter((group) => group !== ''), 'system:authenticated'],
    ...(typeof uid === 'string' && { uid }),
    ...(extra.length > 0 && {
      extra: Object.fromEntries(
        extra.map(([header, value]) => [
          decodeURIComponent(header.slice('impersonate-extra-'.length)),
          String(value).split(', '),
        ]),
      ),
    }),
  }
}

interface Work {
  readonly route: Route
  readonly url: URL
  readonly object: Json
  readonly user: FakeUser
  readonly contentType: string
}

interface WatchConnection {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly cut: boolean
}

interface Route {
  readonly verb: string
  readonly key: Key
  readonly group: string
  readonly resource: string
  readonly name?: string
  readonly namespace?: string
  readonly subresource?: string
}

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/** The API groups of a server without extensions. */
const groups = new Set([
  '',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'apps',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'batch',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'networking.k8s.io',
  'rbac.authorization.k8s.io',
  'storage.k8s.io',
])

function routeOf(method: string, url: URL): Route | undefined {
  const parts = url.pathname.split('/').slice(1).map(decodeURIComponent)
  const isCore = parts[0] === 'api'
  if (!isCore && parts[0] !== 'apis') return undefined
  const [group, version, ...rest] = isCore ? ['', ...parts.slice(1)] : parts.slice(1)
  if (group === undefined || version === undefined || rest.length === 0) return undefined
  const isNamespaced = rest[0] === 'namespaces' && rest.length > 2
  const [resource = '', name, subresource] = isNamespaced ? rest.slice(2) : rest
  const reads = url.searchParams.get('watch') === 'true' ? 'watch' : name === undefined ? 'list' : 'get'
  return {
    verb: verbs[method] ?? reads,
    key: { group, version, resource, ...(isNamespaced && { namespace: rest[1] }) },
    group,
    resource,
    ...(name !== undefined && { name }),
    ...(isNamespaced && { namespace: rest[1] }),
    ...(subresource !== undefined && { subresource }),
  }
}

function attributesOf({ verb, group, resource, name, namespace, subresource }: Route): Attributes {
  return {
    verb,
    group,
    resource,
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(subresource !== undefined && { subresource }),
  }
}

/** Applies the part of a fault before acting. Returns true when the call is finished. */
function before(fault: Fault, request: IncomingMessage, response: ServerResponse): boolean {
  const { retryAfterSeconds = 1 } = fault
  const refuse = (status: number, reason: string, headers: Record<string, string> = {}): true => {
    send(response, {
      ...statusOf(new Refused(status, reason, `a fault of the test: ${fault.kind}`)),
      headers,
    })
    return true
  }
  switch (fault.kind) {
    case 'conflict':
      return refuse(409, 'Conflict')
    case 'too-many-requests':
      return refuse(429, 'TooManyRequests', { 'Retry-After': String(retryAfterSeconds) })
    case 'internal':
      return refuse(500, 'InternalError')
    case 'unavailable':
      return refuse(503, 'ServiceUnavailable')
    case 'expired':
      send(response, statusOf(tooOld()))
      return true
    case 'reset-before':
      request.socket.destroy()
      return true
    case 'hang':
      return true
    default:
      return false
  }
}

/** Applies the part of a fault after acting. */
function after(fault: Fault, request: IncomingMessage, response: ServerResponse, result: Json): boolean {
  switch (fault.kind) {
    case 'reset-after':
      request.socket.destroy()
      return true
    case 'hang-after':
      return true
    case 'hostile':
      fault.answer!(response, result)
      return true
    case 'internal-after':
      send(response, statusOf(new Refused(500, 'InternalError', 'a fault of the test: internal-after')))
      return true
    case 'cut': {
      const text = JSON.stringify(result)
      response.writeHead(200, {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(text),
      })
      response.write(text.slice(0, text.length / 2), () => request.socket.destroy())
      return true
    }
    default:
      return false
  }
}

function patched(old: Stored, patch: Json, contentType: string): Json {
  if (contentType.includes('json-patch')) return jsonPatched(old, patch as unknown as JsonOperation[])
  // In the kinds that tests patch, both kinds of merge replace lists.
  return merged(old, patch) as Json
}

function merged(target: unknown, patch: unknown): unknown {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch
  const result: Json =
    target !== null && typeof target === 'object' && !Array.isArray(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name]
    else result[name] = merged(result[name], value)
  }
  return result
}

interface JsonOperation {
  readonly op: 'add' | 'replace' | 'remove' | 'test'
  readonly path: string
  readonly value?: unknown
}

function jsonPatched(old: Stored, operations: readonly JsonOperation[]): Json {
  const result = structuredClone(old) as Json
  for (const { op, path, value } of operations) {
    const steps = path
      .split('/')
      .slice(1)
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    const last = steps.pop() ?? ''
    const at = steps.reduce<Json | undefined>((node, step) => node?.[step] as Json | undefined, result)
    const isThere = at !== undefined && last in at
    if (at === undefined || (op !== 'add' && !isThere))
      throw new Refused(
        422,
        'Invalid',
        `the server rejected our request due to an error in our request: ${path}`,
      )
    if (op === 'test') {
      if (JSON.stringify(at[last]) !== JSON.stringify(value))
        throw new Refused(422, 'Invalid', `the server rejected our request: test ${path} failed`)
    } else if (op === 'remove') delete at[last]
    else if (Array.isArray(at))
      at.splice(last === '-' ? at.length : Number(last), op === 'add' ? 0 : 1, value)
    else at[last] = value
  }
  return result
}

function refuseName({ metadata = {} }: Json): void {
  const { name, generateName } = metadata as { name?: string; generateName?: string }
  if (!name && !generateName)
    throw new Refused(422, 'Invalid', 'metadata.name: Required value: name or generateName is required')
  if (name && (name === '.' || name === '..' || /[/%]/.test(name)))
    throw new Refused(422, 'Invalid', `metadata.name: Invalid value: "${name}": may not contain '/' or '%'`)
}

function forbidden(user: FakeUser, { verb, group, resource, name, subresource }: Route): Refused {
  const what = subresource === undefined ? resource : `${resource}/${subresource}`
  const kind = group === '' ? resource : `${resource}.${group}`
  return new Refused(
    403,
    'Forbidden',
    `${kind}${name === undefined ? '' : ` "${name}"`} is forbidden: User "${user.username}" cannot ${verb} resource "${what}" in API group "${group}" at the cluster scope`,
    { name, group, kind: resource },
  )
}

function statusOf({ status, reason, message, details }: Refused): { status: number; body: unknown } {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    details,
    code: status,
  }
  return { status, body }
}

function send(
  response: ServerResponse,
  { status, body, headers = {} }: { status: number; body: unknown; headers?: Record<string, string> },
): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const type = typeof body === 'string' ? 'text/plain' : 'application/json'
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text), ...headers })
  response.end(text)
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

const kinds: Readonly<Record<string, string>> = {
  certificatesigningrequests: 'CertificateSigningRequest',
  validatingadmissionpolicies: 'ValidatingAdmissionPolicy',
  configmaps: 'ConfigMap',
  endpointslices: 'EndpointSlice',
  servicecidrs: 'ServiceCIDR',
}

function kindOf({ resource }: Key): string {
  const word = resource.endsWith('ies') ? `${resource.slice(0, -3)}y` : resource.replace(/s$/, '')
  return kinds[resource] ?? word.charAt(0).toUpperCase() + word.slice(1)
}

function apiVersionOf({ group, version }: Key): string {
  return group === '' ? version : `${group}/${version}`
}
