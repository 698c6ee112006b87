import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'
import type { Duplex } from 'node:stream'

/** Returns the status that a server answers to a GET without TLS: kubelet and kube-proxy say so on loopback whether they are well. */
export function callHttp({
  stream,
  path,
  timeoutMs = 10_000,
}: {
  readonly stream: Duplex
  readonly path: string
  readonly timeoutMs?: number
}): Promise<{ readonly status: number }> {
  return new Promise((resolve, reject) => {
    const sent = request({
      path,
      // A stream of any kind does for what is written and read.
      createConnection: () => stream as never,
      headers: { Host: 'localhost', 'User-Agent': 'kcert', Connection: 'close' },
    })
    const timer = setTimeout(() => fail(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs)
    const fail = (error: Error): void => {
      clearTimeout(timer)
      stream.destroy()
      reject(error)
    }
    stream.on('error', fail)
    sent.on('error', fail)
    sent.on('response', (answer: IncomingMessage) => {
      clearTimeout(timer)
      answer.resume()
      stream.destroy()
      resolve({ status: answer.statusCode ?? 0 })
    })
    sent.end()
  })
}
