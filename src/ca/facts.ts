import { given } from '../errors/given.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import type { Certificate } from '../x509/certificate.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import type { BundleMember } from './bundle.ts'
import type { BundleMemberFacts, CertificateFacts, PublicKeyFacts } from './report.ts'
import { normalSerialNumber } from './serial.ts'

// Certificates and keys as the reports show them.

/** Returns the facts of a certificate. */
export function certificateFacts(certificate: Certificate): CertificateFacts {
  const { dns, ip, email, uri } = certificate.subjectAltNames
  return {
    subject: certificate.subject.text,
    issuer: certificate.issuer.text,
    serialNumber: normalSerialNumber(certificate.serialNumber),
    notBefore: rfc3339(certificate.notBefore),
    notAfter: rfc3339(certificate.notAfter),
    isCa: certificate.isCa,
    ...given({ pathLength: certificate.basicConstraints?.pathLength }),
    publicKey: publicKeyFacts(certificate.publicKey),
    signatureAlgorithm: certificate.signatureAlgorithm,
    subjectAltNames: { dns: [...dns], ip: [...ip], email: [...email], uri: [...uri] },
    keyUsage: [...(certificate.keyUsage ?? [])],
    extendedKeyUsage: [...certificate.extendedKeyUsage],
    fingerprintSha256: certificate.fingerprintSha256,
  }
}

/** Returns the facts of a public key. */
export function publicKeyFacts({ algorithm, bits, curve, sha256 }: PublicKeyInfo): PublicKeyFacts {
  return given({ algorithm, bits, curve, sha256 })
}

/** Returns the facts of a bundle's member. */
export function bundleMemberFacts({ place, certificate }: BundleMember): BundleMemberFacts {
  const { subject, notBefore, notAfter, isCa, fingerprintSha256 } = certificate
  return {
    location: place,
    subject: subject.text,
    notBefore: rfc3339(notBefore),
    notAfter: rfc3339(notAfter),
    isCa,
    fingerprintSha256,
  }
}
