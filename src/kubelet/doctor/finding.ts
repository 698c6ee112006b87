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
  | 'LEFTOVER'
  | 'BOOTSTRAP_LEFT'

/** What is done for a finding; every file is copied first. */
export type Fix =
  | { readonly kind: 'link'; readonly path: string; readonly to: string }
  /** The bytes of a file go under a dated name, and the link in its place leads there. */
  | { readonly kind: 'adopt'; readonly path: string; readonly to: string }
  | { readonly kind: 'mode'; readonly path: string; readonly mode: number }
  | { readonly kind: 'remove'; readonly path: string }
  /** The user of the kubeconfig shows this file, certificate and key. */
  | { readonly kind: 'point'; readonly path: string; readonly user: string; readonly to: string }

export interface Finding {
  readonly id: FindingId
  readonly severity: 'critical' | 'warning' | 'info'
  readonly path: string
  readonly what: string
  readonly why: string
  /** What to decide or change where no command does it; `next` repeats it then. */
  readonly fix?: string
  readonly next: string
  /** Absent where it needs somebody who decides, or a CA. */
  readonly fixes?: readonly Fix[]
}
