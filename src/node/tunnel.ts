import { spawn } from 'node:child_process'
import { Duplex } from 'node:stream'
import { lastLines } from './session.ts'
import type { Transport } from './transport.ts'

// A TCP connection that begins on a node: to what listens on its loopback, and to addresses that only nodes reach. The bytes go
// through the node as they are, so TLS ends in kcert's own process and no key leaves it.

// Copies both ways until one end closes. /dev/tcp is bash's own; one of the others is on most nodes without bash.
const inBash =
  'exec 3<>"/dev/tcp/$1/$2" 4<&0 || exit 1; cat <&3 & a=$!; cat <&4 >&3 & b=$!; wait -n; kill $a $b 2>/dev/null; exit 0'

// On one line, as transports pass it on.
const script = [
  'PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  `if command -v bash >/dev/null; then exec bash -c '${inBash}' bash "$1" "$2"; fi`,
  'if command -v nc >/dev/null; then exec nc "$1" "$2"; fi',
  'if command -v socat >/dev/null; then exec socat - "TCP:$1:$2"; fi',
  "echo 'none of bash, nc and socat is there' >&2; exit 127",
].join('; ')

// What the shell on the node needs to end by itself when its input ends.
const endingMs = 2_000

/**
 * Returns a connection from the node to an address as the node sees it. It is made as soon as something is written; that it
 * cannot be is an `error` event of the stream, with what the node said. The one who opens it destroys it.
 */
export function openTunnel(transport: Transport, host: string, port: number): Duplex {
  const [program = '', ...args] = transport.start(`set -- '${checked(host)}' '${port}'; ${script}`)
  const child = spawn(program, args, { stdio: 'pipe', detached: true })
  let stderr = ''
  child.stderr.on('data', (bytes: Buffer) => {
    stderr = `${stderr}${bytes.toString('utf8')}`.slice(-2_048)
  })
  child.stdin.on('error', () => {})
  const stream = new Duplex({
    read: () => void child.stdout.resume(),
    write: (chunk, _encoding, done) => void child.stdin.write(chunk, () => done()),
    final: (done) => void child.stdin.end(() => done()),
    destroy: (error, done) => {
      child.stdin.end()
      child.stdout.destroy()
      const patience = setTimeout(() => child.kill(), endingMs)
      child.once('close', () => clearTimeout(patience))
      done(error)
    },
  })
  child.stdout.on('data', (bytes: Buffer) => {
    if (!stream.push(bytes)) child.stdout.pause()
  })
  child.once('error', (error) => stream.destroy(error))
  child.once('close', (status) => {
    if (stream.destroyed) return
    if (status === 0 || stderr === '') stream.push(null)
    else stream.destroy(Object.assign(new Error(lastLines(stderr)), { code: 'ECONNREFUSED' }))
  })
  return stream
}

/** A name or an address: it is put between quotes of a shell. */
function checked(host: string): string {
  if (/^[\w.:][\w.:-]*$/.test(host)) return host
  throw new TypeError(`${JSON.stringify(host)} is not a host name or address`)
}
