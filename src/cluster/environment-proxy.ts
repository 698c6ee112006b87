import { BlockList, isIP } from 'node:net'
import { isLoopback, withoutBrackets } from '../errors/host-port.ts'

type Env = Readonly<Record<string, string | undefined>>

/**
 * Returns the proxy that HTTPS_PROXY and NO_PROXY select, as Go's clients read them (golang.org/x/net/http/httpproxy); undefined
 * for none. Loopback addresses never use a proxy.
 */
export function proxyFor(server: URL, env: Env): string | undefined {
  const name = server.protocol === 'https:' ? 'https_proxy' : 'http_proxy'
  const proxy = env[name.toUpperCase()] || env[name]
  if (!proxy) return undefined
  const host = withoutBrackets(server.hostname).toLowerCase()
  if (isLoopback(host)) return undefined
  const exceptions = (env.NO_PROXY || env.no_proxy || '').split(',')
  if (exceptions.some((exception) => covers(exception.trim().toLowerCase(), host, server))) return undefined
  return /^[a-z0-9]+:\/\//i.test(proxy) ? proxy : `http://${proxy}`
}

function covers(exception: string, host: string, server: URL): boolean {
  if (exception === '') return false
  if (exception === '*') return true
  if (exception.includes('/')) return isInRange(exception, host)
  const [, name = exception, port] = /^(.*?):(\d+)$/.exec(isIP(exception) ? '' : exception) ?? []
  if (port !== undefined && port !== (server.port || (server.protocol === 'https:' ? '443' : '80')))
    return false
  const bare = withoutBrackets(name).replace(/^\*(?=\.)/, '')
  if (isIP(bare)) return bare === host
  // "example.com" matches itself and its subdomains, ".example.com" only its subdomains.
  return bare.startsWith('.') ? host.endsWith(bare) : host === bare || host.endsWith(`.${bare}`)
}

function isInRange(range: string, host: string): boolean {
  const [address = '', prefix] = range.split('/')
  const family = isIP(address)
  if (family === 0 || isIP(host) !== family) return false
  const list = new BlockList()
  try {
    list.addSubnet(address, Number(prefix), family === 6 ? 'ipv6' : 'ipv4')
  } catch {
    return false
  }
  return list.check(host, family === 6 ? 'ipv6' : 'ipv4')
}
