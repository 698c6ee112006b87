import { rfc3339 } from '../pki/rfc3339.ts'
import type { Certificate } from '../x509/certificate.ts'
import { hiddenSubjectValues, isPlainDnsName } from '../x509/plain-names.ts'
import { quoted } from '../x509/strings.ts'
import type { Authority, Issued } from './authority.ts'
import type { Bundle } from './bundle.ts'

// What whoever signs should know, in sentences. Nothing here keeps a certificate from being signed: kube-controller-manager
// would sign it.

/** Returns what is worth knowing of a certificate that was signed. */
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
  const hidden = hiddenSubjectValues(subject)
  const asked = droppedExtensions.filter((name) => name !== 'keyUsage' && name !== 'extKeyUsage')
  const candidates: readonly (false | string)[] = [
    isClamped && `it ends with its CA, at ${rfc3339(certificate.notAfter)}, before its lifetime is over`,
    asked.length > 0 && `left out of what was requested: ${asked.join(', ')}`,
    droppedAttributes.length > 0 &&
      `left out of the subject, as kube-controller-manager does: ${droppedAttributes.join(', ')}`,
    subject.organization.includes('system:masters') &&
      'the group system:masters may do everything in a cluster, and no RBAC rule can take that away',
    isClient &&
      (subject.commonName ?? '') === '' &&
      'it has no common name, so Kubernetes knows no user by it',
    odd.length > 0 && `no DNS name, and clients may read it as another: ${odd.map(quoted).join(', ')}`,
    wildcards.length > 0 &&
      `a wildcard, valid for every name with one label in its place: ${wildcards.map(quoted).join(', ')}`,
    hidden.length > 0 && `its subject has control or invisible characters: ${hidden.map(quoted).join(', ')}`,
    isServer && names.length === 0 && 'it has no alternative names, and clients look for a server only there',
    publicKey.algorithm === 'RSA' &&
      (publicKey.bits ?? 0) < 2048 &&
      `its RSA key has ${publicKey.bits} bits, which is too few`,
  ]
  return candidates.filter((notice) => notice !== false)
}

/** Returns what renewing a CA does and does not do. */
export function noticesOfRenewal({ certificate: old }: Authority, renewed: Certificate, now: Date): string[] {
  const isOver = old.notAfter < now
  const candidates: readonly (false | string)[] = [
    isOver &&
      `the old certificate ended at ${rfc3339(old.notAfter)}: nobody trusts the CA until the new one is there`,
    'what the old certificate signed stays valid under the new one: the name and the key are the same',
    isOver
      ? 'nothing is revoked'
      : `nothing is revoked: the old certificate stays trusted wherever it lies, until ${rfc3339(old.notAfter)}`,
    'a key that others may have stays in their hands; then the CA must be replaced: kcert rotate-ca',
    `every copy of the CA (kubeconfigs, clientCAFile, ConfigMaps, trust stores) has to be replaced${isOver ? '' : ' before the old one ends'}`,
    hasIssuerSerial(old) &&
      'its authorityKeyIdentifier names a serial number, as OpenSSL and easy-rsa write it: certificates made that way are refused by OpenSSL under the new one',
    renewed.notAfter < old.notAfter && `it ends earlier than the old one, at ${rfc3339(renewed.notAfter)}`,
  ]
  return candidates.filter((notice) => notice !== false)
}

// A CA that was made with authorityCertIssuer and authorityCertSerialNumber (RFC 5280 section 4.2.1.1) usually puts them into
// what it signs as well. The identifier alone is at most 66 octets.
function hasIssuerSerial(old: Certificate): boolean {
  const identifier = old.findExtension('2.5.29.35')?.value
  const keyIdLength = (old.authorityKeyId?.length ?? 0) / 2
  return identifier !== undefined && identifier.length > keyIdLength + 4
}

/** Returns what is worth knowing of a bundle. */
export function noticesOfBundle({ leftOut, notCas, notYetValid }: Bundle): string[] {
  const expired = leftOut.filter(({ reason }) => reason === 'expired')
  return [
    ...expired.map(
      ({ place, certificate }) =>
        `left out, for it expired at ${rfc3339(certificate.notAfter)}: ${certificate.subject.text} (${place})`,
    ),
    ...notCas.map(
      ({ place, certificate }) => `no CA, and trusted for itself: ${certificate.subject.text} (${place})`,
    ),
    ...notYetValid.map(
      ({ place, certificate }) =>
        `valid only from ${rfc3339(certificate.notBefore)}: ${certificate.subject.text} (${place})`,
    ),
  ]
}
