import { writePem } from '../x509/pem.ts'
import { CertificateRequest } from '../x509/request.ts'
import type { CreatedRequest } from './create-report.ts'
import { shortestRsaBits } from './key-strength.ts'
import type { Manifest } from './manifest.ts'

/** Returns a request that was made as the report shows it. */
export function createdRequest(
  der: Uint8Array,
  files: CreatedRequest['files'],
  { row, manifest }: { readonly row?: string | undefined; readonly manifest?: Manifest | undefined } = {},
): CreatedRequest {
  const { subject, subjectAltNames, publicKey, signatureAlgorithm } = CertificateRequest.parse(der)
  const { dns, ip, email, uri } = subjectAltNames
  const { algorithm, bits, curve, sha256 } = publicKey
  return {
    ...(row === undefined ? {} : { row }),
    subject: subject.text,
    subjectAltNames: { dns: [...dns], ip: [...ip], email: [...email], uri: [...uri] },
    publicKey: {
      algorithm,
      ...(bits === undefined ? {} : { bits }),
      ...(curve === undefined ? {} : { curve }),
      sha256,
    },
    signatureAlgorithm,
    pem: writePem('CERTIFICATE REQUEST', der),
    ...(manifest === undefined ? {} : { manifest }),
    files,
  }
}

/** Returns what is to be said of the key of a request: one that was taken may be weaker than kcert would make it. */
export function keyNotices({ publicKey: { algorithm, bits } }: CreatedRequest): string[] {
  return algorithm === 'RSA' && bits !== undefined && bits < shortestRsaBits
    ? [`the key, RSA ${bits}, is too weak: an approver denies the request`]
    : []
}
