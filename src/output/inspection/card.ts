import type { CertificateReport, RequestReport } from '../../inspection/report.ts'
import { type Field, titledFields } from '../fields.ts'
import { keyText, shortName, signatureText } from '../names.ts'
import { placeText } from '../places.ts'
import { secondOf } from '../time.ts'
import type { View } from '../view.ts'
import { certificateExtras } from './extras.ts'
import { shownStatus } from './status.ts'
import { timeLeftOf } from './time-left.ts'

/** Returns the lines of one certificate with all its fields. Absent fields are left out. */
export function certificateCard(certificate: CertificateReport, at: string, view: View): string[] {
  const { status, percentLeft, subject, issuer, subjectAltNames } = certificate
  const fields: Field[] = [
    ['name', certificate.role ?? shortName(subject)],
    ['status', shownStatus[status], view.paint.status[status]],
    [
      'time left',
      `${timeLeftOf(certificate, at)}${status === 'expired' ? '' : ` (${Math.floor(percentLeft)} % of the lifetime)`}`,
    ],
    ['expires', secondOf(certificate.notAfter)],
    ['not before', secondOf(certificate.notBefore)],
    ['subject', subject.text || '(empty)'],
    ['user UID', uidText(subject)],
    ['issuer', issuer.text || '(empty)'],
    ['issuer found in', issuerText(certificate)],
    ['serial number', certificate.serialNumber],
    ['public key', keyText(certificate.publicKey)],
    ['private key', certificate.key && keyMatchText(certificate.key)],
    ['signature', certificate.signatureAlgorithm],
    ...altNameFields(subjectAltNames),
    ['key usage', list(certificate.keyUsage)],
    ['extended key usage', list(certificate.extendedKeyUsage)],
    ['CA', caText(certificate)],
    ['subject key id', certificate.subjectKeyId],
    ['authority key id', certificate.authorityKeyId],
    ...certificateExtras(certificate),
    ['fingerprint', `sha256:${certificate.fingerprintSha256}`],
    ['CA cert hash', certificate.caPin],
    ['kubelet renews', rotationText(certificate)],
  ]
  return titledFields(placeText(certificate), fields, view)
}

/** Returns the lines of one certificate request with all its fields. */
export function requestCard(request: RequestReport, view: View): string[] {
  const fields: Field[] = [
    ['kind', 'certificate request'],
    ['condition', request.condition],
    ['subject', request.subject.text || '(empty)'],
    ['user UID', uidText(request.subject)],
    ['public key', keyText(request.publicKey)],
    ['signature', `${request.signatureAlgorithm}, ${signatureText(request)}`],
    ...altNameFields(request.subjectAltNames),
    ['key usage', list(request.keyUsage)],
    ['extended key usage', list(request.extendedKeyUsage)],
    ['signer', request.signerName],
    ['requested usages', list(request.usages ?? [])],
    ['requester', request.username],
  ]
  return titledFields(placeText(request), fields, view)
}

function altNameFields({ dns, ip, email, uri }: CertificateReport['subjectAltNames']): Field[] {
  return [
    ['DNS names', list(dns)],
    ['IP addresses', list(ip)],
    ['email addresses', list(email)],
    ['URIs', list(uri)],
  ]
}

/** In quotes, because an API server refuses an empty UID. */
function uidText({ userUids }: CertificateReport['subject']): string | undefined {
  return userUids?.map((uid) => JSON.stringify(uid)).join(', ')
}

function list(values: readonly string[]): string {
  return values.join(', ')
}

function issuerText(certificate: CertificateReport): string | undefined {
  const { issuerFound, issuerNotSearched, issuerUnchecked, fingerprintSha256 } = certificate
  if (issuerNotSearched)
    return 'not searched: thousands of these certificates have no issuer in the inputs; inspect fewer at once'
  if (issuerUnchecked)
    return `unknown: the OpenSSL of this Node.js does not support ${certificate.signatureAlgorithm}`
  if (!issuerFound) return 'not in the inputs'
  return issuerFound.fingerprintSha256 === fingerprintSha256 ? 'itself (self-signed)' : placeText(issuerFound)
}

function keyMatchText(key: NonNullable<CertificateReport['key']>): string {
  return `${placeText(key)} ${key.matches ? 'matches' : 'DOES NOT MATCH'}`
}

function caText({ isCa, pathLength }: CertificateReport): string {
  if (!isCa) return 'FALSE'
  if (pathLength === undefined) return 'TRUE'
  return `TRUE, path length ${pathLength}${pathLength === 0 ? ' (signs leaf certificates only)' : ''}`
}

function rotationText({ kubeletRotation }: CertificateReport): string | undefined {
  return kubeletRotation && `${secondOf(kubeletRotation.earliest)} to ${secondOf(kubeletRotation.latest)}`
}
