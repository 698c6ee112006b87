import { isNodeIdentity, kubeletRotationWindow } from '../pki/kubelet.ts'
import type { SubjectAltNames } from '../x509/general-names.ts'
import type { Name } from '../x509/name.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import type { CertificateEntry, KeyEntry, RequestEntry } from './entries.ts'
import type { Links } from './links.ts'
import type { Place } from './problems.ts'
import type { CertificateReport, CertificateStatus, KeyReport, NameReport, RequestReport } from './report.ts'
import { type Role, roleOfKey } from './roles.ts'
import { timeText } from './spans.ts'

/**
 * Returns the report of one certificate. Digests and links are accessors: they are computed when an output reads them, and
 * a table of 10,000 rows reads none. To JSON and to the spread operator they are properties like the others.
 */
export function certificateReport(
  entry: CertificateEntry,
  role: Role,
  status: CertificateStatus,
  now: Date,
  links: Links,
): CertificateReport {
  const { certificate, source } = entry
  const { notBefore, notAfter, basicConstraints, subjectKeyId, authorityKeyId } = certificate
  const pathLength = basicConstraints?.pathLength
  return {
    source,
    entry: entry.entry,
    ...(role.name !== undefined && { role: role.name }),
    subject: nameReport(certificate.subject),
    issuer: nameReport(certificate.issuer),
    serialNumber: certificate.serialNumber,
    notBefore: timeText(notBefore),
    notAfter: timeText(notAfter),
    secondsLeft: Math.floor((notAfter.getTime() - now.getTime()) / 1000),
    percentLeft: percentLeft(notBefore, notAfter, now),
    isCa: certificate.isCa,
    ...(pathLength !== undefined && { pathLength }),
    publicKey: publicKeyReport(certificate.publicKey),
    signatureAlgorithm: certificate.signatureAlgorithm,
    subjectAltNames: altNamesReport(certificate.subjectAltNames),
    keyUsage: [...(certificate.keyUsage ?? [])],
    extendedKeyUsage: [...certificate.extendedKeyUsage],
    ...(subjectKeyId !== undefined && { subjectKeyId }),
    ...(authorityKeyId !== undefined && { authorityKeyId }),
    get fingerprintSha256() {
      return certificate.fingerprintSha256
    },
    get caPin() {
      return certificate.isCa ? `sha256:${certificate.publicKey.sha256}` : undefined
    },
    get issuerFound() {
      const issuer = links.issuerPlace(entry)
      return issuer && { ...placeOf(issuer), fingerprintSha256: issuer.certificate.fingerprintSha256 }
    },
    get key() {
      const found = links.keyOf(entry)
      return found && { ...placeOf(found.key), matches: found.matches }
    },
    ...kubeletRotation(entry, role),
    status,
  }
}

function placeOf({ source, entry }: Place): Place {
  return { source, entry }
}

function kubeletRotation(
  { certificate }: CertificateEntry,
  role: Role,
): Pick<CertificateReport, 'kubeletRotation'> {
  const { commonName, organization } = certificate.subject
  if (role.kubelet === undefined || role.isRecord || !isNodeIdentity(commonName, organization)) return {}
  const { earliest, latest } = kubeletRotationWindow(certificate.notBefore, certificate.notAfter)
  return { kubeletRotation: { earliest: timeText(earliest), latest: timeText(latest) } }
}

/** With one decimal: more says nothing. */
function percentLeft(notBefore: Date, notAfter: Date, now: Date): number {
  const lifetimeMs = notAfter.getTime() - notBefore.getTime()
  const leftMs = notAfter.getTime() - now.getTime()
  if (leftMs <= 0 || lifetimeMs <= 0) return 0
  return Math.min(Math.round((1000 * leftMs) / lifetimeMs) / 10, 100)
}

function nameReport(name: Name): NameReport {
  const { commonName } = name
  return {
    text: name.text,
    ...(commonName !== undefined && { commonName }),
    organization: [...name.organization],
  }
}

function publicKeyReport(key: PublicKeyInfo): CertificateReport['publicKey'] {
  const { algorithm, bits, curve } = key
  return {
    algorithm,
    ...(bits !== undefined && { bits }),
    ...(curve !== undefined && { curve }),
    get sha256() {
      return key.sha256
    },
  }
}

function altNamesReport({ dns, ip, email, uri }: SubjectAltNames): CertificateReport['subjectAltNames'] {
  return { dns, ip, email, uri }
}

/** Returns the report of a request. */
export function requestReport({ request, source, entry, ...object }: RequestEntry): RequestReport {
  return {
    source,
    entry,
    subject: nameReport(request.subject),
    publicKey: publicKeyReport(request.publicKey),
    signatureAlgorithm: request.signatureAlgorithm,
    signatureValid: request.signatureIsValid(),
    subjectAltNames: altNamesReport(request.subjectAltNames),
    keyUsage: [...(request.keyUsage ?? [])],
    extendedKeyUsage: [...request.extendedKeyUsage],
    ...(object.signerName !== undefined && { signerName: object.signerName }),
    ...(object.usages !== undefined && { usages: [...object.usages] }),
    ...(object.username !== undefined && { username: object.username }),
    ...(object.condition !== undefined && { condition: object.condition }),
  }
}

/** Returns the report of a key: what it is and what belongs to it, and nothing of a private key itself. */
export function keyReport(entry: KeyEntry, links: Links): KeyReport {
  const role = roleOfKey(entry)
  const { kind, format, encrypted, publicKey } = entry
  return {
    source: entry.source,
    entry: entry.entry,
    ...(role !== undefined && { role }),
    kind,
    format,
    ...(publicKey !== undefined && { publicKey: publicKeyReport(publicKey) }),
    encrypted,
    matches: links.matchesOf(entry).map(placeOf),
  }
}
