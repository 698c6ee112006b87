import type { KubeadmKeyType } from '../x509/new-key.ts'
import type { CertificateRecord, Digest } from './certificate-record.ts'

/** The CAs that the twelve phases rotate. etcd's CA has a playbook of its own. */
export const caNames = ['cluster', 'front-proxy'] as const
export const everyCaName = [...caNames, 'etcd'] as const
export type CaName = (typeof everyCaName)[number]

/** One rotated CA. */
export interface CaChange {
  readonly ca: CaName
  readonly oldCa: CertificateRecord
  /** Its digest is `planned:…` until phase 1 has created it. */
  readonly newCa: CertificateRecord
  /**
   * The new CA's key, certified by the old CA. With it in the chain, clients that trust only the old CA accept leaf certificates
   * of the new CA.
   */
  readonly bridge?: CertificateRecord
}

/** The rotated service account key: SHA-256 of the SubjectPublicKeyInfo of the old and the new one. */
export interface KeyChange {
  readonly oldKey: Digest
  /** `planned:…` until phase 1 has created it. */
  readonly newKey: Digest
}

/** How to prove that no client uses the old service account key. */
export const tokenProofs = ['counters', 'audit', 'pods'] as const

/** Whether the operator knows every client of etcd, so that each can present the bridge certificate. */
export const etcdClientChoices = ['known', 'unknown'] as const

/** What the operator wants, fixed in the first phase and kept in the journal. */
export interface Target {
  /** The cluster CA, the front-proxy CA, or both. */
  readonly changes: readonly CaChange[]
  /** Present if the service account key is rotated. */
  readonly key?: KeyChange
  readonly proof: (typeof tokenProofs)[number]
  /** After a key leak: no bridge certificate, new leaf keys, no return to the old signer, pods restarted at once in phase 12. */
  readonly reason: 'routine' | 'compromise'
  /** True when leaf certificates get new keys. Otherwise each key stays the same, so that only one file changes, atomically. */
  readonly newKeys: boolean
  /** The type of all new keys. Absent: each new key has the type of the key that it replaces. */
  readonly keyType?: KubeadmKeyType
  /** Number of nodes, and of workloads, that may change at the same time. The first one always changes alone. */
  readonly atOnce: number
  /** IDs of pods, certificates and kubeconfigs for which the operator accepted the risk. */
  readonly waivers: ReadonlySet<string>
  /** When the operator confirmed these, by ID. Those of a flag have no time. */
  readonly confirmedAtMs?: ReadonlyMap<string, number>
  /** True when clients that certainly read their CA file again need no restart. */
  readonly trustsReloadingClients: boolean
  /** A clock that differs by more than this could treat a new certificate as not yet valid. */
  readonly mostClockSkewMs: number
  /** How long no server or client may present the old CA before phase 11 is complete. */
  readonly soakMs: number
  /** `unknown`: members of etcd trust both CAs until the operator confirms that all clients have certificates of the new one. */
  readonly etcdClients: (typeof etcdClientChoices)[number]
  /** True when the only API server may restart. */
  readonly acceptsOutage: boolean
  /** Untested minor versions that the operator accepted: "1.38". */
  readonly acceptedVersions: ReadonlySet<string>
  /** Set once phase 12 has started: from then on no verifier needs to trust the old CA. Read from the snapshot. */
  readonly isDropping: boolean
}

/** Returns the change of one CA, or undefined when this rotation does not include it. */
export function changeOf(target: Target, ca: CaName): CaChange | undefined {
  return target.changes.find((change) => change.ca === ca)
}

/**
 * Returns what a verifier trusts in the middle of the rotation. The old CA is first: `kubeadm certs renew` signs with the first
 * certificate in ca.crt and the key next to it, which is the old one until phase 12.
 */
export function bundleOf({ oldCa, newCa }: CaChange): readonly Digest[] {
  return [oldCa.digest, newCa.digest]
}

/** Returns the trust that a verifier must have now: both CAs, or only the new one once the old one is being dropped. */
export function wantedTrust(target: Target, change: CaChange): readonly Digest[] {
  return target.isDropping ? [change.newCa.digest] : bundleOf(change)
}

/** Returns a placeholder digest for a certificate that phase 1 will create. */
export function plannedDigest(ca: CaName | 'service-account', what: 'new' | 'bridge'): Digest {
  return `planned:${ca}/${what}`
}

/** Returns true for a certificate that phase 1 has not created yet. */
export function isPlanned({ digest }: Pick<CertificateRecord, 'digest'>): boolean {
  return digest.startsWith('planned:')
}

/** Returns what this rotation replaces with something that phase 1 has not created yet. */
export function plannedIn({ changes, key }: Pick<Target, 'changes' | 'key'>): readonly Digest[] {
  const news = [...changes.map(({ newCa }) => newCa.digest), ...(key ? [key.newKey] : [])]
  return news.filter((digest) => isPlanned({ digest }))
}

/** Returns true once phase 1 has created something new. */
export function hasBegun(target: Pick<Target, 'changes' | 'key'>): boolean {
  return plannedIn(target).length < target.changes.length + (target.key ? 1 : 0)
}

/** Returns a trust with the new CA appended, or unchanged if it has the new CA already. */
export function withNew(trust: readonly Digest[], { newCa }: CaChange): readonly Digest[] {
  return trust.includes(newCa.digest) ? trust : [...trust, newCa.digest]
}

/** Returns a trust with the new CA and without the old one; other CAs stay. */
export function withoutOld(trust: readonly Digest[], change: CaChange): readonly Digest[] {
  return withNew(trust, change).filter((digest) => digest !== change.oldCa.digest)
}
