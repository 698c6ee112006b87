import { createPublicKey, type KeyObject } from 'node:crypto'
import { KcertError } from '../errors/kcert-error.ts'
import { Certificate } from '../x509/certificate.ts'
import {
  type CertificateDescription,
  issueCertificate,
  keyIdentifierOf,
  type RawExtension,
} from '../x509/issuing.ts'
import type { NameInput } from '../x509/name-encoding.ts'
import { oidOf } from '../x509/oids.ts'
import type { Authority } from './authority.ts'
import { kubernetesBackdateMs, validityOf } from './validity.ts'

// Certificates that a CA signs for itself: its first one, and later ones for the same name and key.

/** kubeadm's CACertificateValidityPeriod: ten years. */
export const kubeadmCaTtlMs = 87_600 * 3_600_000

/** cfssl's, where a request has no ca.expiry: five years. */
export const cfsslCaTtlMs = 43_800 * 3_600_000

export interface RootDescription {
  readonly subject: NameInput
  readonly ttlMs: number
  readonly backdateMs?: number
  /** How many CAs may stand below it; absent for no limit. */
  readonly pathLength?: number
}

/** Returns the self-signed certificate of a new CA: it may sign certificates and revocation lists, as cfssl makes it. */
export function issueRoot(
  description: RootDescription,
  key: KeyObject,
  now: Date,
  serialNumber: string,
): Certificate {
  const { subject, ttlMs, backdateMs = kubernetesBackdateMs, pathLength } = description
  const { notBefore, notAfter } = validityOf({ ttlMs, backdateMs, shortMs: 0 }, now)
  if (notAfter.getTime() <= now.getTime()) throw tooShort()
  const publicKey = createPublicKey(key)
  return Certificate.parse(
    issueCertificate(
      {
        serialNumber,
        subject,
        issuer: subject,
        notBefore,
        notAfter,
        publicKey,
        keyUsage: ['keyCertSign', 'cRLSign'],
        basicConstraints: { ca: true, ...(pathLength === undefined ? {} : { pathLength }) },
        subjectKeyId: keyIdentifierOf(publicKey),
      },
      key,
    ),
  )
}

/**
 * Returns a new certificate for the name and the key of a CA, with the extensions of the old one. Certificates that the CA has
 * signed chain to both. Lives as long as the old one did unless told otherwise. Throws KCERT_CA_UNFIT when the CA did not sign
 * itself: then its issuer renews it.
 */
export function renewRoot(
  authority: Authority,
  now: Date,
  serialNumber: string,
  ttlMs?: number,
): Certificate {
  const { certificate: old, key } = authority
  if (!old.isSelfIssued) {
    throw new KcertError(
      'KCERT_CA_UNFIT',
      `the CA ${old.subject.text} is signed by another: ${old.issuer.text}`,
      {
        why: 'only its issuer can give it a new certificate',
        next: 'make a request with its key (kcert csr create --key FILE) and have the issuer sign it',
      },
    )
  }
  const lifetimeMs = ttlMs ?? old.notAfter.getTime() - old.notBefore.getTime()
  const { notBefore, notAfter } = validityOf(
    { ttlMs: lifetimeMs, backdateMs: kubernetesBackdateMs, shortMs: 0 },
    now,
  )
  if (notAfter.getTime() <= now.getTime()) throw tooShort()
  const hash = /sha(384|512)/.exec(old.signatureAlgorithm)?.[0]
  const description: CertificateDescription = {
    serialNumber,
    subject: old.subject,
    issuer: old.issuer,
    notBefore,
    notAfter,
    publicKey: old.publicKey,
    ...(hash === undefined ? {} : { hash: hash as 'sha384' | 'sha512' }),
    ...keptAuthorityKeyId(old),
    extensions: old.extensions.filter(
      ({ oid }) => oid !== authorityKeyIdentifier,
    ) satisfies readonly RawExtension[],
  }
  return Certificate.parse(issueCertificate(description, key))
}

const authorityKeyIdentifier = oidOf('authorityKeyIdentifier')

// Written anew: OpenSSL's may hold the old certificate's serial number, which would keep the new one from being its own issuer.
function keptAuthorityKeyId(old: Certificate): { authorityKeyId?: string } {
  const had = old.findExtension(authorityKeyIdentifier) !== undefined
  return had && old.subjectKeyId !== undefined ? { authorityKeyId: old.subjectKeyId } : {}
}

function tooShort(): KcertError {
  return new KcertError('KCERT_USAGE', 'the CA would be expired when it is made', {
    why: 'its lifetime is counted from 5 minutes ago',
    next: '--expiry 87600h',
  })
}
