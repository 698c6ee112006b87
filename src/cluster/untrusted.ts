import { X509Certificate } from 'node:crypto'
import { connect, type DetailedPeerCertificate } from 'node:tls'
import { bareHost, type TlsAccess } from './credentials.ts'
import type { Unanswered } from './transport.ts'

const observeAgainMs = 5_000

const trustErrors = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'CERT_REJECTED',
  'CERT_CHAIN_TOO_LONG',
  'PATH_LENGTH_EXCEEDED',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'HOSTNAME_MISMATCH',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

/**
 * Returns the untrusted certificate of the server and the reason; undefined when the failure is not about trust. Reads the chain
 * over a separate connection, without a request or client certificate.
 */
export async function describeUntrusted(
  { code }: Unanswered,
  server: URL,
  tls: TlsAccess,
  now: Date,
): Promise<string | undefined> {
  if (code === undefined || !trustErrors.has(code)) return undefined
  const chain = await chainOf(server, tls)
  const [leaf] = chain
  if (leaf === undefined) return `its certificate is refused (${code})`
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || code === 'HOSTNAME_MISMATCH') {
    return `its certificate ${nameOf(leaf)} is not valid for ${tls.serverName}, only for ${leaf.subjectAltName ?? 'no name'}`
  }
  const outOfTime = chain.find((one) => one.validToDate < now || one.validFromDate > now)
  if (outOfTime !== undefined && (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')) {
    const expired = outOfTime.validToDate < now
    const role = outOfTime === leaf ? 'its certificate' : 'the CA certificate that it sends,'
    return `${role} ${nameOf(outOfTime)} ${expired ? `expired at ${timeOf(outOfTime.validToDate)}` : `is not valid before ${timeOf(outOfTime.validFromDate)}`}`
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return `a CA certificate in the kubeconfig, issuer of ${nameOf(leaf)}, has expired or is not valid yet`
  }
  return `its certificate ${nameOf(leaf)}, issued by ${oneLine(leaf.issuer)}, does not chain to the CA in the kubeconfig (${code})`
}

function chainOf(server: URL, { serverName }: TlsAccess): Promise<X509Certificate[]> {
  return new Promise((resolve) => {
    const socket = connect({
      host: bareHost(server),
      port: Number(server.port || 443),
      rejectUnauthorized: false,
      timeout: observeAgainMs,
      ...(/^[\d.]+$|:/.test(serverName) ? {} : { servername: serverName }),
    })
    const finish = (): void => {
      const chain: X509Certificate[] = []
      const seen = new Set<string>()
      let peer: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
      while (peer?.raw && !seen.has(peer.fingerprint256)) {
        seen.add(peer.fingerprint256)
        chain.push(new X509Certificate(peer.raw))
        peer = peer.issuerCertificate
      }
      socket.destroy()
      resolve(chain)
    }
    socket.once('secureConnect', finish)
    socket.once('error', () => resolve([]))
    socket.once('timeout', () => {
      socket.destroy()
      resolve([])
    })
  })
}

function nameOf(certificate: X509Certificate): string {
  return oneLine(certificate.subject)
}

function oneLine(name: string | undefined): string {
  return name === undefined || name === '' ? 'without a name' : name.split('\n').reverse().join(',')
}

function timeOf(date: Date): string {
  return date.toISOString().replace('.000', '')
}
