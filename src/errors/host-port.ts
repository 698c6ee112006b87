/** Returns host and port in the usual notation: "cp1:6443", "[fd00::1]:6443". */
export function hostPort(host: string, port: number | string): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Returns the host of a URL as a name or an address without the brackets of IPv6. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

const loopbackIpv4 = /^127(?:\.(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])){3}$/

/** True if the name or address of a host refers to this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || loopbackIpv4.test(host)
}
