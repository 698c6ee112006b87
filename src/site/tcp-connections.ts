// The kernel's tables of TCP connections: /proc/PID/net/tcp and tcp6 (Documentation/networking/proc_net_tcp.rst).

const established = '01'

/** Returns the remote addresses of established connections to a local port, each once. */
export function remoteAddresses(table: string, port: number): readonly string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const found = table.split('\n').flatMap((line) => {
    const [, local = '', remote = '', state] = line.trim().split(/\s+/)
    if (state !== established || !local.endsWith(suffix)) return []
    return addressIn(remote.slice(0, remote.indexOf(':'))) ?? []
  })
  return [...new Set(found)]
}

/** Returns the address of a word in the table: 32-bit numbers in hexadecimal, each in the byte order of the machine (little-endian). */
function addressIn(hex: string): string | undefined {
  if (!/^(?:[0-9A-F]{8}|[0-9A-F]{32})$/.test(hex)) return undefined
  const bytes = Buffer.from(hex, 'hex').swap32()
  if (bytes.length === 4) return bytes.join('.')
  const isMapped = bytes.subarray(0, 12).toString('hex') === '00000000000000000000ffff'
  if (isMapped) return bytes.subarray(12).join('.')
  const groups = (bytes.toString('hex').match(/.{4}/g) ?? []).join(':')
  // The URL parser writes the short form.
  return URL.parse(`http://[${groups}]`)?.hostname.slice(1, -1)
}
