import { reissueAdvice, renewalAdvice } from '../advice.ts'
import type { CertificateEntry, Role } from '../entries.ts'
import { problemAt } from '../problems.ts'
import type { Problem, Severity } from '../report.ts'
import { spanText, timeText } from '../spans.ts'
import type { CertificateCheck, Snapshot } from './check.ts'

/** Finds expired certificates, certificates that are not yet valid, and expiring ones. */
const checkValidity: CertificateCheck = (entry, role, snapshot) => {
  const status = snapshot.statusOf(entry)
  if (status === 'expired') return expired(entry, role, snapshot)
  if (status === 'not-yet-valid') return notYetValid(entry, role, snapshot)
  if (status === 'ok' || role.isRecord) return undefined
  const { notAfter } = entry.certificate
  return problemAt(entry, status === 'warning' ? 'CERT_EXPIRING' : 'CERT_EXPIRING_VERY_SOON', {
    message: `expires on ${timeText(notAfter)}, in ${spanText(notAfter.getTime() - snapshot.now.getTime())}`,
    ...renewalAdvice(entry, role, 'expiring'),
  })
}

function expired(entry: CertificateEntry, role: Role, snapshot: Snapshot): Problem {
  const { notAfter } = entry.certificate
  const when = `expired on ${timeText(notAfter)}, ${spanText(snapshot.now.getTime() - notAfter.getTime())} ago`
  const advice = renewalAdvice(entry, role, 'expired')
  if (role.isRecord) return problemAt(entry, 'CERT_EXPIRED', { message: when, ...advice, severity: 'info' })
  if (!snapshot.isBundle(entry.group)) return problemAt(entry, 'CERT_EXPIRED', { message: when, ...advice })
  const dependents = dependentsOf(entry, snapshot)
  const first = dependents[0]
  if (first === undefined) {
    return problemAt(entry, 'BUNDLE_MEMBER_EXPIRED', {
      message: `${when}; other CAs in the bundle are valid`,
      fix: 'remove it from the bundle once nothing needs it',
    })
  }
  const count = dependents.length === 1 ? '' : ` and ${dependents.length - 1} more`
  return problemAt(entry, 'BUNDLE_MEMBER_EXPIRED', {
    message: `${when}, and it signed ${placeText(first)}${count}`,
    fix: 'reissue the certificates that it signed from a CA of the bundle that is valid',
    severity: 'warning',
  })
}

/** Returns the valid certificates whose issuer is this one, if there is no other valid CA with the same name and key. */
function dependentsOf(
  { certificate, group }: CertificateEntry,
  { links, now }: Snapshot,
): CertificateEntry[] {
  const isReplaced = group.certificates.some(
    (other) =>
      other.certificate !== certificate &&
      other.certificate.notAfter >= now &&
      other.certificate.subject.equals(certificate.subject) &&
      other.certificate.publicKey.sha256 === certificate.publicKey.sha256,
  )
  return isReplaced ? [] : links.issuedBy(certificate).filter((issued) => issued.certificate.notAfter >= now)
}

function notYetValid(entry: CertificateEntry, role: Role, snapshot: Snapshot): Problem {
  const { notBefore } = entry.certificate
  const severity: Severity = role.isRecord ? 'info' : snapshot.isBundle(entry.group) ? 'warning' : 'critical'
  return problemAt(entry, 'CERT_NOT_YET_VALID', {
    message: `not valid before ${timeText(notBefore)}, in ${spanText(notBefore.getTime() - snapshot.now.getTime())}`,
    fix: 'check the clocks of this machine and of its issuer; if they are right, wait, or reissue it',
    next: 'timedatectl',
    severity,
  })
}

/** Finds certificates that outlive their CA, or whose CA has already expired. */
const checkIssuerValidity: CertificateCheck = (entry, role, snapshot) => {
  const { certificate } = entry
  const { links, now } = snapshot
  if (!links.mayOutliveIssuer(certificate)) return undefined
  if (role.isRecord || certificate.notAfter < now || links.looksSelfSigned(certificate)) return undefined
  // The proof costs a signature check, so it runs only if there is a CA of that name that expires earlier.
  const shorter = links.candidates(certificate).some(({ notAfter }) => notAfter < certificate.notAfter)
  const issuer = shorter ? links.issuerOf(certificate) : undefined
  if (issuer === undefined || issuer === certificate || issuer.notAfter >= certificate.notAfter)
    return undefined
  const { organization, commonName } = issuer.subject
  const name = commonName ?? organization[0] ?? issuer.subject.text
  const message = `valid until ${timeText(certificate.notAfter)}, but the CA ${JSON.stringify(name)} that signed it`
  if (issuer.notAfter >= now)
    return problemAt(entry, 'CERT_OUTLIVES_ISSUER', {
      message: `${message} only until ${timeText(issuer.notAfter)}`,
      fix: 'the certificate is rejected once the CA expires: rotate the CA before that date',
    })
  return problemAt(entry, 'ISSUER_EXPIRED', {
    message: `${message} expired on ${timeText(issuer.notAfter)}`,
    ...reissueAdvice('replace the CA first, then reissue this certificate', entry, role, 'wrong'),
  })
}

export function placeText({ source, entry }: { readonly source: string; readonly entry: string }): string {
  return entry === '' ? source : `${source} ${entry}`
}

/** The time of each certificate. */
export const timeChecks: readonly CertificateCheck[] = [checkValidity, checkIssuerValidity]
