import { Duplex } from 'node:stream'
import type { RunningProgram } from '../system/running-program.ts'
import { lastLines } from './session.ts'
import type { Transport } from './transport.ts'

// A TCP connection that starts on a node: to its loopback listeners, and to addresses that only nodes can reach. The node
// forwards the bytes unchanged, so TLS ends in kcert's own process and no key leaves it.

// Copies in both directions until one end closes. /dev/tcp is a bash feature; most nodes without bash have one of the others.
const inBash =
  'exec 3<>"/dev/tcp/$1/$2" 4<&0 || exit 1; cat <&3 & a=$!; cat <&4 >&3 & b=$!; wait -n; kill $a $b 2>/dev/null; exit 0'

// On one line, because transports pass it on as one line.
const script = [
  'PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  `if command -v bash >/dev/null; then exec bash -c '${inBash}' bash "$1" "$2"; fi`,
  'if command -v nc >/dev/null; then exec nc "$1" "$2"; fi',
  'if command -v socat >/dev/null; then exec socat - "TCP:$1:$2"; fi',
  "echo 'none of bash, nc and socat is installed' >&2; exit 127",
].join('; ')

// The time that the shell on the node needs to exit after its input ends.
const endingMs = 2_000

/**
 * Returns a connection from the node to an address, as the node resolves it. It opens at once; what is written before is kept. If it
 * fails, the stream emits an `error` event with the node's message. The caller destroys the stream.
 */
export function openTunnel(transport: Transport, host: string, port: number): Duplex {
  const line = `set -- '${checked(host)}' '${port}'; ${script}`
  const abandoned = new AbortController()
  let program: RunningProgram | undefined
  let stderr = ''
  const stream: Duplex = new Duplex({
    construct: (done) => {
      transport.start(line, abandoned.signal).then((started) => {
        program = started
        attach(started)
        done()
      }, done)
    },
    read: () => void program?.stdout.resume(),
    write: (chunk, _encoding, done) => void program?.stdin.write(chunk, () => done()),
    final: (done) => void program?.stdin.end(() => done()),
    destroy: (error, done) => {
      abandoned.abort()
      if (program !== undefined) end(program)
      done(error)
    },
  })
  const attach = ({ stdout, stderr: errors, closed }: RunningProgram): void => {
    errors.on('data', (bytes: Buffer) => {
      stderr = `${stderr}${bytes.toString('utf8')}`.slice(-2_048)
    })
    stdout.on('data', (bytes: Buffer) => {
      if (!stream.push(bytes)) stdout.pause()
    })
    void closed.then(({ status, cause }) => {
      if (cause !== undefined) stream.destroy(cause)
      else if (status === 0 || stderr === '') stream.push(null)
      else stream.destroy(Object.assign(new Error(lastLines(stderr)), { code: 'ECONNREFUSED' }))
    })
  }
  return stream
}

function end({ stdin, stdout, closed, kill }: RunningProgram): void {
  stdin.end()
  stdout.destroy()
  const patience = setTimeout(kill, endingMs)
  void closed.then(() => clearTimeout(patience))
}

/** Returns a host name or address that is safe inside shell quotes. Throws TypeError for anything else. */
function checked(host: string): string {
  if (/^[\w.:][\w.:-]*$/.test(host)) return host
  throw new TypeError(`${JSON.stringify(host)} is not a host name or address`)
}
