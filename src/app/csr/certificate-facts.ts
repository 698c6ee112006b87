import { rfc3339 } from '../../pki/rfc3339.ts'
import type { Certificate } from '../../x509/certificate.ts'
import { nameFields } from '../../x509/name.ts'

/** Returns the facts that the reports of both fetched and managed certificates show. */
export function certificateFacts(certificate: Certificate) {
  const { subject, subjectAltNames, serialNumber, notBefore, notAfter, fingerprintSha256 } = certificate
  const { dns, ip, email, uri } = subjectAltNames
  return {
    subject: nameFields(subject),
    subjectAltNames: { dns: [...dns], ip: [...ip], email: [...email], uri: [...uri] },
    serialNumber,
    notBefore: rfc3339(notBefore),
    notAfter: rfc3339(notAfter),
    fingerprintSha256,
  }
}
