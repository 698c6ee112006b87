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
 * a table of 10,000 rows reads none. To JSON and to the spread operator they are properties like the others; what is
 * undefined is not there.
 */
export function certificateReport(
  entry: CertificateEntry,
  role: Role,
  status: CertificateStatus,
  now: Date,
  links: Links,
): CertificateReport {
  const { certificate } = entry
  const { notBefore, notAfter, publicKey } = certificate
  let issuer: NameReport | undefined
  return {
    source: entry.source,
    entry: entry.entry,
    role: role.name,
    subject: nameReport(certificate.subject),
    get issuer() {
      issuer ??= nameReport(certificate.issuer)
      return issuer
    },
    serialNumber: certificate.serialNumber,
    notBefore: timeText(notBefore),
    notAfter: timeText(notAfter),
    secondsLeft: Math.floor((notAfter.getTime() - now.getTime()) / 1000),
    percentLeft: percentLeft(notBefore, notAfter, now),
    isCa: certificate.isCa,
    pathLength: certificate.basicConstraints?.pathLength,
    publicKey: publicKeyReport(publicKey),
    signatureAlgorithm: certificate.signatureAlgorithm,
    subjectAltNames: altNamesReport(certificate.subjectAltNames),
    keyUsage: shared(certificate.keyUsage),
    extendedKeyUsage: shared(certificate.extendedKeyUsage),
    subjectKeyId: certificate.subjectKeyId,
    authorityKeyId: certificate.authorityKeyId,
    get fingerprintSha256() {
      return certificate.fingerprintSha256
    },
    get caPin() {
      return certificate.isCa ? `sha256:${publicKey.sha256}` : undefined
    },
    get issuerFound() {
      const found = links.issuerPlace(entry)
      return found && { ...placeOf(found), fingerprintSha256: found.certificate.fingerprintSha256 }
    },
    get key() {
      const found = links.keyOf(entry)
      return found && { ...placeOf(found.key), matches: found.matches }
    },
    kubeletRotation: kubeletRotation(entry, role),
    isReplaced: role.isReplaced,
    status,
  }
}

const none: string[] = []

/** The list itself: nobody changes a report, and 10,000 copies cost a hundredth of a second. */
function shared(list: readonly string[] | undefined): string[] {
  return list === undefined || list.length === 0 ? none : (list as string[])
}

function placeOf({ source, entry }: Place): Place {
  return { source, entry }
}

function kubeletRotation(
  { certificate }: CertificateEntry,
  role: Role,
): CertificateReport['kubeletRotation'] {
  if (role.kubelet === undefined || role.isRecord) return undefined
  const { commonName, organization } = certificate.subject
  if (!isNodeIdentity(commonName, organization)) return undefined
  const { earliest, latest } = kubeletRotationWindow(certificate.notBefore, certificate.notAfter)
  return { earliest: timeText(earliest), latest: timeText(latest) }
}

/** With one decimal: more says nothing. */
function percentLeft(notBefore: Date, notAfter: Date, now: Date): number {
  const lifetimeMs = notAfter.getTime() - notBefore.getTime()
  const leftMs = notAfter.getTime() - now.getTime()
  if (leftMs <= 0 || lifetimeMs <= 0) return 0
  return Math.min(Math.round((1000 * leftMs) / lifetimeMs) / 10, 100)
}

function nameReport(name: Name): NameReport {
  return { text: name.text, commonName: name.commonName, organization: shared(name.organization) }
}

function publicKeyReport(key: PublicKeyInfo): CertificateReport['publicKey'] {
  const { algorithm, bits, curve } = key
  return {
    algorithm,
    bits,
    curve,
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
    keyUsage: shared(request.keyUsage),
    extendedKeyUsage: shared(request.extendedKeyUsage),
    signerName: object.signerName,
    usages: object.usages && [...object.usages],
    username: object.username,
    condition: object.condition,
  }
}

/** Returns the report of a key: what it is and what belongs to it, and nothing of a private key itself. */
export function keyReport(entry: KeyEntry, links: Links): KeyReport {
  const { kind, format, encrypted, publicKey } = entry
  return {
    source: entry.source,
    entry: entry.entry,
    role: roleOfKey(entry),
    kind,
    format,
    publicKey: publicKey && publicKeyReport(publicKey),
    encrypted,
    matches: links.matchesOf(entry).map(placeOf),
  }
}
