/** Returns host and port in the usual notation: "cp1:6443", "[fd00::1]:6443". */
export function hostPort(host: string, port: number | string): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Returns the host of a URL as a name or an address without the brackets of IPv6. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/** True if the name or address of a host refers to this machine. Other names that begin with 127. also count. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
