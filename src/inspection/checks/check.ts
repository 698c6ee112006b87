import type { Collection } from '../collection.ts'
import type { CertificateEntry, Group, Role } from '../entries.ts'
import type { Links } from '../links.ts'
import type { CertificateStatus, Problem } from '../report.ts'

/** The input of the checks. It no longer changes. */
export interface Snapshot {
  readonly now: Date
  readonly collection: Collection
  readonly links: Links
  /** Sources that form one configuration, in the order of $KUBECONFIG. */
  readonly mergedKubeconfigs: readonly string[]
  readonly roleOf: (entry: CertificateEntry) => Role
  readonly statusOf: (entry: CertificateEntry) => CertificateStatus
  /** True when other certificates in the group are valid CAs, and this one is a CA too. */
  readonly isBundle: (group: Group) => boolean
}

/** Returns the problems of one certificate. */
export type CertificateCheck = (
  entry: CertificateEntry,
  role: Role,
  snapshot: Snapshot,
) => Problem | Problem[] | undefined

/** Returns the problems of the whole snapshot. */
export type SnapshotCheck = (snapshot: Snapshot) => Problem[]
