import { createPublicKey, type KeyObject } from 'node:crypto'
import { type CommandLine, commandLine } from '../errors/command-line.ts'
import { KcertError, messageOf } from '../errors/kcert-error.ts'
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

// Signs requests as kube-controller-manager does (pkg/controller/certificates/authority): subject, alternative names and key
// come from the request, usages and lifetime from the signer, and nothing else of the request gets through.

/** A CA's certificate and its private key, seen to belong together, and where the two were read from, for messages. */
export interface Authority extends SigningPair {
  readonly names: { readonly ca: string; readonly key: string }
}

/** A CA's certificate and the private key that belongs to it. */
export interface SigningPair {
  readonly certificate: Certificate
  readonly key: KeyObject
}

/**
 * Returns the CA of a certificate file and a key file. Throws KCERT_CA_UNFIT when there is not exactly one certificate (as for
 * --cluster-signing-cert-file), when it is no CA or may not sign certificates, and when the key is another's.
 */
export function openAuthority(
  certificates: readonly Certificate[],
  key: KeyObject,
  names: Authority['names'],
): Authority {
  const [certificate] = certificates
  if (certificate === undefined || certificates.length > 1)
    throw unfit(`${names.ca} holds ${certificates.length} certificates`, {
      why: 'a CA signs with one, and its file must not be a bundle, as for kube-controller-manager',
      next: 'put the certificate of the CA that signs into a file of its own',
    })
  if (!certificate.isCa)
    throw unfit(`${names.ca} is no CA: ${certificate.subject.text || 'its subject is empty'}`, {
      why: 'its basicConstraints do not say CA:TRUE, so nobody would accept what it signs',
      next: 'create a CA: kcert ca init --cn NAME --out ca.pem --key-out ca-key.pem',
    })
  if (certificate.keyUsage !== undefined && !certificate.keyUsage.includes('keyCertSign'))
    throw unfit(`${names.ca} may not sign certificates`, { why: 'its keyUsage has no keyCertSign' })
  if (!isKeyOf(key, certificate))
    throw unfit(`the key ${names.key} does not belong to the CA ${names.ca}`, {
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
 * Reads a request in DER and checks that whoever made it holds the key, and that it asks for nothing that is not read or not allowed.
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
    throw refused(`${name} is no request that can be read`, messageOf(cause), { cause })
  }
  const verdict = request.verifySignature()
  if (!verdict.ok)
    throw refused(`the signature of ${name} does not count`, signatureFault(request, verdict.reason))
  const unread = request.unreadAttributes
  if (unread.length > 0)
    throw refused(
      `${name} has attributes that kcert does not read: ${unread.join(', ')}`,
      'another program may',
    )
  const more = copiedBesides(request.subject, subjectAttributes)
  if (more.length > 0)
    throw refused(
      `the subject of ${name} has attributes that the profile does not allow: ${more.join(', ')}`,
      'kcert signs CN and O, and other attributes only if --allow-subject-attributes or the profile (subjectAttributes) lists them',
      { next: allowAttributes(more) },
    )
  return request
}

export interface Issued {
  readonly certificate: Certificate
  /** The CA ends first: the certificate lives shorter than its profile says. */
  readonly isClamped: boolean
  /** Names of requested extensions that are not in the certificate. */
  readonly droppedExtensions: readonly string[]
  /** Types of subject attributes that are not in the certificate ("emailAddress"). */
  readonly droppedAttributes: readonly string[]
}

/** Signs one request that `readRequest` returned. Throws KCERT_CA_UNFIT when the CA has expired. */
export function signRequest(
  authority: Authority,
  request: CertificateRequest,
  profile: SigningProfile,
  now: Date,
  serialNumber: string,
): Issued {
  const ca = authority.certificate
  const usages = certificateUsages(profile.usages)
  if (usages === undefined) throw new Error('a profile with unknown usages')
  const validity = validityOf({ ...profile, shortMs: kubernetesShortMs }, now, {
    ...authority.names,
    notAfter: ca.notAfter,
  })
  const subject = goName(textAttributes(request.subject))
  const { keyUsage, extendedKeyUsage } = usages
  // Go names no issuer's key where subject and issuer are the same name: it takes the certificate for the issuer's own.
  const isNamedAsCa = Buffer.compare(encodeName(subject.rdns), ca.subject.der) === 0
  const der = issueCertificate(
    {
      serialNumber,
      subject: subject.rdns,
      issuer: ca.subject,
      notBefore: validity.notBefore,
      notAfter: validity.notAfter,
      publicKey: request.publicKey,
      ...(keyUsage.length > 0 ? { keyUsage } : {}),
      extendedKeyUsage,
      basicConstraints: { ca: false },
      ...(ca.subjectKeyId === undefined || isNamedAsCa ? {} : { authorityKeyId: ca.subjectKeyId }),
      subjectAltNames: request.subjectAltNames,
      authorityInfoAccess: { ocsp: profile.ocspUrls, caIssuers: profile.issuerUrls },
      crlDistributionPoints: profile.crlUrls,
    },
    authority.key,
  )
  return {
    // Read back, so that nothing leaves that kcert itself would not accept.
    certificate: Certificate.parse(der),
    isClamped: validity.isClamped,
    droppedExtensions: request.extensions.map(({ name }) => name).filter((name) => name !== 'subjectAltName'),
    droppedAttributes: subject.dropped.map(({ type }) => type),
  }
}

/** Attributes whose values are text: Go passes over the others. */
function textAttributes(name: Name): AttributeDescription[] {
  return name.rdns.flat().filter(({ type, oid, derHex }) => type === oid || derHex === undefined)
}

function unfit(what: string, advice: { why: string; next?: string }): KcertError {
  return new KcertError('KCERT_CA_UNFIT', what, advice)
}

/** What helps with a request that is refused for what it is; for several of them there is better advice. */
export const newRequestAdvice = 'create a new request: kcert csr create --user NAME --key-out FILE'

function refused(what: string, why: string, more: { cause?: unknown; next?: CommandLine } = {}): KcertError {
  return new KcertError('KCERT_REQUEST_REFUSED', what, { why, next: newRequestAdvice, ...more })
}
