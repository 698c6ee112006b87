import { isIP } from 'node:net'

/** The address of a server. */
export interface Endpoint {
  /** As the operator entered it, without scheme and path. */
  readonly name: string
  /** A name or an IP address, without brackets. */
  readonly host: string
  readonly port: number
}

const hostAndPort = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([^\s/:[\]@]+)):(\d{1,5})$/
const url = /^https:\/\/([^/?#@]+)(?:[/?#].*)?$/

/**
 * Returns host and port of `host:6443`, `192.0.2.1:6443`, `[2001:db8::1]:6443` or an https URL as in a kubeconfig;
 * undefined for anything else. A file of that name takes precedence: callers check for one first.
 */
export function parseEndpoint(text: string): Endpoint | undefined {
  const authority = url.exec(text)?.[1]
  const name = authority?.replace(/(?<!:\d+)$/, ':443') ?? text
  const [, bracketed, plain, digits] = hostAndPort.exec(name) ?? []
  const host = bracketed ?? plain
  const port = Number(digits)
  if (host === undefined || port < 1 || port > 65_535) return undefined
  if (bracketed !== undefined && isIP(bracketed) !== 6) return undefined
  return { name, host, port }
}
