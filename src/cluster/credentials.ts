import { X509Certificate } from 'node:crypto'
import { type Agent as HttpAgent, validateHeaderValue } from 'node:http'
import type { RequestOptions } from 'node:https'
import { isIP } from 'node:net'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import type { KubeConfig } from '@kubernetes/client-node'
import { messageOf, orUndefined, systemCode } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { withoutBrackets } from '../errors/host-port.ts'
import type { Clock } from '../system/clock.ts'
import { loadKubeConfig } from './client-node.ts'
import { proxyFor } from './environment-proxy.ts'
import { type ExecCredential, runCredentialProgram, type Surroundings } from './exec-credential.ts'
import { namedFile, type SelectedContext, unusable } from './kubeconfig-files.ts'

type Fields = Readonly<Record<string, unknown>>

/** The credentials of a request, and how the server is verified. */
export interface Access {
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** Undefined where the server uses plain HTTP. Then kcert sends no secret either. */
  readonly tls: TlsAccess | undefined
  /** client-node's agent, if a proxy is used. */
  readonly proxyAgent: HttpAgent | undefined
}

export interface TlsAccess {
  /** The number of trusted CAs. */
  readonly caCount: number
  readonly secureContext: SecureContext
  readonly verifies: boolean
  /** tls-server-name, or the host of the server. */
  readonly serverName: string
}

/** Describes the user without secrets. */
export interface UserDescription {
  /** The user's name in the kubeconfig. */
  readonly name: string
  /** "client certificate", "token", "token file", "credential program aws" … */
  readonly credential: string
  /** The client certificate, if the user has one. */
  readonly certificate?: { readonly subject: string; readonly notAfter: Date; readonly file?: string }
}

// client-go reads token files again after a minute. It keeps a program's credential until it expires.
const keptMs = 60_000

/** A client certificate and its key, as PEM. */
export interface ClientPair {
  readonly certificate: string
  readonly key: string
}

/** The server and the credentials of the user. Files are read again and programs run again when their result may be stale. */
export class Credentials {
  readonly server: URL
  readonly #selected: SelectedContext
  readonly #surroundings: Surroundings
  readonly #clock: Clock
  #held: { access: Access; goodUntil: number } | undefined
  #pending: Promise<Access> | undefined
  #certificate: string | undefined
  #pair: ClientPair | undefined
  #firstCa = 0

  constructor(server: URL, selected: SelectedContext, surroundings: Surroundings, clock: Clock) {
    this.server = server
    this.#selected = selected
    this.#surroundings = surroundings
    this.#clock = clock
  }

  /** Returns the credentials for a request. */
  async access(): Promise<Access> {
    const held = this.#held
    if (held !== undefined && this.#clock().getTime() < held.goodUntil) return held.access
    this.#pending ??= this.#load().finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  /**
   * Returns true when the next request may use other credentials: the server rejected them, and a file or program supplies them.
   */
  renew(used: Access): boolean {
    if (!isRenewable(this.#selected.user)) return false
    if (this.#held?.access === used) this.#held = undefined
    return true
  }

  /**
   * Returns true when another order of the same CAs may be tried. OpenSSL takes the first CA with the issuer's name and fails on
   * its signature. This happens with an old and a new CA of the same name if the certificate has no authority key identifier.
   */
  reorder(used: Access): boolean {
    if (this.#held?.access !== used) return true
    if (used.tls === undefined || this.#firstCa + 1 >= used.tls.caCount) return false
    this.#firstCa++
    this.#held = undefined
    return true
  }

  /** Returns the client certificate and its key, to present to another server; undefined for users without one. */
  async clientPair(): Promise<ClientPair | undefined> {
    await this.access()
    return this.#pair
  }

  /** Returns the client certificate of the last request, for messages. */
  get certificate(): X509Certificate | undefined {
    const pem = this.#certificate
    return pem === undefined ? undefined : orUndefined(() => new X509Certificate(pem))
  }

  async #load(): Promise<Access> {
    const now = this.#clock().getTime()
    const { access, expiresAt } = await this.#read()
    this.#held = { access, goodUntil: Math.min(now + keptMs, expiresAt ?? Number.POSITIVE_INFINITY) }
    return access
  }

  async #read(): Promise<{ access: Access; expiresAt?: number }> {
    if (this.server.protocol === 'http:') {
      return { access: { headers: {}, tls: undefined, proxyAgent: undefined } }
    }
    const { cluster, user } = this.#selected
    const proxy = cluster['proxy-url'] || proxyFor(this.server, this.#surroundings.env)
    const withProxy = { ...cluster, server: this.server.href, ...(proxy && { 'proxy-url': proxy }) }
    const credential = await this.#credentialOf(user, cluster)
    const config = await loadKubeConfig({
      cluster: withFilesRead(withProxy, ['certificate-authority']),
      user: asClientNodeReadsUser(user, credential),
    })
    const access = await this.#accessOf(config, withProxy, user)
    const expiresAt = credential?.expiresAt?.getTime()
    return { access, ...(expiresAt !== undefined && { expiresAt }) }
  }

  async #credentialOf(user: Fields, cluster: Fields): Promise<ExecCredential | undefined> {
    const { exec, token } = user
    if (typeof exec !== 'object' || exec === null || token) return undefined
    return runCredentialProgram(exec as Fields, cluster, this.#surroundings, this.#selected.kubectl)
  }

  async #accessOf(config: KubeConfig, cluster: Fields, user: Fields): Promise<Access> {
    const options: RequestOptions = {}
    try {
      await config.applyToHTTPSOptions(options)
    } catch (error) {
      throw this.#unusable(error)
    }
    const serverName = String(cluster['tls-server-name'] || bareHost(this.server))
    const { cert, key } = options
    this.#certificate = cert && String(cert)
    this.#pair = cert && key ? { certificate: String(cert), key: String(key) } : undefined
    const cas = this.#caBundle(options.ca)
    return {
      headers: this.#headersOf(options, user),
      tls: {
        caCount: cas?.length ?? 0,
        secureContext: this.#secureContext(options, cas),
        verifies: options.rejectUnauthorized !== false,
        serverName,
      },
      proxyAgent: cluster['proxy-url'] ? (options.agent as HttpAgent) : undefined,
    }
  }

  /** The CAs of the kubeconfig. After `reorder`, another CA is first. */
  #caBundle(ca: RequestOptions['ca']): string[] | undefined {
    // Without a CA, Go uses the system's CAs, not those that Node ships.
    if (ca === undefined) {
      const roots = getCACertificates('system')
      return roots.length > 0 ? roots : undefined
    }
    const blocks = String(ca).match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
    if (blocks.length === 0) throw this.#unusable(new Error('the CA contains no PEM certificate'))
    return [...blocks.slice(this.#firstCa), ...blocks.slice(0, this.#firstCa)]
  }

  #secureContext({ cert, key }: RequestOptions, cas: string[] | undefined): SecureContext {
    try {
      return createSecureContext({
        minVersion: 'TLSv1.2',
        ...given({ ca: cas, cert, key }),
      })
    } catch (error) {
      throw this.#unusable(error)
    }
  }

  #headersOf(options: RequestOptions, user: Fields): Access['headers'] {
    const headers = headersOf(options, user)
    try {
      for (const [name, value] of Object.entries(headers))
        for (const text of [value].flat()) validateHeaderValue(name, text)
      return headers
    } catch {
      throw this.#unusable(new Error('the token or a name has a character that is invalid in an HTTP header'))
    }
  }

  #unusable(error: unknown): Error {
    const code = systemCode(error)
    const reason =
      code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH'
        ? 'the client key does not belong to the client certificate'
        : code?.startsWith('ERR_OSSL')
          ? `the client certificate, its key or the CA cannot be used (${code})`
          : messageOf(error)
    const { userName, files, source } = this.#selected
    return unusable(`invalid credentials of user ${JSON.stringify(userName)} in ${source}`, {
      why: reason,
      next: commandLine`kcert inspect ${files}`,
    })
  }
}

/** Returns a description of the user without secrets. */
export function describeUser(selected: SelectedContext, certificate?: X509Certificate): UserDescription {
  const { user, userName } = selected
  const file = user['client-certificate']
  return {
    name: userName,
    credential: credentialKind(user),
    ...(certificate && {
      certificate: {
        subject: certificate.subject.split('\n').reverse().join(','),
        notAfter: certificate.validToDate,
        ...(typeof file === 'string' && file !== '' && { file }),
      },
    }),
  }
}

function credentialKind(user: Fields): string {
  if (user.token) return 'token'
  if (user.tokenFile) return 'token file'
  if (user.exec) return `credential program ${String((user.exec as Fields).command)}`
  if (user['auth-provider']) return `auth-provider ${String((user['auth-provider'] as Fields).name)}`
  if (user.username) return 'password'
  return user['client-certificate'] || user['client-certificate-data'] ? 'client certificate' : 'none'
}

function isRenewable(user: Fields): boolean {
  return !user.token && Boolean(user.exec || user.tokenFile || user['auth-provider'])
}

/** Returns the fields with the content of the files that they name, as client-go reads them. Inline data takes precedence. */
function withFilesRead(fields: Fields, names: readonly string[]): Fields {
  const read = names.map((name) => {
    const [file, data] = [fields[name], fields[`${name}-data`]]
    if (data || typeof file !== 'string' || file === '') return { [name]: undefined }
    return { [name]: undefined, [`${name}-data`]: Buffer.from(namedFile(file, name)).toString('base64') }
  })
  return Object.assign({}, fields, ...read) as Fields
}

/** client-node would read files of any type and size, does not support tokenFile, and must not run programs itself. */
function asClientNodeReadsUser(user: Fields, credential: ExecCredential | undefined): Fields {
  const { exec: _, tokenFile, ...rest } = user
  const provider = rest['auth-provider'] as Fields | undefined
  const encoded = (pem: string): string => Buffer.from(pem).toString('base64')
  return {
    ...withFilesRead(rest, credential?.certificate === undefined ? ['client-certificate', 'client-key'] : []),
    ...(provider && {
      'auth-provider': {
        ...provider,
        config: withFilesRead((provider.config ?? {}) as Fields, ['idp-certificate-authority']),
      },
    }),
    ...(typeof tokenFile === 'string' && tokenFile !== '' && !user.token
      ? { token: Buffer.from(namedFile(tokenFile, 'tokenFile')).toString('utf8').trim() }
      : {}),
    ...(credential?.token !== undefined && { token: credential.token }),
    ...(credential?.certificate !== undefined && {
      'client-certificate': undefined,
      'client-certificate-data': encoded(credential.certificate),
      'client-key': undefined,
      'client-key-data': encoded(credential.key ?? ''),
    }),
  }
}

function headersOf(options: RequestOptions, user: Fields): Access['headers'] {
  const given = (options.headers ?? {}) as Record<string, unknown>
  const headers: Record<string, string | readonly string[]> = {}
  // A token from a file ends with a newline, which is not allowed in a header.
  for (const [name, value] of Object.entries(given)) headers[name] = String(value).trim()
  if (options.auth) headers.Authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`
  return { ...headers, ...impersonationOf(user) }
}

/** The impersonation fields that client-node ignores: as-uid, as-groups and as-user-extra. */
function impersonationOf(user: Fields): Access['headers'] {
  if (!user.as) return {}
  const groups = Array.isArray(user['as-groups']) ? user['as-groups'].map(String) : []
  const extra = Object.entries((user['as-user-extra'] ?? {}) as Record<string, unknown>)
  return {
    ...(user['as-uid'] ? { 'Impersonate-Uid': String(user['as-uid']) } : {}),
    ...(groups.length > 0 && { 'Impersonate-Group': groups }),
    ...Object.fromEntries(
      extra.map(([key, values]) => [
        `Impersonate-Extra-${encodeURIComponent(key)}`,
        (Array.isArray(values) ? values : [values]).map(String),
      ]),
    ),
  }
}

/** The host of a URL without the brackets of IPv6. */
export function bareHost({ hostname }: URL): string {
  const bare = withoutBrackets(hostname)
  return isIP(bare) ? bare : hostname
}
