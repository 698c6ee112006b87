// IP addresses in the form that certificates use: 4 or 16 bytes. This file needs no socket, so it does not use node:net.

/** Returns the text of 4 or 16 bytes as Go prints it: dotted for IPv4 and IPv4-mapped IPv6, RFC 5952 for the rest. */
export function formatIp(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (isMappedIpv4(bytes)) return bytes.subarray(12).join('.')
  const groups = groupsIn(bytes)
  const zeros = longestZeros(groups)
  const hex = (part: number[]): string => part.map((group) => group.toString(16)).join(':')
  if (zeros.length < 2) return hex(groups)
  return `${hex(groups.slice(0, zeros.from))}::${hex(groups.slice(zeros.from + zeros.length))}`
}

/** Returns the 16-bit groups of an even number of bytes. */
function groupsIn(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  return Array.from({ length: bytes.length / 2 }, (_, i) => view.getUint16(2 * i))
}

/** True for an IPv4-mapped address in 16 bytes, ::ffff:0:0/96. */
export function isMappedIpv4(bytes: Uint8Array): boolean {
  if (bytes.length !== 16) return false
  for (let i = 0; i < 10; i++) if (bytes[i] !== 0) return false
  return bytes[10] === 0xff && bytes[11] === 0xff
}

/** RFC 5952 section 4.2.3: shortens the longest run of zero groups, the first of several equal ones. */
function longestZeros(groups: readonly number[]): { from: number; length: number } {
  let best = { from: 0, length: 0 }
  for (let from = 0; from < groups.length; ) {
    let to = from
    while (to < groups.length && groups[to] === 0) to++
    if (to - from > best.length) best = { from, length: to - from }
    from = to + 1
  }
  return best
}

/** Returns the bytes of an address without zone: 4 for "10.0.0.1", 16 for anything with a colon; undefined for other text. */
export function parseIp(text: string): Uint8Array | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text)
}

function parseIpv4(text: string): Uint8Array | undefined {
  const parts = text.split('.')
  // No leading zeros: some programs read them as octal.
  const isValid =
    parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)
  return isValid ? Uint8Array.from(parts, Number) : undefined
}

function parseIpv6(text: string): Uint8Array | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head, tail] = halves.map((half, i) => groupsOf(half, i === halves.length - 1))
  if (head === undefined || (halves.length === 2 && tail === undefined)) return undefined
  const given = head.length + (tail?.length ?? 0)
  // "::" represents at least one group, as in Go.
  if (tail === undefined ? given !== 8 : given > 7) return undefined
  const groups = [...head, ...Array<number>(8 - given).fill(0), ...(tail ?? [])]
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]))
}

/** Returns the 16-bit groups of one side of "::". The last side may end in a dotted IPv4 address. */
function groupsOf(half: string, mayEndInIpv4: boolean): number[] | undefined {
  if (half === '') return []
  const groups: number[] = []
  const parts = half.split(':')
  for (const [i, part] of parts.entries()) {
    const ipv4 = mayEndInIpv4 && i === parts.length - 1 && part.includes('.') ? parseIpv4(part) : undefined
    if (ipv4 !== undefined) groups.push(...groupsIn(ipv4))
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16))
    else return undefined
  }
  return groups
}

/** Returns the prefix length of a mask of 4 or 16 bytes; undefined if its ones are not all at the front. */
export function prefixLength(mask: Uint8Array): number | undefined {
  const bits = Array.from(mask, (byte) => byte.toString(2).padStart(8, '0')).join('')
  return /^(1*)0*$/.exec(bits)?.[1]?.length
}

/** Returns the mask for a prefix length. */
export function maskOf(prefix: number, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => ~(0xff >> Math.min(8, Math.max(0, prefix - 8 * i))))
}
