import { isIP } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { certificateList } from './certificate-list.ts'

// A handshake's answer is a few KiB; a server that talks more is no server to listen to.
const mostBytesKept = 1024 * 1024

/**
 * Returns the chain that a server shows over a connection, as DER in the order that it was sent. Trusts nobody and sends nothing:
 * no client certificate, no request. A server that insists on a client certificate has shown its own before it hangs up.
 * `host` is what SNI says when it is a name. Throws the error of the connection when no chain was seen within the time; the
 * connection is ended either way.
 */
export function shownChain(connection: Duplex, host: string, timeoutMs: number): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const tap = new Tap(connection)
    const tls = connectTls({
      socket: tap,
      rejectUnauthorized: false,
      // Without a store of its own OpenSSL cannot complete the chain from it with what was not sent.
      ca: [],
      // Also the weakest key has to be seen to be reported; nothing is sent that would need protection.
      ciphers: 'DEFAULT:@SECLEVEL=0',
      minVersion: 'TLSv1.2',
      ...(isIP(host) ? {} : { servername: host.replace(/\.$/, '') }),
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
    connection.on('error', finish)

    function finish(error?: Error): void {
      if (finished) return
      finished = true
      clearTimeout(timer)
      const chain = certificateList(tap.received(), secret) ?? orderedChain(tls)
      tls.destroy()
      connection.destroy()
      if (chain.length > 0) resolve(chain)
      else reject(error ?? new Error('the server showed no certificate'))
    }
  })
}

/** Stands between the socket and TLS and keeps a copy of what the server sends. */
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
