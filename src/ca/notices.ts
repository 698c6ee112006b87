import { rfc3339 } from '../pki/rfc3339.ts'
import type { Certificate } from '../x509/certificate.ts'
import { hiddenSubjectValues, isNormalUri, isPlainDnsName, isPlainMailbox } from '../x509/plain-names.ts'
import { quoted } from '../x509/strings.ts'
import type { Bundle, BundleMember } from './bundle.ts'
import type { CertificateAuthority, Issued } from './certificate-authority.ts'

// Notices for the signer. None of them prevents signing: kube-controller-manager would sign, too.

/** Returns notices about a signed certificate. */
export function noticesOfIssued({
  certificate,
  isClamped,
  droppedExtensions,
  droppedAttributes,
}: Issued): string[] {
  const { subject, subjectAltNames, extendedKeyUsage, publicKey } = certificate
  const isClient = extendedKeyUsage.includes('clientAuth')
  const isServer = extendedKeyUsage.includes('serverAuth')
  const names = Object.values(subjectAltNames).flat()
  const odd = subjectAltNames.dns.filter((name) => !isPlainDnsName(name))
  const wildcards = subjectAltNames.dns.filter((name) => isPlainDnsName(name) && name.startsWith('*'))
  const { email, uri } = subjectAltNames
  const ambiguous = [
    ...email.filter((name) => !isPlainMailbox(name)),
    ...uri.filter((name) => !isNormalUri(name)),
  ]
  const hidden = hiddenSubjectValues(subject)
  const asked = droppedExtensions.filter((name) => name !== 'keyUsage' && name !== 'extKeyUsage')
  const candidates: readonly (false | string)[] = [
    isClamped && `the validity is capped at the expiry of the CA: ${rfc3339(certificate.notAfter)}`,
    asked.length > 0 && `requested extensions left out: ${asked.join(', ')}`,
    droppedAttributes.length > 0 &&
      `subject attributes left out, as by kube-controller-manager: ${droppedAttributes.join(', ')}`,
    subject.organization.includes('system:masters') &&
      'members of system:masters have full access to the cluster, which no RBAC rule can revoke',
    isClient &&
      (subject.commonName ?? '') === '' &&
      'it has no common name, so Kubernetes cannot authenticate a user with it',
    odd.length > 0 &&
      `not a valid DNS name, and clients may interpret it differently: ${odd.map(quoted).join(', ')}`,
    ambiguous.length > 0 &&
      `not a plain email address or a normalized URI, and clients may interpret it differently: ${ambiguous.map(quoted).join(', ')}`,
    wildcards.length > 0 &&
      `wildcard, valid for any single label in place of *: ${wildcards.map(quoted).join(', ')}`,
    hidden.length > 0 && `its subject has control or invisible characters: ${hidden.map(quoted).join(', ')}`,
    isServer && names.length === 0 && 'it has no SANs, and clients check server names only there',
    publicKey.algorithm === 'RSA' &&
      (publicKey.bits ?? 0) < 2048 &&
      `its RSA key has only ${publicKey.bits} bits`,
  ]
  return candidates.filter((notice) => notice !== false)
}

/** Returns notices about a renewed CA. */
export function noticesOfRenewal(
  { certificate: old }: CertificateAuthority,
  renewed: Certificate,
  now: Date,
): string[] {
  const isOver = old.notAfter < now
  const candidates: readonly (false | string)[] = [
    isOver &&
      `the old certificate expired at ${rfc3339(old.notAfter)}: clients do not trust the CA until they have the new one`,
    'certificates that the CA signed before remain valid: name and key are the same',
    isOver
      ? 'nothing is revoked'
      : `nothing is revoked: clients that have the old certificate trust it until ${rfc3339(old.notAfter)}`,
    'if the key may be compromised, replace the CA with kcert rotate-ca',
    `replace every copy of the CA (kubeconfigs, clientCAFile, ConfigMaps, trust stores)${isOver ? '' : ' before the old one expires'}`,
    hasIssuerSerial(old) &&
      'its authorityKeyIdentifier contains a serial number, as OpenSSL and easy-rsa write it: OpenSSL rejects certificates with that serial number under the new CA certificate',
    renewed.notAfter < old.notAfter && `it expires earlier than the old one, at ${rfc3339(renewed.notAfter)}`,
  ]
  return candidates.filter((notice) => notice !== false)
}

// A CA that was created with authorityCertIssuer and authorityCertSerialNumber (RFC 5280 section 4.2.1.1) usually also adds them
// to the certificates that it signs. The identifier alone has at most 66 bytes.
function hasIssuerSerial(old: Certificate): boolean {
  const identifier = old.findExtension('2.5.29.35')?.value
  const keyIdLength = (old.authorityKeyId?.length ?? 0) / 2
  return identifier !== undefined && identifier.length > keyIdLength + 4
}

/** Returns notices about a bundle. */
export function noticesOfBundle({ leftOut, notCas, notYetValid }: Bundle): string[] {
  const named = (members: readonly BundleMember[], why: (certificate: Certificate) => string): string[] =>
    members.map(({ place, certificate }) => `${why(certificate)}: ${certificate.subject.text} (${place})`)
  const expired = leftOut.filter(({ reason }) => reason === 'expired')
  return [
    ...named(expired, ({ notAfter }) => `left out, because it expired at ${rfc3339(notAfter)}`),
    ...named(notCas, () => 'not a CA, so clients trust this certificate itself'),
    ...named(notYetValid, ({ notBefore }) => `valid only from ${rfc3339(notBefore)}`),
  ]
}
