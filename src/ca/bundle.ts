import { commandLine } from '../errors/command-line.ts'
import { KcertError, messageOf } from '../errors/kcert-error.ts'
import { sourceName } from '../errors/source-name.ts'
import { type Certificate, certificateOfBlock, readCertificates } from '../x509/certificate.ts'
import { isCertificateLabel, looksLikePem, readPem } from '../x509/pem.ts'

/** A file with CA certificates. */
export interface BundleSource {
  readonly name: string
  readonly bytes: Uint8Array
}

export interface BundleMember {
  /** "ca.pem", or "ca.pem: certificate 2" where there are several. */
  readonly place: string
  readonly certificate: Certificate
}

export type LeftOutReason = 'duplicate' | 'expired'

export interface Bundle {
  /** In the order of their first appearance. */
  readonly members: readonly BundleMember[]
  readonly leftOut: readonly (BundleMember & { readonly reason: LeftOutReason })[]
  /** Members that are not CAs, if these are allowed. */
  readonly notCas: readonly BundleMember[]
  readonly notYetValid: readonly BundleMember[]
}

/**
 * Returns the CA certificates of several files as one trust bundle: each once by its SHA-256 digest, in the order of the files,
 * without the expired ones. Throws KCERT_X509_MALFORMED for a damaged certificate, so that no CA is lost silently. Throws
 * KCERT_CA_UNFIT for a certificate that is not a CA, unless allowed (undefined: the command has no flag for that), and for an
 * empty bundle.
 */
export function bundle(sources: readonly BundleSource[], now: Date, allowNonCa: boolean | undefined): Bundle {
  const seen = new Set<string>()
  const leftOut: (BundleMember & { reason: LeftOutReason })[] = []
  const members: BundleMember[] = []
  for (const member of sources.flatMap(membersOf)) {
    const { fingerprintSha256, notAfter } = member.certificate
    const reason = seen.has(fingerprintSha256) ? 'duplicate' : notAfter < now ? 'expired' : undefined
    seen.add(fingerprintSha256)
    if (reason === undefined) members.push(member)
    else leftOut.push({ ...member, reason })
  }
  const notCas = members.filter(({ certificate }) => !certificate.isCa)
  if (notCas[0] !== undefined && !allowNonCa) throw notCa(notCas[0], allowNonCa)
  if (members.length === 0)
    throw new KcertError('KCERT_CA_UNFIT', 'every certificate has expired, so the bundle would be empty', {
      why: 'with an empty bundle, clients trust no server, and some do not start',
      next: 'kcert ca renew --help',
    })
  return {
    members,
    leftOut,
    notCas,
    notYetValid: members.filter(({ certificate }) => certificate.notBefore > now),
  }
}

function membersOf({ name, bytes }: BundleSource): BundleMember[] {
  const certificates = certificatesOf(name, bytes)
  if (certificates.length === 0)
    throw malformed(name, ' contains no certificate', 'it would add no CA to the bundle')
  const place = (index: number) => (certificates.length === 1 ? name : `${name}: certificate ${index + 1}`)
  return certificates.map((certificate, index) => ({ place: place(index), certificate }))
}

function certificatesOf(name: string, bytes: Uint8Array): Certificate[] {
  if (!looksLikePem(bytes)) return named(name, '', () => (bytes.length === 0 ? [] : readCertificates(bytes)))
  const { blocks, defects } = readPem(bytes)
  // A damaged BEGIN line may have been that of a CA.
  const defect = defects.find(({ label }) => label === '' || isCertificateLabel(label))
  if (defect !== undefined) throw malformed(name, `: line ${defect.line}: ${defect.reason}`)
  return blocks
    .filter(({ label }) => isCertificateLabel(label))
    .map((block) => named(name, `: line ${block.line}`, () => certificateOfBlock(block)))
}

function named<Result>(name: string, place: string, read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    throw malformed(name, `${place}: ${messageOf(cause)}`, undefined, cause)
  }
}

function malformed(
  file: string,
  what: string,
  why = 'a CA may be missing from the bundle',
  cause?: unknown,
): KcertError {
  const next = commandLine`kcert inspect ${file}`
  return new KcertError('KCERT_X509_MALFORMED', sourceName(file) + what, { why, next, cause })
}

function notCa({ place, certificate }: BundleMember, allowNonCa: false | undefined): KcertError {
  const flag = allowNonCa === undefined ? '' : ', or add --allow-non-ca'
  const what = `${place} is not a CA: ${certificate.subject.text || 'its subject is empty'}`
  const why = `in a bundle, clients would trust this certificate itself; use the file of its CA${flag}`
  return new KcertError('KCERT_CA_UNFIT', what, { why })
}
