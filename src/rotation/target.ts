import type { CertificateRecord, Digest } from './certificate-record.ts'

export const caNames = ['cluster', 'front-proxy'] as const
export type CaName = (typeof caNames)[number]

/** One CA that is rotated. */
export interface CaChange {
  readonly ca: CaName
  readonly oldCa: CertificateRecord
  /** Its digest is `planned:…` until phase 1 has made it. */
  readonly newCa: CertificateRecord
  /** The new CA's key, certified by the old CA: who trusts the old one alone accepts leaves of the new one beside it. */
  readonly bridge?: CertificateRecord
}

/** What the operator wants, fixed at the first phase and kept in the journal. */
export interface Target {
  /** The cluster CA, the front-proxy CA, or both. */
  readonly changes: readonly CaChange[]
  /** After a key leak: no bridge certificate, new leaf keys, no return to the old signer, pods restarted at once in phase 12. */
  readonly reason: 'routine' | 'compromise'
  /** Leaves get new keys. Otherwise the key stays, so that one file changes, atomically. */
  readonly newKeys: boolean
  /** How many nodes, and how many workloads, may change at the same time; the first is always alone. */
  readonly atOnce: number
  /** Pods, certificates and kubeconfigs whose risk the operator accepted, by id. */
  readonly waivers: ReadonlySet<string>
  /** True when clients known to read their CA file again need no restart. */
  readonly trustsReloadingClients: boolean
  /** A clock that is further off than this would take a certificate for one of the future. */
  readonly mostClockSkewMs: number
  /** How long nothing may present the old CA before phase 11 is complete. */
  readonly soakMs: number
  /** A single API server may be restarted. */
  readonly acceptsOutage: boolean
  /** Minors that no rotation was run on, and that the operator typed: "1.38". */
  readonly acceptedVersions: ReadonlySet<string>
  /** Set once phase 12 has started: from then on no verifier needs to trust the old CA. Read from the snapshot. */
  readonly isDropping: boolean
}

/** Returns the change of one CA, or undefined when this rotation leaves it alone. */
export function changeOf(target: Target, ca: CaName): CaChange | undefined {
  return target.changes.find((change) => change.ca === ca)
}

/**
 * Returns what a verifier trusts in the middle of the rotation. The old CA is first: `kubeadm certs renew` signs with the
 * first certificate of ca.crt and the key beside it, which is the old one until phase 12.
 */
export function bundleOf({ oldCa, newCa }: CaChange): readonly Digest[] {
  return [oldCa.digest, newCa.digest]
}

/** Returns the trust that a verifier must have by now: both CAs, or the new one alone once the old one is being dropped. */
export function wantedTrust(target: Target, change: CaChange): readonly Digest[] {
  return target.isDropping ? [change.newCa.digest] : bundleOf(change)
}

/** Digest of a certificate that phase 1 will make. */
export function plannedDigest(ca: CaName, what: 'new' | 'bridge'): Digest {
  return `planned:${ca}/${what}`
}

/** True for a certificate that phase 1 has not made yet. */
export function isPlanned({ digest }: Pick<CertificateRecord, 'digest'>): boolean {
  return digest.startsWith('planned:')
}

/** Returns a trust with the new CA appended, or unchanged if it has the new CA already. */
export function withNew(trust: readonly Digest[], { newCa }: CaChange): readonly Digest[] {
  return trust.includes(newCa.digest) ? trust : [...trust, newCa.digest]
}

/** Returns a trust with the new CA and without the old one; other CAs stay. */
export function withoutOld(trust: readonly Digest[], change: CaChange): readonly Digest[] {
  return withNew(trust, change).filter((digest) => digest !== change.oldCa.digest)
}
