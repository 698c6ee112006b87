import { type CommandLine, commandLine, fixed } from '../errors/command-line.ts'

// Kubernetes' "Manual Rotation of CA Certificates", item by item:
// https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/
// Phase N implements step N. Phase 5 also implements clientCAFile of step 9.2, and phase 7 the signing files of step 9.
//
// One rule applies to all phases: trust the new CA before using its certificates, stop using the old CA before distrusting it,
// and change clients before servers.

/**
 * What running a phase can affect: nothing, files and objects, processes, or the ability to undo. Determines how it is confirmed.
 */
type Risk = 'reads' | 'writes' | 'restarts' | 'irreversible'

/** The properties of a phase without its implementation (`Phase`). Other modules use its traits, never its number. */
export interface PhaseRow {
  readonly id: string
  readonly number: number
  readonly title: string
  /** Numbers of the phases that must be complete first. */
  readonly after: readonly number[]
  readonly risk: Risk
  /** There is no new CA before this phase, and undoing it ends the rotation. */
  readonly begins?: true
  /** Controller-managers sign with the new CA from this phase on. */
  readonly changesSigner?: true
  /** Changes only the order of CAs, so no trust changes. */
  readonly reorders?: true
  /** Complete once other owners have replaced the certificates that kcert does not issue. */
  readonly waitsForOwners?: true
  /** Servers stop presenting the bridge certificate, so clients that trust only the old CA fail. */
  readonly endsBridge?: true
  /** Verifiers stop trusting the old CA. After its first action no other phase runs, and nothing can be undone. */
  readonly dropsOld?: true
}

/** The phases of a playbook without their implementations, and the names of its files. */
export interface PhaseTable {
  /** The command that runs it, without flags; a literal, so that messages can contain it. */
  readonly command: 'kcert rotate-ca' | 'kcert rotate-sa-key'
  /** What it replaces, for messages. */
  readonly replaces: 'CA' | 'key'
  readonly rows: readonly PhaseRow[]
  /** Name of the journal beside the inventory, without extension, and of the ConfigMap that mirrors it. */
  readonly journal: string
  /** The index of its copies on each node: a CopySnapshot in JSON on each line. */
  readonly copiesIndex: string
  /** What the observer reads on nodes besides: the members of etcd and their files, or the files of service account keys. */
  readonly reads?: 'etcd' | 'service-account-keys'
}

type RowDraft = Omit<PhaseRow, 'id' | 'number'>

/** Returns these rows, numbered in order, and a function that returns the row with an ID. */
export function phaseRows<Id extends string>(drafts: Readonly<Record<Id, RowDraft>>) {
  const ids = Object.keys(drafts)
  const rows = Object.entries<RowDraft>(drafts).map(([id, draft], index) => ({
    id,
    number: index + 1,
    ...draft,
  }))
  return { rows, rowOf: (id: Id): PhaseRow => ({ id, number: ids.indexOf(id) + 1, ...drafts[id] }) }
}

/** The phases in order. */
export const { rows: phaseTable, rowOf: phaseRow } = phaseRows({
  // kubeadm: the preflight checks whether an upgrade is in progress.
  distribute: {
    title: 'copy the new CA to every control-plane node and back up every file that will change',
    after: [],
    risk: 'writes',
    begins: true,
  },
  'publish-both': {
    title: 'make controller-managers publish both CAs and keep signing with the old CA',
    after: [1],
    risk: 'restarts',
  },
  'await-published': {
    title: 'wait until both CAs are published to every namespace',
    after: [2],
    risk: 'reads',
  },
  'restart-pods': {
    title: 'restart pods that trust only the old CA',
    after: [3],
    risk: 'restarts',
  },
  // No signer may read ca.crt any more, because it will contain two certificates.
  'trust-both': {
    title: 'make API servers, kubelets and joining nodes trust both CAs',
    after: [2],
    risk: 'writes',
  },
  'scheduler-trusts-both': {
    title: 'make schedulers and controller-managers accept clients of both CAs',
    after: [2],
    risk: 'writes',
  },
  kubeconfigs: {
    title: 'put both CAs and new client certificates into kubeconfigs, and sign with the new CA',
    after: [5, 6],
    risk: 'restarts',
    changesSigner: true,
  },
  'cloud-controller-manager': {
    title: 'make cloud-controller-managers publish both CAs',
    after: [1],
    risk: 'restarts',
  },
  'present-new': {
    title: 'reissue every certificate from the new CA',
    after: [4, 5, 6, 7, 8],
    risk: 'restarts',
  },
  'cluster-info': {
    title: 'put the new CA first in cluster-info for joining nodes',
    after: [9],
    risk: 'writes',
    reorders: true,
  },
  verify: {
    title: 'verify that nothing presents the old CA and no client gets TLS errors',
    after: [9, 10],
    risk: 'reads',
    waitsForOwners: true,
  },
  'drop-old': {
    title: "remove the old CA and restore kubeadm's defaults",
    after: [11],
    risk: 'irreversible',
    dropsOld: true,
  },
})

export type PhaseId = Parameters<typeof phaseRow>[0]

/** The table of the page. */
export const manualRotation: PhaseTable = {
  command: 'kcert rotate-ca',
  replaces: 'CA',
  rows: phaseTable,
  journal: 'kcert-rotation',
  copiesIndex: '/var/lib/kcert/copies/index.jsonl',
}

/** Returns the row with this number; undefined for 0, which is a recovery and not a phase. */
export function rowNumbered({ rows: its }: PhaseTable, number: number): PhaseRow | undefined {
  return its[number - 1]
}

/** Returns the command that runs a phase, without other flags. */
export function phaseCommand({ command }: PhaseTable, number: number): CommandLine {
  return commandLine`${fixed(command)} --phase ${number}`
}
