import { createPublicKey, type KeyObject } from 'node:crypto'
import { Certificate } from '../x509/certificate.ts'
import {
  type CertificateDescription,
  issueCertificate,
  keyIdentifierOf,
  type RawExtension,
} from '../x509/issuing.ts'
import type { Name } from '../x509/name.ts'
import type { AttributeDescription, NameInput } from '../x509/name-encoding.ts'
import { type OidName, oidOf } from '../x509/oids.ts'
import type { SigningPair } from './certificate-authority.ts'
import { type SigningCa, validityOf } from './validity.ts'

// A CA's successor: the new CA, the cross-signed CA certificate with which clients that trust only the old CA trust the new one,
// and reissued leaves.

/** The inputs of one issuance. */
export interface Issuing {
  readonly now: Date
  /** Hexadecimal. */
  readonly serialNumber: string
}

/**
 * Returns the certificate of a CA that replaces another: with the usages, constraints and validity of the old one, and another
 * name and key, so that verifiers that match by name do not confuse them.
 */
export function issueSuccessor(
  old: Certificate,
  subject: NameInput,
  key: KeyObject,
  { now, serialNumber }: Issuing,
): Certificate {
  const publicKey = createPublicKey(key)
  const subjectKeyId = keyIdentifierOf(publicKey)
  return issued(
    {
      serialNumber,
      subject,
      issuer: subject,
      ...lifetimeOf(old, now),
      publicKey,
      basicConstraints: { ca: true },
      subjectKeyId,
      authorityKeyId: subjectKeyId,
      extensions: without(old, 'subjectKeyIdentifier', 'authorityKeyIdentifier'),
    },
    key,
  )
}

/**
 * Returns the new CA's name and key certified by the old CA, until the old CA expires. Sent after a leaf of the new CA, it leads
 * clients that trust only the old CA to their root.
 */
export function issueBridge(
  newCa: Certificate,
  old: SigningPair,
  { now, serialNumber }: Issuing,
): Certificate {
  const { certificate, key } = old
  const { notBefore } = validityOf({ ttlMs: Infinity }, now, kubeadmSigningCa(certificate.notAfter))
  return issued(
    {
      serialNumber,
      subject: newCa.subject,
      issuer: certificate.subject,
      notBefore,
      notAfter: certificate.notAfter,
      publicKey: newCa.publicKey,
      ...authorityKeyIdOf(certificate),
      extensions: without(newCa, 'authorityKeyIdentifier'),
    },
    key,
  )
}

/**
 * Returns a leaf reissued by a CA: with the same subject, names, usages and, by default, validity, capped at the expiry of the
 * CA; and the same key, unless one is given.
 */
export function reissueLeaf(
  leaf: Certificate,
  signingCa: SigningPair,
  { now, serialNumber }: Issuing,
  publicKey?: KeyObject,
  ttlMs?: number,
): Certificate {
  const ca = signingCa.certificate
  return issued(
    {
      serialNumber,
      subject: leaf.subject,
      issuer: ca.subject,
      ...lifetimeOf(leaf, now, ca.notAfter, ttlMs),
      publicKey: publicKey ?? leaf.publicKey,
      ...authorityKeyIdOf(ca),
      // Another key has another identifier.
      extensions: without(
        leaf,
        'authorityKeyIdentifier',
        ...(publicKey === undefined ? [] : (['subjectKeyIdentifier'] as const)),
      ),
    },
    signingCa.key,
  )
}

/** Returns a name with its last common name replaced, or with a common name appended if it has none. */
export function withCommonName(name: Name, rename: (commonName: string) => string): NameInput {
  const rdns = name.rdns.map((rdn) => rdn.map(({ type, value }): AttributeDescription => ({ type, value })))
  const last = rdns.findLast((rdn) => rdn.some(({ type }) => type === 'CN'))
  if (last === undefined) return [...rdns, [{ type: 'CN', value: rename('') }]]
  return rdns.map((rdn) =>
    rdn === last
      ? rdn.map(({ type, value }) => ({ type, value: type === 'CN' ? rename(value) : value }))
      : rdn,
  )
}

function lifetimeOf(like: Certificate, now: Date, limit?: Date, ttlMs = like.notAfterMs - like.notBeforeMs) {
  const { notBefore, notAfter } = validityOf({ ttlMs }, now, limit && kubeadmSigningCa(limit))
  return { notBefore, notAfter }
}

/** Returns the key identifier of a CA for the certificates that it signs. */
export function authorityKeyIdOf({ subjectKeyId }: Certificate): { authorityKeyId?: string } {
  return subjectKeyId === undefined ? {} : { authorityKeyId: subjectKeyId }
}

/** Returns the extensions of a certificate for a new one, without the named extensions. */
export function without({ extensions }: Certificate, ...names: readonly OidName[]): readonly RawExtension[] {
  const left = new Set<string>(names.map((name) => oidOf(name)))
  return extensions.filter(({ oid }) => !left.has(oid))
}

/** Returns the issued certificate, parsed again, so that kcert issues nothing that it would not accept itself. */
export function issued(description: CertificateDescription, key: KeyObject): Certificate {
  return Certificate.parse(issueCertificate(description, key))
}

/** Returns the CA with the paths of kubeadm, for messages. */
function kubeadmSigningCa(notAfter: Date): SigningCa {
  return { notAfter, ca: 'ca.crt', key: 'ca.key' }
}
