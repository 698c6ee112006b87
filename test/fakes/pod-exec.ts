import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { killGroup } from '../../src/system/process-group.ts'

// The subresource exec of pods, as API servers and kubelets serve it: k8s.io/apimachinery/pkg/util/remotecommand. The program is a
// process of this machine. When its connection is lost, its input ends and it goes on, as in a container.

/** Serves a program over a WebSocket with the first of these protocols that the client offers. */
export function serveExec(
  request: IncomingMessage,
  stream: Duplex,
  head: Buffer,
  program: ChildProcessWithoutNullStreams,
  protocols: readonly string[],
): void {
  const server = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => protocols.find((one) => offered.has(one)) ?? false,
  })
  server.handleUpgrade(request, stream, head, (socket) => {
    const send = (channel: number, bytes: Uint8Array): void =>
      socket.send(Buffer.concat([Buffer.of(channel), bytes]))
    program.stdin.on('error', () => {})
    program.stdout.on('data', (bytes: Buffer) => send(1, bytes))
    program.stderr.on('data', (bytes: Buffer) => send(2, bytes))
    program.once('error', () => killGroup(program))
    program.once('close', (code, signal) => {
      const status = code ?? 128 + (signal === 'SIGKILL' ? 9 : 15)
      const failure = {
        status: 'Failure',
        reason: 'NonZeroExitCode',
        details: { causes: [{ reason: 'ExitCode', message: `${status}` }] },
      }
      send(3, Buffer.from(JSON.stringify(status === 0 ? { status: 'Success' } : failure)))
      socket.close(1000)
    })
    socket.on('message', (data) => {
      if (data[0] === 0) program.stdin.write(data.subarray(1))
      else if (data[0] === 255 && socket.protocol === 'v5.channel.k8s.io') program.stdin.end()
    })
    socket.on('error', () => {})
    socket.on('close', () => program.stdin.end())
  })
}
