import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, checkServerIdentity, connect, type PeerCertificate } from 'node:tls'
import { readWhole } from '../system/pipes.ts'

/** One HTTP request over a new connection: a fresh handshake shows what a pooled connection would hide. */
interface HttpCall {
  /** A connection to the server; destroyed at the end. */
  readonly stream: Duplex
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs?: number
}

export interface HttpsCall extends HttpCall {
  /** PEM, sent whether or not the server requests certificates of this CA. */
  readonly client?: { readonly certificate: string; readonly key: string }
  /** The required server identity. Without `name`, any certificate of the CAs is accepted; without `trust`, any certificate. */
  readonly trust?: { readonly ca: string; readonly name?: string }
}

export interface HttpsAnswer {
  readonly status: number
  readonly body: string
}

const mostBytes = 64 * 1024 * 1024

/** Returns the server's response. Throws the original error of the socket, of TLS or of HTTP. */
export function callHttps(call: HttpsCall): Promise<HttpsAnswer> {
  return exchange(call, connect(tlsOptions(call)), call.trust?.name, readAll)
}

type PlainCall = Pick<HttpCall, 'stream' | 'path' | 'timeoutMs'>

/** Returns the status of a GET without TLS: kubelet and kube-proxy report their health this way on loopback. */
export function callHttp(call: PlainCall): Promise<{ status: number }> {
  return exchange(call, call.stream, undefined, async () => '')
}

/** Returns the response to a GET without TLS: etcd serves its metrics this way on loopback. */
export function readHttp(call: PlainCall): Promise<HttpsAnswer> {
  return exchange(call, call.stream, undefined, readAll)
}

function exchange(
  { stream, method = 'GET', path, headers = {}, body, timeoutMs = 10_000 }: HttpCall,
  connection: Duplex,
  host = 'localhost',
  read: (answer: IncomingMessage) => Promise<string>,
): Promise<HttpsAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request({
      method,
      path,
      // Any duplex stream works for reads and writes.
      createConnection: () => connection as Socket,
      headers: {
        Host: host,
        'User-Agent': 'kcert',
        Connection: 'close',
        ...(body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
        ...headers,
      },
    })
    const timer = setTimeout(() => fail(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs)
    const end = (): void => {
      clearTimeout(timer)
      sent.destroy()
      connection.destroy()
      stream.destroy()
    }
    const fail = (error: Error): void => {
      end()
      reject(error)
    }
    stream.on('error', fail)
    if (connection !== stream) connection.on('error', fail)
    sent.on('error', fail)
    sent.on('response', (answer) => {
      read(answer).then((text) => {
        end()
        resolve({ status: answer.statusCode ?? 0, body: text })
      }, fail)
    })
    sent.end(body)
  })
}

function tlsOptions({ stream, client, trust }: HttpsCall): ConnectionOptions {
  return {
    socket: stream,
    ALPNProtocols: ['http/1.1'],
    ...(client === undefined ? {} : { cert: client.certificate, key: client.key }),
    ...(trust === undefined
      ? { rejectUnauthorized: false }
      : {
          ca: trust.ca,
          checkServerIdentity: (_host: string, peer: PeerCertificate) =>
            trust.name === undefined ? undefined : checkServerIdentity(trust.name, peer),
        }),
  }
}

async function readAll(answer: IncomingMessage): Promise<string> {
  const body = await readWhole(answer, mostBytes)
  if (body === undefined) throw new Error(`the answer is larger than ${mostBytes >> 20} MiB`)
  return body.toString('utf8')
}
