import { connect as connectTcp } from 'node:net'
import { commandLine } from '../errors/command-line.ts'
import { hostPort } from '../errors/host-port.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Source } from '../inspection/source.ts'
import { Certificate } from '../x509/certificate.ts'
import { writePem } from '../x509/pem.ts'
import type { Endpoint } from './endpoint.ts'
import { shownChain } from './handshake.ts'

/**
 * Returns the chain that a server presents, as PEM in the order that it was sent. Does not verify the server and sends neither a
 * client certificate nor a request. A server that requires a client certificate presents its chain before it closes the
 * connection. Throws KCERT_UNREACHABLE when no chain was received within the timeout.
 */
export async function readServed(endpoint: Endpoint, timeoutMs: number): Promise<Source> {
  const certificates = await servedChain(endpoint, timeoutMs)
  const pem = certificates.map((der) => writePem('CERTIFICATE', der)).join('')
  return { name: endpoint.name, bytes: Buffer.from(pem) }
}

/** Returns the same chain as certificates. Throws as readServed does, and KCERT_X509_MALFORMED. */
export async function servedCertificates(endpoint: Endpoint, timeoutMs: number): Promise<Certificate[]> {
  return (await servedChain(endpoint, timeoutMs)).map((der) => Certificate.parse(der))
}

async function servedChain(endpoint: Endpoint, timeoutMs: number): Promise<Uint8Array[]> {
  const { host, port } = endpoint
  try {
    return await shownChain(connectTcp({ host, port }), host, timeoutMs)
  } catch (error) {
    throw unreachable(endpoint, error instanceof Error ? error : new Error(String(error)), timeoutMs)
  }
}

function unreachable(
  { name, host, port }: Endpoint,
  error: NodeJS.ErrnoException,
  timeoutMs: number,
): KcertError {
  return new KcertError('KCERT_UNREACHABLE', `TLS connection to ${name} failed`, {
    why: reasonOf(error, timeoutMs),
    ...(alertOf(error.code) === 'protocol version' && {
      fix: 'enable TLS 1.2 or TLS 1.3 on the server: every client of Kubernetes requires one of them',
    }),
    next: nextAfter(error, { host, port }),
    cause: error,
  })
}

/** Returns why no chain was received, in words. */
export function reasonOf(error: Error, timeoutMs: number): string {
  const first = error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error
  const { code }: NodeJS.ErrnoException = first
  const known = reasons[code ?? '']
  if (known !== undefined) return known
  if (code === 'ETIMEDOUT') return `no answer within ${timeoutMs / 1000} s (--timeout)`
  const alert = alertOf(code)
  if (alert !== undefined) return `it ends the handshake without sending a certificate (TLS alert: ${alert})`
  return code === undefined ? first.message : `${first.message} (${code})`
}

const noRoute = 'no route to host'
const closed = 'the connection was closed before the server sent a certificate'
const noTls = 'the server does not use TLS'
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: nothing listens there',
  ENOTFOUND: 'no such host: the name has no address',
  EAI_AGAIN: 'the name server does not answer',
  EHOSTUNREACH: noRoute,
  ENETUNREACH: noRoute,
  ECONNRESET: closed,
  EPIPE: closed,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
}

function alertOf(code = ''): string | undefined {
  return /^ERR_SSL_\w*?ALERT_(\w+)$/.exec(code)?.[1]?.toLowerCase().replaceAll('_', ' ')
}

/** Returns what to do when no chain was received. If the port answers, the network is not the cause. */
export function nextAfter(
  error: NodeJS.ErrnoException,
  { host, port }: Pick<Endpoint, 'host' | 'port'>,
): string {
  const { code = '' } = error
  if (code.startsWith('ERR_SSL')) return commandLine`openssl s_client -connect ${hostPort(host, port)}`
  return commandLine`nc -vz ${host} ${port}`
}
