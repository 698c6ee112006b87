import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { KcertError } from '../errors/kcert-error.ts'
import type { Source } from '../inspection/source.ts'
import { writePem } from '../x509/pem.ts'
import { certificateList } from './certificate-list.ts'
import type { Endpoint } from './endpoint.ts'

// A handshake's answer is a few KiB; a server that talks more is no server to listen to.
const mostBytesKept = 1024 * 1024

/**
 * Returns the chain that a server presents, as PEM in the order that it was sent. Trusts nobody and sends nothing: no client
 * certificate, no request. A server that insists on a client certificate has shown its own before it hangs up.
 * Throws KCERT_UNREACHABLE when no chain was seen within the time.
 */
export async function readServed(endpoint: Endpoint, timeoutMs: number): Promise<Source> {
  const certificates = await servedChain(endpoint, timeoutMs)
  const pem = certificates.map((der) => writePem('CERTIFICATE', der)).join('')
  return { name: endpoint.name, bytes: Buffer.from(pem) }
}

function servedChain(endpoint: Endpoint, timeoutMs: number): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const tcp = connectTcp({ host: endpoint.host, port: endpoint.port })
    const tap = new Tap(tcp)
    const tls = connectTls({
      socket: tap,
      rejectUnauthorized: false,
      // Without a store of its own OpenSSL cannot complete the chain from it with what was not sent.
      ca: [],
      // Also the weakest key has to be seen to be reported; nothing is sent that would need protection.
      ciphers: 'DEFAULT:@SECLEVEL=0',
      minVersion: 'TLSv1.2',
      ...(isIP(endpoint.host) ? {} : { servername: endpoint.host.replace(/\.$/, '') }),
    })
    let finished = false
    let secret: Buffer | undefined
    const timer = setTimeout(() => finish(timedOut()), timeoutMs)

    tls.on('keylog', (line: Buffer) => {
      secret ??= handshakeSecret(line)
    })
    tls.on('secureConnect', () => finish())
    tls.on('error', finish)
    tls.on('close', () =>
      finish(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })),
    )
    tcp.on('error', finish)

    function finish(error?: Error): void {
      if (finished) return
      finished = true
      clearTimeout(timer)
      const chain = certificateList(tap.received(), secret) ?? orderedChain(tls)
      tls.destroy()
      tcp.destroy()
      if (chain.length > 0) resolve(chain)
      else reject(unreachable(endpoint, error ?? new Error('the server showed no certificate'), timeoutMs))
    }
  })
}

/** Stands between the socket and TLS and keeps a copy of what the server sends. */
class Tap extends Duplex {
  readonly #socket: Socket
  readonly #kept: Buffer[] = []
  #keptBytes = 0

  constructor(socket: Socket) {
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

// "SERVER_HANDSHAKE_TRAFFIC_SECRET <client random> <secret>", as NSS writes its key log. It protects this one handshake only.
function handshakeSecret(line: Buffer): Buffer | undefined {
  const [label, , secret] = line.toString('latin1').trim().split(' ')
  return label === 'SERVER_HANDSHAKE_TRAFFIC_SECRET' && secret ? Buffer.from(secret, 'hex') : undefined
}

// What node:tls makes of the chain: leaf first, then issuers as far as it finds them. Only where the message could not be read.
function orderedChain(tls: TLSSocket): Buffer[] {
  const chain: Buffer[] = []
  let certificate: DetailedPeerCertificate | undefined = tls.getPeerCertificate(true)
  while (certificate?.raw && !chain.some((der) => der.equals(certificate!.raw))) {
    chain.push(certificate.raw)
    certificate = certificate.issuerCertificate
  }
  return chain
}

function timedOut(): Error {
  return Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })
}

function unreachable({ name, host, port }: Endpoint, error: Error, timeoutMs: number): KcertError {
  return new KcertError('KCERT_UNREACHABLE', `${name} showed no certificate`, {
    why: reasonOf(error, timeoutMs),
    next: `nc -vz ${host} ${port}`,
    cause: error,
  })
}

function reasonOf(error: Error, timeoutMs: number): string {
  const first = error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error
  const { code } = first as NodeJS.ErrnoException
  switch (code) {
    case 'ECONNREFUSED':
      return 'nothing listens there: the connection was refused'
    case 'ENOTFOUND':
      return 'no address is known for that name'
    case 'EAI_AGAIN':
      return 'the name could not be looked up: the name server does not answer'
    case 'ETIMEDOUT':
      return `no answer within ${timeoutMs / 1000} s (--timeout)`
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return 'no route leads there'
    case 'ECONNRESET':
    case 'EPIPE':
      return 'the connection was closed before a certificate came'
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return 'what answers there does not speak TLS'
    default:
      return code === undefined ? first.message : `${first.message} (${code})`
  }
}
