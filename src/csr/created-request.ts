import { given } from '../errors/given.ts'
import { writePem } from '../x509/pem.ts'
import { CertificateRequest } from '../x509/request.ts'
import type { CreatedRequest, Manifest } from './create-report.ts'
import { shortestRsaBits } from './key-strength.ts'
import { requestFields } from './request-fields.ts'

/** Returns a created request as the report shows it. */
export function createdRequest(
  der: Uint8Array,
  files: CreatedRequest['files'],
  { row, manifest }: { readonly row?: string | undefined; readonly manifest?: Manifest | undefined } = {},
): CreatedRequest {
  const { subject, subjectAltNames, publicKey, signatureAlgorithm } = requestFields(
    CertificateRequest.parse(der),
  )
  const { dns, ip, email, uri } = subjectAltNames
  return {
    ...given({ row }),
    subject: subject.text,
    subjectAltNames: { dns, ip, email, uri },
    publicKey,
    signatureAlgorithm,
    pem: writePem('CERTIFICATE REQUEST', der),
    ...given({ manifest }),
    files,
  }
}

/** Returns notices on the key of a request: an existing key may be weaker than one that kcert would create. */
export function keyNotices({ publicKey: { algorithm, bits } }: CreatedRequest): string[] {
  return algorithm === 'RSA' && bits !== undefined && bits < shortestRsaBits
    ? [`the key, RSA ${bits}, is too weak: approvers deny the request`]
    : []
}
