import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { issueRoot } from '../../src/ca/root.ts'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { generatePrivateKey, parseKeyType, writePrivateKey } from '../../src/x509/new-key.ts'
import { writePem } from '../../src/x509/pem.ts'

// Many small API servers, of which some are hostile. fleet-servers.md is their contract.

export const hostileKinds = ['hang', 'half', 'lie', 'redirect', 'endless'] as const
export type ServerKind = 'good' | (typeof hostileKinds)[number]

const dayMs = 86_400_000
const base64 = (text: string): string => Buffer.from(text).toString('base64')

export class FleetServer {
  readonly name: string
  readonly kind: ServerKind
  readonly token: string
  /** The number of requests with another token than its own. */
  foreignTokens = 0
  requests = 0
  /** The server that a redirect leads to. */
  victim: FleetServer | undefined
  readonly #caPem: string
  /** The certificate of its only Secret: CN=<name>. */
  readonly #ownPem: string
  readonly #server: Server
  readonly #sockets = new Set<Duplex>()

  constructor(name: string, kind: ServerKind) {
    this.name = name
    this.kind = kind
    this.token = `token-of-${name}-${randomBytes(12).toString('hex')}`
    const now = new Date()
    const caKey = generatePrivateKey(parseKeyType('ECDSA-P256'))
    const ca = issueRoot({ subject: { commonName: `ca-${name}` }, ttlMs: 365 * dayMs }, caKey, now, '01')
    const issue = (commonName: string, serialNumber: string) => {
      const key = generatePrivateKey(parseKeyType('ECDSA-P256'))
      const der = issueCertificate(
        {
          serialNumber,
          subject: { commonName },
          issuer: ca.subject,
          notBefore: new Date(now.getTime() - dayMs),
          notAfter: new Date(now.getTime() + 300 * dayMs),
          publicKey: key,
          keyUsage: ['digitalSignature'],
          extendedKeyUsage: ['serverAuth'],
          basicConstraints: { ca: false },
          subjectAltNames: { dns: [commonName], ip: ['127.0.0.1'] },
        },
        caKey,
      )
      return { cert: writePem('CERTIFICATE', der), key: writePrivateKey(key, 'pkcs8') }
    }
    this.#caPem = writePem('CERTIFICATE', ca.der)
    this.#ownPem = issue(name, '1001').cert
    this.#server = createServer(issue('api.example', '1002'), (request, response) =>
      this.#answer(request, response),
    )
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return this
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Returns a kubeconfig in JSON with one context. */
  kubeconfig(context = this.name): string {
    const cluster = { server: this.url, 'certificate-authority-data': base64(this.#caPem) }
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: { token: this.token } }],
      contexts: [{ name: context, context: { cluster: 'c', user: 'u' } }],
      'current-context': context,
    })
  }

  writeKubeconfig(folder: string, file = `${this.name}.conf`, context = this.name): string {
    mkdirSync(folder, { recursive: true })
    const path = join(folder, file)
    writeFileSync(path, this.kubeconfig(context), { mode: 0o600 })
    return path
  }

  #answer(request: IncomingMessage, response: ServerResponse) {
    this.requests++
    if (request.headers.authorization !== `Bearer ${this.token}`) this.foreignTokens++
    const url = new URL(request.url ?? '/', 'https://x')
    const send = (body: object | string): void => {
      response.setHeader('Content-Type', 'application/json')
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }
    const list = (items: readonly object[], next = ''): void =>
      send({ kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: '1', continue: next }, items })
    const isSecrets = url.pathname.endsWith('/secrets')
    const secret = (name: string, pem: string) => ({
      metadata: { name, namespace: 'shop' },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': base64(pem) },
    })
    switch (this.kind) {
      case 'hang':
        return
      case 'half':
        response.write('{"kind":"List","items":[')
        return
      case 'redirect':
        response.writeHead(307, { Location: `${this.victim?.url ?? ''}${request.url}` }).end()
        return
      case 'lie':
        if (isSecrets) return send({ kind: 'SecretList', items: [{ metadata: { name: 7 } }, 'x'] })
        return send('<html>not an API server</html>')
      case 'endless': {
        const page = Number(url.searchParams.get('continue') ?? 0)
        const items = Array.from({ length: 500 }, (_, index) =>
          secret(`endless-${page}-${index}`, this.#ownPem),
        )
        const isEndless = isSecrets || url.pathname.endsWith('/nodes')
        return list(isEndless ? items : [], isEndless ? `${page + 1}` : '')
      }
      case 'good':
        return list(isSecrets ? [secret('only-here', this.#ownPem)] : [])
    }
  }
}

/** Starts servers, `hostile` of them hostile, each kind in turn, spread among the others. */
export async function startFleet(count: number, hostile: number): Promise<FleetServer[]> {
  const every = hostile === 0 ? Number.POSITIVE_INFINITY : Math.floor(count / hostile)
  const servers: FleetServer[] = []
  let bad = 0
  for (let index = 0; index < count; index++) {
    const isBad = index % every === every - 1 && bad < hostile
    const kind = isBad ? (hostileKinds[bad++ % hostileKinds.length] ?? 'hang') : 'good'
    servers.push(await new FleetServer(`cluster-${String(index).padStart(3, '0')}`, kind).listen())
  }
  const good = servers.filter(({ kind }) => kind === 'good')
  servers.forEach((server, index) => {
    server.victim = good[index % good.length]
  })
  return servers
}
