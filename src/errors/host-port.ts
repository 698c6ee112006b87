/** Returns host and port as they are written together: "cp1:6443", "[fd00::1]:6443". */
export function hostPort(host: string, port: number | string): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Returns the host of a URL as a name or an address: brackets mean IPv6. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/** True for a host that is this machine by its name or address. Other names that begin with 127. are taken for it too. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
