import type { InferOutput } from 'valibot'
import { given } from '../errors/given.ts'
import { nameFields } from '../x509/name.ts'
import type { CertificateRequest } from '../x509/request.ts'
import type { requestSchema } from './check-report.ts'

export type RequestFields = InferOutput<typeof requestSchema>

/** Returns the content of a request as reports show it. */
export function requestFields({
  subject,
  subjectAltNames,
  publicKey,
  signatureAlgorithm,
}: CertificateRequest): RequestFields {
  const { dns, ip, email, uri, other } = subjectAltNames
  const { algorithm, bits, curve, sha256 } = publicKey
  return {
    subject: nameFields(subject),
    subjectAltNames: { dns: [...dns], ip: [...ip], email: [...email], uri: [...uri], other: [...other] },
    publicKey: given({ algorithm, bits, curve, sha256 }),
    signatureAlgorithm,
  }
}
