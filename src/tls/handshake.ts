import { type IncomingMessage, request } from 'node:http'
import { isIP } from 'node:net'
import { Duplex } from 'node:stream'
import {
  connect as connectTls,
  createSecureContext,
  type DetailedPeerCertificate,
  type SecureContext,
  type TLSSocket,
} from 'node:tls'
import type { Question } from '../probe/client-verdict.ts'
import type { Observed } from '../probe/target.ts'
import { type ServerFlight, serverFlight, tls13Suites } from './server-flight.ts'

// A handshake's answer is a few KiB. kcert stops reading from a server that sends more than this.
const mostBytesKept = 1024 * 1024
const mostOfAnswer = 64 * 1024
// Servers without session tickets are rare, and each costs this much time.
const longestWaitForTicketMs = 500

export type TlsVersion = NonNullable<Observed['version']>

export interface HandshakeOptions {
  /** Sent as SNI if it is a name. */
  readonly host: string
  /** For the whole handshake, including the response to a request. */
  readonly timeoutMs: number
  /** The only TLS version to offer. */
  readonly version?: TlsVersion | undefined
  /** PEM. Sent to a server that requests a client certificate, for any CA. */
  readonly client?: { readonly certificate: string; readonly key: string } | undefined
  /** The request to send after a client certificate: with TLS 1.3 a server rejects it only after the handshake. */
  readonly ask?: Question | undefined
}

/**
 * Returns the chain that a server presents over a connection, without a client certificate or a request. Throws as `handshake`
 * does.
 */
export async function shownChain(connection: Duplex, host: string, timeoutMs: number): Promise<Uint8Array[]> {
  const { chain } = await handshake(connection, { host, timeoutMs })
  return [...chain]
}

/**
 * Returns what a server presents over a connection, and its response to a client certificate. Does not verify the server. Throws
 * the error of the connection when no chain was received within the timeout. The connection is closed in both cases.
 */
export function handshake(connection: Duplex, options: HandshakeOptions): Promise<Observed> {
  const { host, timeoutMs, version, client, ask } = options
  return new Promise((resolve, reject) => {
    const began = performance.now()
    let connected: number | undefined
    let shaken: number | undefined
    connection.once('connect', () => {
      connected = performance.now()
    })
    const tap = new Tap(connection)
    const tls = connectTls({
      socket: tap,
      rejectUnauthorized: false,
      secureContext: contextOf(version, client),
      ...(isIP(host) ? {} : { servername: host.replace(/\.$/, '') }),
    })
    let finished = false
    let secret: Buffer | undefined
    const timer = setTimeout(() => finish({ fault: connectionError('ETIMEDOUT', 'timed out') }), timeoutMs)

    tls.on('keylog', (line: Buffer) => {
      secret ??= handshakeSecret(line)
    })
    let sendRequest = (): void => {}
    tls.on('secureConnect', () => {
      shaken = performance.now()
      if (client === undefined || ask === undefined) return finish({})
      if (serverFlight(tap.received(), secret)?.clientAuthorities === undefined) return finish({})
      let isSent = false
      sendRequest = () => {
        if (isSent || finished) return
        isSent = true
        answerOf(tls, ask).then(
          (answer) => finish({ answer }),
          (fault: Error) => finish({ fault }),
        )
      }
      // With TLS 1.3 the server checks the client certificate after this point, and sends a session ticket or an alert. A request
      // that arrives after the server has closed resets the connection, and the kernel then drops an unread alert.
      if (tls.getProtocol() === 'TLSv1.3') setTimeout(sendRequest, longestWaitForTicketMs).unref()
      else sendRequest()
    })
    tls.on('session', () => sendRequest())
    const fail = (fault: Error): void => finish({ fault })
    tls.on('error', fail)
    tls.on('close', () => fail(connectionError('ECONNRESET', 'the connection was closed')))
    connection.on('error', fail)

    function finish({ fault, answer }: { fault?: Error; answer?: NonNullable<Observed['answer']> }): void {
      if (finished) return
      finished = true
      clearTimeout(timer)
      const flight = serverFlight(tap.received(), secret)
      const chain = flight?.certificates ?? orderedChain(tls)
      const cipher = flight === undefined ? undefined : cipherOf(flight, tls)
      tls.destroy()
      connection.destroy()
      if (chain.length === 0) {
        reject(fault ?? new Error('the server sent no certificate'))
        return
      }
      resolve({
        chain,
        clientAuthorities: flight?.clientAuthorities,
        version: flight && (flight.isTls13 ? 'TLSv1.3' : 'TLSv1.2'),
        cipher,
        connectMs: connected === undefined ? undefined : connected - began,
        handshakeMs: (shaken ?? performance.now()) - (connected ?? began),
        answer,
        fault,
      })
    }
  })
}

const contexts = new Map<TlsVersion | undefined, SecureContext>()

/** Creating one takes as long as the handshake itself, so handshakes without a client certificate share them. */
function contextOf(version: TlsVersion | undefined, client: HandshakeOptions['client']): SecureContext {
  const known = client === undefined ? contexts.get(version) : undefined
  if (known !== undefined) return known
  const made = createSecureContext({
    // An empty list: with its default store, OpenSSL could add certificates to the chain that were not sent.
    ca: [],
    // Even the weakest key must be received to be reported. Nothing is sent that needs protection.
    ciphers: 'DEFAULT:@SECLEVEL=0',
    minVersion: version ?? 'TLSv1.2',
    ...(version === undefined ? {} : { maxVersion: version }),
    ...(client === undefined ? {} : { cert: client.certificate, key: client.key }),
  })
  if (client === undefined) contexts.set(version, made)
  return made
}

function cipherOf({ suite }: ServerFlight, tls: TLSSocket): string {
  // OpenSSL does not name the suite if the handshake is incomplete.
  const known = tls13Suites.get(suite)
  if (known !== undefined) return known.name
  return tls.getCipher()?.standardName ?? `0x${suite.toString(16).padStart(4, '0')}`
}

function answerOf(tls: TLSSocket, question: Question): Promise<{ status: number; body: string }> {
  const { method, path, headers = {}, body } = question
  return new Promise((resolve, reject) => {
    const asked = request({
      method,
      path,
      createConnection: () => tls,
      headers: {
        Host: 'localhost',
        'User-Agent': 'kcert',
        Connection: 'close',
        ...(body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
        ...headers,
      },
    })
    asked.on('error', reject)
    asked.on('response', (answer) => {
      beginningOf(answer).then((text) => resolve({ status: answer.statusCode ?? 0, body: text }), reject)
    })
    asked.end(body)
  })
}

async function beginningOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer) {
    const bytes = Buffer.from(chunk)
    chunks.push(bytes)
    size += bytes.length
    if (size > mostOfAnswer) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** A stream between the socket and TLS that keeps a copy of the server's data. */
class Tap extends Duplex {
  readonly #socket: Duplex
  readonly #kept: Buffer[] = []
  #keptBytes = 0

  constructor(socket: Duplex) {
    super()
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => {
      if (this.#keptBytes < mostBytesKept) this.#kept.push(chunk)
      this.#keptBytes += chunk.length
      if (!this.push(chunk)) socket.pause()
    })
    socket.on('end', () => this.push(null))
  }

  received(): Buffer {
    return Buffer.concat(this.#kept)
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done)
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }
}

// "SERVER_HANDSHAKE_TRAFFIC_SECRET <client random> <secret>", as in NSS key logs. It protects only this handshake.
function handshakeSecret(line: Buffer): Buffer | undefined {
  const [label, , secret] = line.toString('latin1').trim().split(' ')
  return label === 'SERVER_HANDSHAKE_TRAFFIC_SECRET' && secret ? Buffer.from(secret, 'hex') : undefined
}

// The chain as node:tls orders it: leaf first, then the issuers that it finds. Used only if the message could not be read.
function orderedChain(tls: TLSSocket): Buffer[] {
  const chain: Buffer[] = []
  let certificate: DetailedPeerCertificate | undefined = tls.getPeerCertificate(true)
  for (let der = certificate?.raw; der && !chain.some((one) => one.equals(der)); der = certificate?.raw) {
    chain.push(der)
    certificate = certificate?.issuerCertificate
  }
  return chain
}

function connectionError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
