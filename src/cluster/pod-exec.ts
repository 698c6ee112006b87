import { Readable, Writable } from 'node:stream'
import type WebSocket from 'ws'
import { isObject } from '../errors/is-object.ts'
import type { ProgramEnd, RunningProgram } from '../system/running-program.ts'
import type { ApiClient } from './api-client.ts'
import { objectIn } from './malformed.ts'
import { describeResource, pathOf } from './resource.ts'

/** A container of a pod, and the program to run in it. */
export interface ExecTarget {
  readonly namespace: string
  readonly pod: string
  readonly container: string
  readonly command: readonly string[]
}

/** Programs in the containers of pods (the subresource exec). */
export interface PodExec {
  /**
   * Returns the program, once a kubelet has started it. Throws the same errors as other calls. If its connection is lost, it ends
   * without a status.
   */
  start(target: ExecTarget): Promise<RunningProgram>
}

// k8s.io/apimachinery/pkg/util/remotecommand: each message begins with the number of its channel. v5 added the last one.
const protocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io']
const channels = { stdin: 0, stdout: 1, stderr: 2, status: 3, close: 255 } as const

// client-go sends no longer messages.
const longestMessage = 32 * 1024
// The time that a server needs to end the connection after the program.
const endingMs = 2_000

// A server that drops off the network is detected after 30 s. client-go sends pings as often, and waits for 60 s.
const pingMs = 5_000
const mostPings = 6

export function podExecOf(client: Pick<ApiClient, 'webSocket'>): PodExec {
  return {
    async start({ namespace, pod, container, command }) {
      const resource = {
        group: '',
        version: 'v1',
        resource: 'pods',
        namespace,
        name: pod,
        subresource: 'exec',
      }
      const socket = await client.webSocket(
        {
          method: 'GET',
          path: pathOf(resource),
          query: { container, command, stdin: 'true', stdout: 'true', stderr: 'true' },
          // A pod that is gone gets an HTTP status of 500 too. The caller looks for another one.
          isRepeatable: false,
          purpose: `connect to ${describeResource(resource)}`,
        },
        protocols,
      )
      return programBehind(socket)
    },
  }
}

function programBehind(socket: WebSocket): RunningProgram {
  const output = (): Readable => new Readable({ read: () => socket.resume() })
  const stdout = output()
  const stderr = output()
  const exited = Promise.withResolvers<ProgramEnd>()
  const closed = Promise.withResolvers<ProgramEnd>()
  let end: ProgramEnd | undefined
  let unanswered = 0
  const pings = setInterval(() => {
    if (++unanswered > mostPings) socket.terminate()
    else socket.ping()
  }, pingMs)
  // The stream alone does not keep kcert running.
  pings.unref()
  socket.on('pong', () => {
    unanswered = 0
  })
  socket.on('message', (data: Buffer) => {
    unanswered = 0
    const bytes = data.subarray(1)
    if (data[0] === channels.status) {
      end ??= endIn(bytes)
      exited.resolve(end)
      // A server that does not end the connection would keep kcert running.
      setTimeout(() => socket.terminate(), endingMs).unref()
      return
    }
    const stream = data[0] === channels.stdout ? stdout : data[0] === channels.stderr ? stderr : undefined
    if (bytes.length > 0 && stream?.destroyed === false && !stream.push(bytes)) socket.pause()
  })
  socket.on('close', (code) => {
    clearInterval(pings)
    end ??= { cause: new Error(`the connection through the API server was lost (WebSocket status ${code})`) }
    stdout.push(null)
    stderr.push(null)
    exited.resolve(end)
    closed.resolve(end)
  })
  const send = (channel: number, bytes: Uint8Array, done: () => void): void => {
    const rest = bytes.subarray(longestMessage)
    // A failure is the end of the connection, and `exited` has it.
    socket.send(Buffer.concat([Buffer.of(channel), bytes.subarray(0, longestMessage)]), () => {
      if (rest.length === 0) done()
      else send(channel, rest, done)
    })
  }
  const stdin = new Writable({
    write: (chunk: Buffer, _, done) => send(channels.stdin, chunk, done),
    // In v4 only the end of the connection ends the input.
    final: (done) => {
      if (socket.protocol === protocols[0]) send(channels.close, Buffer.of(channels.stdin), done)
      else done()
    },
  })
  return {
    stdin,
    stdout,
    stderr,
    exited: exited.promise,
    closed: closed.promise,
    kill: () => socket.terminate(),
  }
}

/** Returns the end in a Status: that of the program, or why the kubelet could not run it. */
export function endIn(bytes: Buffer): ProgramEnd {
  const { status, message, details } = objectIn(bytes.toString('utf8')) ?? {}
  if (status === 'Success') return { status: 0 }
  const causes: readonly unknown[] = isObject(details) && Array.isArray(details.causes) ? details.causes : []
  const exit = causes.find((one) => isObject(one) && one.reason === 'ExitCode')
  // A failure with the exit status 0, or with none, is not a success.
  const code = isObject(exit) && typeof exit.message === 'string' ? exit.message : ''
  if (/^[1-9]\d{0,2}$/.test(code)) return { status: Number(code) }
  const why = typeof message === 'string' && message !== '' ? message.slice(0, 2_000) : 'no reason given'
  return { cause: new Error(`the kubelet could not run the program: ${why}`) }
}
