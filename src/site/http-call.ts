import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, checkServerIdentity, connect, type PeerCertificate } from 'node:tls'
import { readWhole } from '../system/pipes.ts'

/** One HTTP request over a connection of its own: what a pooled connection would hide, a fresh handshake shows. */
interface HttpCall {
  /** A connection to the server; destroyed in the end. */
  readonly stream: Duplex
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs?: number
}

interface HttpsCall extends HttpCall {
  /** PEM, sent whether the server asks for this CA's or for others. */
  readonly client?: { readonly certificate: string; readonly key: string }
  /** The identity that the server must prove; without `name` any certificate of the CAs will do, without `trust` any at all. */
  readonly trust?: { readonly ca: string; readonly name?: string }
}

export interface HttpsAnswer {
  readonly status: number
  readonly body: string
}

const mostBytes = 64 * 1024 * 1024

/** Returns what the server answered. Throws the error of the socket, of TLS or of HTTP as it came. */
export function callHttps(call: HttpsCall): Promise<HttpsAnswer> {
  return exchange(call, connect(tlsOptions(call)), call.trust?.name, readAll)
}

/** Returns the status that a server answers to a GET without TLS: kubelet and kube-proxy say so on loopback whether they are well. */
export function callHttp(call: Pick<HttpCall, 'stream' | 'path' | 'timeoutMs'>): Promise<{ status: number }> {
  return exchange(call, call.stream, undefined, async () => '')
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
      // A stream of any kind does for what is written and read.
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
  const body = await readWhole(answer as AsyncIterable<Buffer>, mostBytes)
  if (body === undefined) throw new Error(`the answer is larger than ${mostBytes >> 20} MiB`)
  return body.toString('utf8')
}
