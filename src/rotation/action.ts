import type { FlagChanges } from '../pki/component-flags.ts'
import type { Digest } from './certificate-record.ts'
import type { HandshakeRate, ObjectReference, ProcessId, Trust } from './snapshot.ts'
import type { CaName } from './target.ts'

// Everything that kcert ever does to a cluster. Values only: what is secret in a file is named here and resolved by the
// executor on its way to the node, so that a plan can be printed, stored and compared as it is.

/** What a file will hold. */
export type Content =
  | { readonly kind: 'certificates'; readonly certificates: readonly Digest[] }
  | { readonly kind: 'ca-key'; readonly ca: CaName; readonly generation: 'old' | 'new' }
  /**
   * The leaf of the replaced file, reissued by the new CA for the same names; `chain` follows it. The key is kept,
   * so that one file changes, or it is generated and written by the same action to the path in `newKey`.
   */
  | {
      readonly kind: 'reissued'
      readonly leaf: Digest
      readonly ca: CaName
      readonly chain: readonly Digest[]
      readonly newKey?: string
    }
  /** The replaced kubeconfig with other CA data, and its client certificate reissued by the new cluster CA. */
  | { readonly kind: 'kubeconfig'; readonly caData: Trust; readonly reissue?: Digest; readonly newKey?: true }
  /** The definition of a component with other flags (null takes one out) and annotations. */
  | {
      readonly kind: 'definition'
      readonly flags: FlagChanges
      readonly annotations?: FlagChanges
    }
  /** Asked from the cluster in the node's own name and approved there; written in the kubelet's store form. */
  | { readonly kind: 'requested'; readonly usage: 'client' | 'serving'; readonly replaces: Digest }
  /** Copies of these files, and lines in the index that say where each belongs. The index only grows: `replaces` is not compared. */
  | { readonly kind: 'copies'; readonly of: readonly CopiedFile[] }
  /** The index of the copies under another name: the rotation is finished, and the next one creates its own index. */
  | { readonly kind: 'copies-over' }
  /** The bytes that a copy on the same node holds. */
  | { readonly kind: 'copy'; readonly digest: Digest }
  | { readonly kind: 'link'; readonly to: string }
  | { readonly kind: 'nothing' }

export interface CopiedFile {
  readonly path: string
  /** Absent when there is no such file yet. */
  readonly digest?: Digest
  /** Of a definition: what kcert will change in it, as it is now; null when unset. */
  readonly flags?: FlagChanges
  /** Of a definition: the version that it starts. */
  readonly version?: string
}

export interface WriteFile {
  readonly kind: 'write-file'
  readonly phase: number
  readonly node: string
  readonly path: string
  /** The bytes that are replaced: other bytes there, and nothing is written. `absent`: there is no such file. */
  readonly replaces: Digest | 'absent'
  readonly content: Content
  readonly mode: number
}

export type ObjectChange =
  | { readonly kind: 'ca-bundle'; readonly field: string; readonly trust: Trust }
  | { readonly kind: 'cluster-info'; readonly trust: Trust }
  | {
      readonly kind: 'extra-args'
      readonly component: string
      readonly flags: FlagChanges
    }
  | { readonly kind: 'delete' }
  /** As the copy says that it was. */
  | { readonly kind: 'copy'; readonly digest: Digest | undefined }

export interface PatchObject {
  readonly kind: 'patch-object'
  readonly phase: number
  readonly object: ObjectReference
  /** The content that is changed, by its name in the snapshot: other content there, and nothing is written. */
  readonly version: string
  readonly change: ObjectChange
}

export interface RestartComponent {
  readonly kind: 'restart'
  readonly phase: number
  readonly process: ProcessId
  /**
   * Start of the process that must go, in milliseconds; absent when none runs. When another runs already, nothing is restarted
   * and only its health is awaited: that makes a restart safe to be done again.
   */
  readonly replaces?: number
  /** The kubelet restarts a static pod because its definition changed; the service manager restarts everything else. */
  readonly how: 'definition' | 'service'
  /** The Lease to hand over by hand if this process holds it, once it is seen gone: 17 s without a leader become 2. */
  readonly lease?: string
}

export interface RollWorkload {
  readonly kind: 'roll'
  readonly phase: number
  readonly workload: string
  /** Becomes the value of the annotation ca-rotation; the same value again rolls nothing. */
  readonly annotation: string
}

/** The condition of a wait. Each is evaluated on a snapshot (conditions.ts), so that waiting is observing. */
export type Condition =
  | { readonly kind: 'published'; readonly holds: Trust; readonly lacks: Trust; readonly bundles: boolean }
  | { readonly kind: 'volumes'; readonly holds: Trust; readonly lacks: Trust }
  | { readonly kind: 'pods-converged'; readonly workload?: string; readonly holds: Trust }
  | { readonly kind: 'pods-started'; readonly workload: string; readonly sinceMs: number }
  /** The server's leaf is signed by this key; `bridged` says whether a bridge certificate must or must not follow it. */
  | {
      readonly kind: 'serves'
      readonly presenter: string
      readonly signedBy: Digest
      readonly bridged?: boolean
    }
  | { readonly kind: 'cluster-info-signed'; readonly trust: Trust }
  /** What each list must hold, whatever else API servers know, and what neither may. */
  | {
      readonly kind: 'extension-authentication'
      readonly client: Trust
      readonly requestheader: Trust
      readonly lacks: Trust
    }
  | { readonly kind: 'leader'; readonly lease: string }
  | { readonly kind: 'available'; readonly bundle: string }
  | { readonly kind: 'node-ready'; readonly node: string }
  /** No pod of the node is not Ready that was so until then. */
  | { readonly kind: 'backends-ready'; readonly node: string; readonly sinceMs: number }
  | { readonly kind: 'instant'; readonly atMs: number }

export interface WaitUntil {
  readonly kind: 'wait'
  readonly phase: number
  readonly until: Condition
  /** What is waited for, as a fragment for people. */
  readonly because: string
  readonly deadlineMs: number
}

export type ProbeSubject =
  /** A client certificate, sent by force, at a server. */
  | {
      readonly kind: 'client'
      readonly at: ProcessId
      readonly ca: CaName
      readonly generation: 'old' | 'new'
      readonly expects: 'accepted' | 'refused'
    }
  /** A client that trusts the old CA alone connects. */
  | { readonly kind: 'old-trust'; readonly at: ProcessId; readonly expects: 'refused' }
  /** A request to the signer kubernetes.io/kube-apiserver-client. */
  | { readonly kind: 'signer'; readonly generation: 'old' | 'new' }
  /** A kubeconfig, at each API server. */
  | { readonly kind: 'kubeconfig'; readonly id: string }
  /** Logs of a pod on the node, through each API server: also by then no connection with an older certificate is kept. */
  | { readonly kind: 'logs'; readonly node: string }
  /** The copies on the node, written to a scratch folder and compared. */
  | { readonly kind: 'copies'; readonly node: string }
  /** How many TLS handshakes fail before anything is changed: what load balancers, scanners and clients that hang up always cause. */
  | { readonly kind: 'handshake-rate'; readonly at: ProcessId; readonly forMs: number }
  /** No client refuses the certificate but those that are waived, and no more handshakes fail than before phase 1. */
  | {
      readonly kind: 'handshake-errors'
      readonly at: ProcessId
      readonly forMs: number
      readonly before?: HandshakeRate
      /** Addresses of clients, and `at` itself for what its log does not show. */
      readonly waived: readonly string[]
    }

export interface Probe {
  readonly kind: 'probe'
  readonly phase: number
  readonly subject: ProbeSubject
  /** How long it may fail before it counts. */
  readonly deadlineMs: number
}

export interface Ask {
  readonly kind: 'ask'
  readonly phase: number
  /** Key under which the answer is remembered; a waiver of the same id answers it beforehand. */
  readonly id: string
  readonly question: string
}

export type Action = WriteFile | PatchObject | RestartComponent | RollWorkload | WaitUntil | Probe | Ask

export type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>

type WithoutPhase<One> = One extends Action ? Omit<One, 'phase'> : never

/** An action as a part of a phase gives it: definePhase says of which phase it is. */
export type Task<Kind extends Action['kind'] = Action['kind']> = WithoutPhase<ActionOf<Kind>>

/** Lanes that run side by side, so many at once; the steps of one lane one after the other. */
export interface Parallel<Of = Action> {
  readonly kind: 'together'
  readonly atOnce: number
  readonly lanes: readonly Lane<Of>[]
}

export interface Lane<Of = Action> {
  readonly name: string
  readonly steps: readonly Of[]
}

export type Step<Of = Action> = Of | Parallel<Of>

/** Returns the actions of a step: those of all its lanes, or itself. */
export function actionsOf<Of extends Action | Task>(step: Step<Of>): readonly Of[] {
  return step.kind === 'together' ? step.lanes.flatMap(({ steps }) => steps) : [step]
}

/** Returns the key under which what a probe said is kept as evidence. */
export function evidenceKey(subject: ProbeSubject): string {
  switch (subject.kind) {
    case 'client':
      return `client ${subject.generation} ${subject.ca} ${subject.expects} at ${subject.at}`
    case 'old-trust':
      return `old trust ${subject.expects} at ${subject.at}`
    case 'signer':
      return `signer ${subject.generation}`
    case 'kubeconfig':
      return `kubeconfig ${subject.id}`
    case 'logs':
      return `logs ${subject.node}`
    case 'copies':
      return `copies ${subject.node}`
    case 'handshake-rate':
      return `handshake rate ${subject.at}`
    case 'handshake-errors':
      return `handshake errors ${subject.at}`
  }
}
