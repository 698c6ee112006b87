import { createPublicKey, type KeyObject } from 'node:crypto'
import { commandLine } from '../errors/command-line.ts'
import { type ErrorAdvice, KcertError, messageOf } from '../errors/kcert-error.ts'
import { certificateUsages } from '../pki/usages.ts'
import { Certificate } from '../x509/certificate.ts'
import { allowAttributes, copiedBesides, goName } from '../x509/go-name.ts'
import { issueCertificate } from '../x509/issuing.ts'
import type { Name } from '../x509/name.ts'
import { type AttributeDescription, encodeName } from '../x509/name-encoding.ts'
import { CertificateRequest } from '../x509/request.ts'
import { signatureFault } from '../x509/signature-fault.ts'
import type { SigningProfile } from './profile.ts'
import { kubernetesShortMs, validityOf } from './validity.ts'

// Signs requests as kube-controller-manager does (pkg/controller/certificates/authority): subject, SANs and key come from the
// request, usages and validity from the signer. Nothing else of the request is in the certificate.

/** A CA's certificate and its private key, which match, and the files that they were read from, for messages. */
export interface CertificateAuthority extends SigningPair {
  readonly names: { readonly ca: string; readonly key: string }
}

/** A CA's certificate and its private key. */
export interface SigningPair {
  readonly certificate: Certificate
  readonly key: KeyObject
}

/**
 * Returns the CA of a certificate file and a key file. Throws KCERT_CA_UNFIT when there is not exactly one certificate (as for
 * --cluster-signing-cert-file), when it is not a CA or may not sign certificates, and when the key does not match.
 */
export function openCa(
  certificates: readonly Certificate[],
  key: KeyObject,
  names: CertificateAuthority['names'],
): CertificateAuthority {
  const [certificate] = certificates
  if (certificate === undefined || certificates.length > 1)
    throw unfit(`${names.ca} contains ${certificates.length} certificates`, {
      why: 'as for kube-controller-manager, the file must contain only the certificate of the CA that signs',
      next: commandLine`kcert inspect ${names.ca}`,
    })
  if (!certificate.isCa)
    throw unfit(`${names.ca} is not a CA: ${certificate.subject.text || 'its subject is empty'}`, {
      why: 'its basicConstraints lack CA:TRUE, so clients reject every certificate that it signs',
      next: commandLine`kcert inspect ${names.ca}`,
    })
  if (certificate.keyUsage !== undefined && !certificate.keyUsage.includes('keyCertSign'))
    throw unfit(`${names.ca} may not sign certificates`, { why: 'its keyUsage lacks keyCertSign' })
  if (!isKeyOf(key, certificate))
    throw unfit(`the key ${names.key} does not match the CA ${names.ca}`, {
      why: 'their public keys differ',
      next: commandLine`kcert inspect ${names.ca} ${names.key}`,
    })
  return { names, certificate, key }
}

/** True when the private key is the one whose public key is certified. */
export function isKeyOf(key: KeyObject, certificate: Certificate): boolean {
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' })
  return spki.equals(certificate.publicKey.spki)
}

/**
 * Reads a request in DER and checks its signature, and that it has no attributes that are unknown or not allowed.
 * Throws KCERT_REQUEST_REFUSED; `name` is for messages.
 */
export function readRequest(
  der: Uint8Array,
  name: string,
  subjectAttributes: readonly string[] = [],
): CertificateRequest {
  let request: CertificateRequest
  try {
    request = CertificateRequest.parse(der)
  } catch (cause) {
    throw refused(`cannot read ${name} as a CSR`, messageOf(cause), { cause })
  }
  const verdict = request.verifySignature()
  if (!verdict.ok) {
    const fault = verdict.reason === 'bad-signature' ? 'is invalid' : 'is not accepted'
    throw refused(`the signature of ${name} ${fault}`, signatureFault(request, verdict.reason))
  }
  const unread = request.unreadAttributes
  if (unread.length > 0)
    throw refused(
      `${name} has unsupported attributes: ${unread.join(', ')}`,
      'other programs may interpret them',
    )
  const more = copiedBesides(request.subject, subjectAttributes)
  if (more.length > 0)
    throw refused(
      `the subject of ${name} has attributes that the profile does not allow: ${more.join(', ')}`,
      'kcert signs CN and O, and other attributes only if --allow-subject-attributes or the profile (subjectAttributes) lists them',
      { fix: allowAttributes(more), next: undefined },
    )
  return request
}

export interface Issued {
  readonly certificate: Certificate
  /** The CA expires first, so the validity is shorter than that of the profile. */
  readonly isClamped: boolean
  /** Names of requested extensions that are not in the certificate. */
  readonly droppedExtensions: readonly string[]
  /** Types of subject attributes that are not in the certificate ("emailAddress"). */
  readonly droppedAttributes: readonly string[]
}

/** Signs one request that `readRequest` returned. Throws KCERT_CA_UNFIT when the CA has expired. */
export function signRequest(
  signingCa: CertificateAuthority,
  request: CertificateRequest,
  profile: SigningProfile,
  now: Date,
  serialNumber: string,
): Issued {
  const ca = signingCa.certificate
  const usages = certificateUsages(profile.usages)
  if (usages === undefined) throw new Error('a profile with unknown usages')
  const policy = { ...profile, shortMs: kubernetesShortMs }
  const { isClamped, ...validity } = validityOf(policy, now, { ...signingCa.names, notAfter: ca.notAfter })
  const subject = goName(textAttributes(request.subject))
  const { keyUsage, extendedKeyUsage } = usages
  // Go omits the authority key identifier when subject and issuer have the same name, because the certificate then counts as
  // self-signed.
  const isNamedAsCa = Buffer.compare(encodeName(subject.rdns), ca.subject.der) === 0
  const der = issueCertificate(
    {
      serialNumber,
      subject: subject.rdns,
      issuer: ca.subject,
      ...validity,
      publicKey: request.publicKey,
      ...(keyUsage.length > 0 ? { keyUsage } : {}),
      extendedKeyUsage,
      basicConstraints: { ca: false },
      ...(ca.subjectKeyId === undefined || isNamedAsCa ? {} : { authorityKeyId: ca.subjectKeyId }),
      subjectAltNames: request.subjectAltNames,
      authorityInfoAccess: { ocsp: profile.ocspUrls, caIssuers: profile.issuerUrls },
      crlDistributionPoints: profile.crlUrls,
    },
    signingCa.key,
  )
  return {
    // Parsed again, so that kcert issues nothing that it would not accept itself.
    certificate: Certificate.parse(der),
    isClamped,
    droppedExtensions: request.extensions.map(({ name }) => name).filter((name) => name !== 'subjectAltName'),
    droppedAttributes: subject.dropped.map(({ type }) => type),
  }
}

/** Returns the attributes whose values are text: Go ignores the others. */
function textAttributes(name: Name): AttributeDescription[] {
  return name.rdns.flat().filter(({ type, oid, derHex }) => type === oid || derHex === undefined)
}

function unfit(what: string, advice: { why: string; next?: string }): KcertError {
  return new KcertError('KCERT_CA_UNFIT', what, advice)
}

/** The next step for a request that cannot be signed; several of them share one. */
export const newRequestAdvice = 'kcert csr create --help'

function refused(what: string, why: string, more: ErrorAdvice = {}): KcertError {
  return new KcertError('KCERT_REQUEST_REFUSED', what, { why, next: newRequestAdvice, ...more })
}
