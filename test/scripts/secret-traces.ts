import { readPrivateKeyFile } from '../../src/x509/keys.ts'

/** All forms in which 12 octets of a private key could appear: base64 at each alignment, hexadecimal, decimal. */
export function tracesOf(pem: string, password?: string): string[] {
  const { keyObject } = readPrivateKeyFile(Buffer.from(pem), password)
  const jwk = keyObject!.export({ format: 'jwk' }) as Record<string, string>
  const secrets = ['d', 'p', 'q', 'dp', 'dq', 'qi'].flatMap((name) =>
    jwk[name] ? [Buffer.from(jwk[name], 'base64url')] : [],
  )
  const lines = pem.split('\n').filter((line) => line !== '' && !line.startsWith('-----'))
  // The first line of a key in PKCS#8 has nothing secret before its 36th octet, and of RSA it is the public modulus.
  const secretLines = lines.slice(keyObject!.asymmetricKeyType === 'rsa' ? 8 : 1)
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
  return [...secretLines, ...pieces].filter((trace) => trace.length >= 12)
}
