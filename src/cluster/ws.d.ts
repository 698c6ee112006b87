// The part of the package ws that kcert and its tests use. client-node installs ws without types, and those of DefinitelyTyped
// describe ten times as much.
declare module 'ws' {
  import type { EventEmitter } from 'node:events'
  import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
  import type { Duplex } from 'node:stream'

  interface ClientOptions {
    readonly agent?: Agent
    readonly headers?: Readonly<Record<string, string | readonly string[]>>
    readonly handshakeTimeout?: number
    readonly perMessageDeflate?: boolean
    /** In bytes. */
    readonly maxPayload?: number
  }

  interface Events {
    open: []
    message: [data: Buffer, isBinary: boolean]
    close: [code: number, reason: Buffer]
    error: [error: Error]
    ping: [data: Buffer]
    pong: [data: Buffer]
    'unexpected-response': [request: ClientRequest, response: IncomingMessage]
  }

  export default class WebSocket extends EventEmitter<Events> {
    constructor(url: string, protocols: readonly string[], options: ClientOptions)
    readonly protocol: string
    send(data: Uint8Array, done?: (error?: Error) => void): void
    ping(): void
    pause(): void
    resume(): void
    close(code?: number): void
    terminate(): void
  }

  export class WebSocketServer extends EventEmitter {
    constructor(options: {
      readonly noServer: true
      readonly handleProtocols: (offered: ReadonlySet<string>) => string | false
    })
    handleUpgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Buffer,
      done: (socket: WebSocket) => void,
    ): void
  }
}
