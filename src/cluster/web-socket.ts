import type { IncomingMessage } from 'node:http'
import WebSocket from 'ws'
import type { Access } from './credentials.ts'
import { type Transport, Unanswered } from './transport.ts'

// A message of the API server has at most 32 KiB.
const mostMessageBytes = 4 * 1024 * 1024
const handshakeMs = 30_000

/** An open WebSocket, or the response of a server that refused it. */
export type Upgrade =
  | { readonly status: 101; readonly socket: WebSocket }
  | { readonly status: number; readonly response: IncomingMessage }

/**
 * Returns the result of a request for a WebSocket with one of these protocols, over the connections, CAs and proxies of other
 * requests. Throws Unanswered.
 */
export function requestWebSocket(
  transport: Transport,
  path: string,
  protocols: readonly string[],
  access: Access,
): Promise<Upgrade> {
  const { url, agent } = transport.place(path, access)
  const { promise, resolve, reject } = Promise.withResolvers<Upgrade>()
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols, {
    agent,
    headers: { ...access.headers, 'User-Agent': 'kcert' },
    handshakeTimeout: handshakeMs,
    perMessageDeflate: false,
    maxPayload: mostMessageBytes,
  })
  socket.once('open', () => resolve({ status: 101, socket }))
  socket.once('unexpected-response', (_, response) => {
    resolve({ status: response.statusCode ?? 0, response })
  })
  // Also for errors after the opening, which the event close follows.
  socket.on('error', (error) => reject(new Unanswered(error, false)))
  return promise
}
