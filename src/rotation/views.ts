import { given } from '../errors/given.ts'
import type { CertificateRecord, CertificateTable, Digest } from './certificate-record.ts'
import type { CaView, CertificateView, EvidenceView, KeyView } from './report.ts'
import { keyIdFor } from './service-account-key/key-id.ts'
import type { EvidenceSnapshot } from './snapshot.ts'
import { isPlanned, type Target } from './target.ts'

// Certificates, CAs and evidence in the form of reports.

/** Returns a certificate with its generation, or that of the CA that signed it. */
export function certificateView(record: CertificateRecord, target: Target): CertificateView {
  const { digest, subject, notAfterMs } = record
  return {
    generation: generationOf(record, target),
    subject,
    ...(!isPlanned(record) && { notAfter: timeOf(notAfterMs), sha256: digest }),
  }
}

/** Returns the certificates with these digests; an unread one appears as its digest. */
export function certificateViews(
  digests: readonly Digest[],
  certificates: CertificateTable,
  target: Target,
): CertificateView[] {
  return digests.map((digest) => {
    const record = certificates.get(digest)
    return record === undefined
      ? { generation: 'other', subject: '(not read)', ...(isHex(digest) && { sha256: digest }) }
      : certificateView(record, target)
  })
}

function generationOf({ digest, signedBy, isCa }: CertificateRecord, { changes }: Target) {
  for (const { oldCa, newCa, bridge } of changes) {
    if (digest === oldCa.digest) return 'old'
    if (digest === newCa.digest) return 'new'
    if (digest === bridge?.digest) return 'bridge'
    if (signedBy === newCa.spki) return 'new'
    if (signedBy === oldCa.spki) return isCa && oldCa.digest !== digest ? 'other' : 'old'
  }
  return 'other'
}

export function caViews(target: Target): CaView[] {
  return target.changes.map(({ ca, oldCa, newCa, bridge }) => ({
    ca,
    oldCa: certificateView(oldCa, target),
    newCa: certificateView(newCa, target),
    oldPin: pinOf(oldCa),
    ...(isHex(newCa.spki) && { newPin: pinOf(newCa) }),
    hasBridge: bridge !== undefined,
    ...given({ newKeyType: target.keyType }),
  }))
}

/** Returns the service account key in rotation, as a field of reports; empty in a rotation of CAs. */
export function keyView({ key }: Pick<Target, 'key'>): { serviceAccountKey?: KeyView } {
  if (key === undefined) return {}
  const { oldKey, newKey } = key
  const isCreated = !isPlanned({ digest: newKey })
  return {
    serviceAccountKey: { oldKeyId: keyIdFor(oldKey), ...(isCreated && { newKeyId: keyIdFor(newKey) }) },
  }
}

function pinOf({ spki }: CertificateRecord): string {
  return `sha256:${spki}`
}

function isHex(text: string): boolean {
  return /^[0-9a-f]+$/.test(text)
}

export function evidenceView({ key, ok, atMs, detail }: EvidenceSnapshot, nowMs: number): EvidenceView {
  const ageSeconds = Math.max(0, Math.round((nowMs - atMs) / 1000))
  return { key, ok, at: timeOf(atMs), ageSeconds, detail }
}

/** Returns milliseconds of Unix time in RFC 3339 format. */
export function timeOf(atMs: number): string {
  return new Date(atMs).toISOString()
}
