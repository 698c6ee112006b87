/** Returns host and port as they are written together: "cp1:6443", "[fd00::1]:6443". */
export function hostPort(host: string, port: number | string): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Returns the host of a URL as a name or an address: what stands in brackets there is IPv6. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}
