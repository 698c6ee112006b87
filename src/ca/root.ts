import { createPublicKey, type KeyObject } from 'node:crypto'
import { KcertError } from '../errors/kcert-error.ts'
import type { Certificate } from '../x509/certificate.ts'
import { keyIdentifierOf } from '../x509/issuing.ts'
import type { NameInput } from '../x509/name-encoding.ts'
import { oidOf } from '../x509/oids.ts'
import type { SigningPair } from './certificate-authority.ts'
import { authorityKeyIdOf, issued, without } from './successor.ts'
import { type ValidityPolicy, validityOf } from './validity.ts'

// Self-signed CA certificates: the first one, and renewed ones with the same name and key.

/** kubeadm's CACertificateValidityPeriod: ten years. */
export const kubeadmCaTtlMs = 87_600 * 3_600_000

/** The default of cfssl for ca.expiry: five years. */
export const cfsslCaTtlMs = 43_800 * 3_600_000

export interface RootDescription {
  readonly subject: NameInput
  readonly ttlMs: number
  readonly backdateMs?: number
  /** Maximum number of intermediate CAs below it; absent: unlimited. */
  readonly pathLength?: number
}

/** Returns the self-signed certificate of a new CA: it may sign certificates and revocation lists, as cfssl creates it. */
export function issueRoot(
  { subject, ttlMs, backdateMs, pathLength }: RootDescription,
  key: KeyObject,
  now: Date,
  serialNumber: string,
): Certificate {
  const publicKey = createPublicKey(key)
  return issued(
    {
      serialNumber,
      subject,
      issuer: subject,
      ...lifetime({ ttlMs, backdateMs }, now),
      publicKey,
      keyUsage: ['keyCertSign', 'cRLSign'],
      basicConstraints: { ca: true, ...(pathLength === undefined ? {} : { pathLength }) },
      subjectKeyId: keyIdentifierOf(publicKey),
    },
    key,
  )
}

/**
 * Returns a new certificate for the name and the key of a CA, with the extensions of the old one. Certificates that the CA has
 * signed chain to both. The default validity is that of the old one. Throws KCERT_CA_UNFIT when the CA is not self-signed:
 * its issuer must renew it.
 */
export function renewRoot(
  { certificate: old, key }: SigningPair,
  now: Date,
  serialNumber: string,
  ttlMs = old.notAfterMs - old.notBeforeMs,
): Certificate {
  if (!old.isSelfIssued) {
    const what = `the CA ${old.subject.text} is signed by another CA: ${old.issuer.text}`
    throw new KcertError('KCERT_CA_UNFIT', what, {
      why: 'only its issuer can renew it: create a CSR with its key, and let the issuer sign it',
      next: 'kcert csr create --help',
    })
  }
  const hash = /sha(384|512)/.exec(old.signatureAlgorithm)?.[0]
  return issued(
    {
      serialNumber,
      subject: old.subject,
      issuer: old.issuer,
      ...lifetime({ ttlMs }, now),
      publicKey: old.publicKey,
      ...(hash === undefined ? {} : { hash: hash as 'sha384' | 'sha512' }),
      // Not copied: OpenSSL's may contain the old serial number, and the new certificate would then not be its own issuer.
      ...(old.findExtension(oidOf('authorityKeyIdentifier')) && authorityKeyIdOf(old)),
      extensions: without(old, 'authorityKeyIdentifier'),
    },
    key,
  )
}

function lifetime(policy: ValidityPolicy, now: Date): { notBefore: Date; notAfter: Date } {
  const { notBefore, notAfter } = validityOf(policy, now)
  if (notAfter > now) return { notBefore, notAfter }
  throw new KcertError('KCERT_USAGE', 'the CA would be expired from the start', {
    why: 'its validity starts 5 minutes ago',
    next: '--expiry 87600h',
  })
}
