import type { PairFault } from './pairs.ts'

export type FindingId =
  | PairFault['id']
  | 'LINK_MISSING'
  | 'LINK_DANGLING'
  | 'LINK_IS_FILE'
  | 'KUBECONFIG_MISSING'
  | 'KUBECONFIG_UNREADABLE'
  | 'KUBECONFIG_EMBEDS'
  | 'KUBECONFIG_ELSEWHERE'
  | 'KEY_EXPOSED'
  | 'FOLDER_WRITABLE'
  | 'RENEWAL_OVERDUE'
  | 'SERVING_MISSING'
  | 'SELF_SIGNED_UNUSABLE'
  | 'SERVING_NAME'
  | 'INSTANCE_CONFIG'
  | 'LEFTOVER'
  | 'BOOTSTRAP_LEFT'

/** A fix for a finding; every file is backed up first. */
export type Fix =
  | { readonly kind: 'link'; readonly path: string; readonly to: string }
  /** Moves the bytes of a file to a dated name, with a link in its place. */
  | { readonly kind: 'adopt'; readonly path: string; readonly to: string }
  | { readonly kind: 'mode'; readonly path: string; readonly mode: number }
  | { readonly kind: 'remove'; readonly path: string }
  /** Points the user of the kubeconfig to this file for certificate and key. */
  | { readonly kind: 'point'; readonly path: string; readonly user: string; readonly to: string }

export interface Finding {
  readonly id: FindingId
  readonly severity: 'critical' | 'warning' | 'info'
  readonly path: string
  readonly what: string
  readonly why: string
  /** What to decide or change when no command does it; `next` then repeats it. */
  readonly fix?: string
  readonly next: string
  /** Absent when the fix needs a decision or a CA. */
  readonly fixes?: readonly Fix[]
}
