import { readPrivateKeyFile } from '../../src/x509/keys.ts'

/** Returns all forms in which 12 bytes of a private key could appear: base64 at each alignment, hexadecimal, decimal. */
export function tracesOf(pem: string, password?: string): string[] {
  const { keyObject } = readPrivateKeyFile(Buffer.from(pem), password)
  const jwk = keyObject!.export({ format: 'jwk' }) as Record<string, string>
  const secrets = ['d', 'p', 'q', 'dp', 'dq', 'qi'].flatMap((name) =>
    jwk[name] ? [Buffer.from(jwk[name], 'base64url')] : [],
  )
  const pieces = secrets.flatMap((secret) => {
    const traces: string[] = []
    for (let at = 0; at + 12 <= secret.length; at += 4) {
      const piece = secret.subarray(at, at + 12)
      traces.push(
        piece.toString('hex'),
        piece.toString('hex').toUpperCase(),
        [...piece].join(','),
        [...piece].join(', '),
      )
    }
    for (const shift of [0, 1, 2])
      traces.push(
        secret
          .subarray(shift, shift + 12)
          .toString('base64')
          .slice(0, 15),
      )
    return traces
  })
  return [...linesWith(secrets, pem), ...pieces].filter((trace) => trace.length >= 12)
}

/** The base64 lines of a PEM text that contain bytes of a secret. The other lines are public, and may be printed. */
function linesWith(secrets: readonly Buffer[], pem: string): string[] {
  const lines = pem.split('\n').filter((line) => line !== '' && !/^(?:-----|[\w-]+:)/.test(line))
  // In an encrypted key, all bytes after the parameters are secret.
  if (pem.includes('ENCRYPTED')) return lines.slice(1)
  const der = Buffer.from(lines.join(''), 'base64')
  const ranges = secrets.map((secret) => ({ from: der.indexOf(secret), length: secret.length }))
  const bytes = (line: string): number => Buffer.from(line, 'base64').length
  let at = 0
  return lines.filter((line) => {
    const [from, to] = [at, at + bytes(line)]
    at = to
    return ranges.some((range) => range.from >= 0 && range.from < to && from < range.from + range.length)
  })
}
