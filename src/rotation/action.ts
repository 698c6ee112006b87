import type { FlagChanges } from '../pki/component-flags.ts'
import type { KubeadmKeyType } from '../x509/new-key.ts'
import type { Digest } from './certificate-record.ts'
import type { CopySnapshot, HandshakeRate, ObjectReference, ProcessId, Trust } from './snapshot.ts'
import type { CaName } from './target.ts'

// Every action that kcert performs on a cluster. Actions are plain values. They name secrets in files, and the executor resolves
// the names on the way to the node. A plan can therefore be printed, stored and compared.

/** The content of a file after a write. */
export type Content =
  | { readonly kind: 'certificates'; readonly certificates: readonly Digest[] }
  | {
      readonly kind: 'ca-key'
      readonly ca: CaName
      readonly generation: 'old' | 'new'
      /** The type of a new key; absent: that of the old CA's key. */
      readonly keyType?: KubeadmKeyType
    }
  /** The new service account key, which phase 1 creates. */
  | { readonly kind: 'service-account-key' }
  /** These public keys of service account keys, in this order. */
  | { readonly kind: 'public-keys'; readonly keys: readonly Digest[] }
  /**
   * The leaf certificate of the replaced file, reissued by the new CA for the same names and followed by `chain`. The key stays
   * the same, so that only one file changes, or the same action writes a new key to the path in `newKey`.
   */
  | {
      readonly kind: 'reissued'
      readonly leaf: Digest
      readonly ca: CaName
      readonly chain: readonly Digest[]
      readonly newKey?: string
      readonly keyType?: KubeadmKeyType
    }
  /** The replaced kubeconfig with other CA data, and its client certificate reissued by the new cluster CA. */
  | {
      readonly kind: 'kubeconfig'
      readonly caData: Trust
      readonly reissue?: Digest
      readonly newKey?: true
      readonly keyType?: KubeadmKeyType
    }
  /** The definition of a component with other flags (null removes one) and annotations. */
  | {
      readonly kind: 'definition'
      readonly flags: FlagChanges
      readonly annotations?: FlagChanges
    }
  /** A certificate requested from the cluster in the node's name and approved there, in the format of the kubelet's store. */
  | { readonly kind: 'requested'; readonly usage: 'client' | 'serving'; readonly replaces: Digest }
  /** Copies of these files, and index lines with their paths. The index only grows: `replaces` is not compared. */
  | { readonly kind: 'copies'; readonly of: readonly CopiedFile[] }
  /** The index of the copies under another name: the rotation is finished, and the next one creates its own index. */
  | { readonly kind: 'copies-over' }
  /** The bytes of a copy on the same node, and of another copy for the key of the certificate. */
  | { readonly kind: 'copy'; readonly digest: Digest; readonly key?: RestoredKey }
  | { readonly kind: 'link'; readonly to: string }
  | { readonly kind: 'nothing' }

/** A private key to restore together with its certificate, because programs read the two for each new connection. */
export interface RestoredKey extends Pick<WriteFile, 'path' | 'replaces'> {
  readonly digest: Digest
}

/** A file before it is copied, with the facts that its copy records. */
export interface CopiedFile extends Pick<CopySnapshot, 'digest' | 'flags' | 'version'> {
  readonly path: string
}

export interface WriteFile {
  readonly kind: 'write-file'
  readonly phase: number
  readonly node: string
  readonly path: string
  /** The bytes to replace. kcert writes nothing if the file has other bytes. `absent`: the file does not exist. */
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
  /** encryptionAlgorithm in kubeadm's ClusterConfiguration. */
  | { readonly kind: 'encryption-algorithm'; readonly keyType: KubeadmKeyType }
  | { readonly kind: 'delete' }
  /** A new Secret, for which the controller manager signs a token of this service account. */
  | { readonly kind: 'token-secret'; readonly serviceAccount: string }
  /** The object as it is in the copy. */
  | { readonly kind: 'copy'; readonly digest: Digest | undefined }

export interface PatchObject {
  readonly kind: 'patch-object'
  readonly phase: number
  readonly object: ObjectReference
  /** The version of the content to change, as in the snapshot. kcert writes nothing if the object has another version. */
  readonly version: string
  readonly change: ObjectChange
}

export interface RestartComponent {
  readonly kind: 'restart'
  readonly phase: number
  readonly process: ProcessId
  /**
   * Start time of the process to replace, in milliseconds; absent when none runs. If another process already runs, nothing
   * restarts and kcert only waits until it is healthy. A restart can therefore be repeated safely.
   */
  readonly replaces?: number
  /**
   * The kubelet restarts a static pod because its definition changed; the service manager restarts everything else. `signal`: kcert
   * ends the process of a static pod, and the kubelet starts it again. The definition stays as it is.
   */
  readonly how: 'definition' | 'service' | 'signal'
  /** For `signal`: after SIGTERM, SIGKILL follows after this time. Without it, kcert only waits. */
  readonly killAfterMs?: number
  /** The Lease to release if this process held it, once the process is gone: the time without a leader drops from 17 s to 2 s. */
  readonly lease?: string
}

export interface RollWorkload {
  readonly kind: 'rollout'
  readonly phase: number
  readonly workload: string
  /** Value of the annotation ca-rotation. The same value does not roll out the workload again. */
  readonly annotation: string
}

/** The condition of a wait. conditions.ts evaluates it on a snapshot, so waiting means observing. */
export type Condition =
  | { readonly kind: 'published'; readonly contains: Trust; readonly lacks: Trust; readonly bundles: boolean }
  | { readonly kind: 'volumes'; readonly contains: Trust; readonly lacks: Trust }
  | { readonly kind: 'pods-converged'; readonly workload?: string; readonly contains: Trust }
  | { readonly kind: 'pods-started'; readonly workload: string; readonly sinceMs: number }
  /** This key signed the server's leaf certificate. `bridged` says whether a bridge certificate must or must not follow. */
  | {
      readonly kind: 'serves'
      readonly server: string
      readonly signedBy: Digest
      readonly bridged?: boolean
    }
  | { readonly kind: 'cluster-info-signed'; readonly trust: Trust }
  /** The CAs that each list must contain, and those that neither list may contain. Other CAs are allowed. */
  | {
      readonly kind: 'extension-authentication'
      readonly client: Trust
      readonly requestheader: Trust
      readonly lacks: Trust
    }
  | { readonly kind: 'leader'; readonly lease: string }
  | { readonly kind: 'available'; readonly bundle: string }
  | { readonly kind: 'node-ready'; readonly node: string }
  /** No pod on the node that was Ready at that time is not Ready now. */
  | { readonly kind: 'backends-ready'; readonly node: string; readonly sinceMs: number }
  | { readonly kind: 'instant'; readonly atMs: number }
  | { readonly kind: 'healthy'; readonly process: ProcessId }
  /** The API server verifies tokens with exactly these keys. */
  | { readonly kind: 'verifies'; readonly process: ProcessId; readonly keyIds: readonly string[] }
  /** Every member of etcd has run for `forMs`, and they agree: etcd/quorum.ts. `node`: the next member to restart is on it. */
  | { readonly kind: 'etcd-quorum'; readonly forMs: number; readonly node?: string }
  /** This key signed the leaf certificates that the member serves to clients and to other members. */
  | {
      readonly kind: 'etcd-serves'
      readonly member: ProcessId
      readonly signedBy: Digest
      readonly bridged: boolean
    }

export interface WaitUntil {
  readonly kind: 'wait'
  readonly phase: number
  readonly until: Condition
  /** What the wait is for, as a sentence fragment. */
  readonly because: string
  readonly deadlineMs: number
}

export type ProbeSubject =
  /** A connection to a server that always presents a client certificate. */
  | {
      readonly kind: 'client'
      readonly at: ProcessId
      readonly ca: CaName
      readonly generation: 'old' | 'new'
      readonly expects: 'accepted' | 'refused'
    }
  /**
   * The addresses with established connections to a member of etcd. Only those of control-plane nodes and waived ones are allowed.
   */
  | {
      readonly kind: 'etcd-clients'
      readonly at: ProcessId
      readonly forMs: number
      readonly waived: readonly string[]
    }
  /** A new token of this API server: signed by this key, and accepted by every API server. */
  | { readonly kind: 'issued-token'; readonly at: ProcessId; readonly keyId: string }
  /** The controller manager signs the token of a new Secret with this key. */
  | { readonly kind: 'token-secret'; readonly keyId: string }
  /** No token that the kubelet mounted is signed by this key. */
  | { readonly kind: 'mounted-tokens'; readonly node: string; readonly lacks: string }
  /** For this time, the API server counts no stale and no legacy token. */
  | { readonly kind: 'token-use'; readonly at: ProcessId; readonly forMs: number }
  /** A connection of a client that trusts only the old CA. */
  | { readonly kind: 'old-trust'; readonly at: ProcessId; readonly expects: 'refused' }
  /** A request to the signer kubernetes.io/kube-apiserver-client. */
  | { readonly kind: 'signer'; readonly generation: 'old' | 'new' }
  /** A kubeconfig, tested at each API server. */
  | { readonly kind: 'kubeconfig'; readonly id: string }
  /** Logs of a pod on the node through each API server. This also proves that no connection with an older certificate is left. */
  | { readonly kind: 'logs'; readonly node: string }
  /** The copies on the node, restored to a scratch folder and compared. */
  | { readonly kind: 'copies'; readonly node: string }
  /**
   * The number of TLS handshakes that fail before any change, because of load balancers, scanners and clients that close the
   * connection.
   */
  | { readonly kind: 'handshake-rate'; readonly at: ProcessId; readonly forMs: number }
  /** Only waived clients reject the certificate, and no more handshakes fail than before phase 1. */
  | {
      readonly kind: 'handshake-errors'
      readonly at: ProcessId
      readonly forMs: number
      readonly before?: HandshakeRate
      /** Addresses of clients, and `at` itself for failures that its log does not show. */
      readonly waived: readonly string[]
    }

export interface Probe {
  readonly kind: 'probe'
  readonly phase: number
  readonly subject: ProbeSubject
  /** Time for which the probe may fail before the failure counts. */
  readonly deadlineMs: number
}

export interface Ask {
  readonly kind: 'confirm'
  readonly phase: number
  /** Key under which the answer is recorded. A waiver with the same ID answers it in advance. */
  readonly id: string
  readonly question: string
  /** Hooks of the inventory with this `when` do what the question asks for. Without such a hook, the operator answers. */
  readonly hook?: 'upload-jwks'
}

export type Action = WriteFile | PatchObject | RestartComponent | RollWorkload | WaitUntil | Probe | Ask

export type ActionOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>

type WithoutPhase<One> = One extends Action ? Omit<One, 'phase'> : never

/** An action without its phase number, which definePhase adds. */
export type Task<Kind extends Action['kind'] = Action['kind']> = WithoutPhase<ActionOf<Kind>>

/** Lanes that run in parallel, up to a limit. The steps of one lane run in sequence. */
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

/** Returns the actions of a step: those of all its lanes, or the step itself. */
export function actionsOf<Of extends Action | Task>(step: Step<Of>): readonly Of[] {
  return step.kind === 'together' ? step.lanes.flatMap(({ steps }) => steps) : [step]
}

const evidenceKeys: {
  readonly [Kind in ProbeSubject['kind']]: (of: Extract<ProbeSubject, { kind: Kind }>) => string
} = {
  client: ({ at, ca, generation, expects }) => `client ${generation} ${ca} ${expects} at ${at}`,
  'etcd-clients': ({ at }) => `clients of ${at}`,
  'issued-token': ({ at, keyId }) => `new tokens with key ID ${keyId} at ${at}`,
  'token-secret': ({ keyId }) => `token of a new Secret with key ID ${keyId}`,
  'mounted-tokens': ({ node, lacks }) => `no mounted token with key ID ${lacks} on ${node}`,
  'token-use': ({ at }) => `stale and legacy tokens at ${at}`,
  'old-trust': ({ at, expects }) => `old trust ${expects} at ${at}`,
  signer: ({ generation }) => `signer ${generation}`,
  kubeconfig: ({ id }) => `kubeconfig ${id}`,
  logs: ({ node }) => `logs ${node}`,
  copies: ({ node }) => `copies ${node}`,
  'handshake-rate': ({ at }) => `handshake rate ${at}`,
  'handshake-errors': ({ at }) => `handshake errors ${at}`,
}

/** Returns the key under which the result of a probe is recorded as evidence. */
export function evidenceKey(subject: ProbeSubject): string {
  return (evidenceKeys[subject.kind] as (of: ProbeSubject) => string)(subject)
}
