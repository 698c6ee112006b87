// Kubernetes' "Manual Rotation of CA Certificates", item by item: https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/
//
// One rule applies to all phases: trust the new CA before using its certificates, stop using the old CA before distrusting it, and
// clients change before servers.

/** What running a phase can cost: nothing, files and objects, processes, or the way back. Decides how it is confirmed. */
type Risk = 'reads' | 'writes' | 'restarts' | 'no-return'

/** What a phase is, without what it does (`Phase`). Other modules ask for its traits, never for its number. */
export interface PhaseRow {
  readonly id: string
  readonly number: number
  readonly title: string
  /** The item of the page that it serves. */
  readonly source: string
  /** Numbers of the phases that must hold before. */
  readonly after: readonly number[]
  readonly risk: Risk
  /** Before it there is no new CA, and taking it back ends the rotation. */
  readonly begins?: true
  /** Controller-managers sign with the new CA from here on. */
  readonly changesSigner?: true
  /** Changes only the order of CAs, and so no trust. */
  readonly reorders?: true
  /** Holds once others have replaced the certificates that kcert does not issue. */
  readonly waitsForOwners?: true
  /** Verifiers stop trusting the old CA: from its first act on no other phase is run, and nothing is taken back. */
  readonly dropsOld?: true
}

/** In their order. */
const rows = {
  // kubeadm: for the preflight, whether an upgrade is under way.
  distribute: {
    title: 'copy the new CA to every control-plane node and back up every file that will change',
    source: 'step 1',
    after: [],
    risk: 'writes',
    begins: true,
  },
  'publish-both': {
    title: 'make controller-managers publish both CAs and keep signing with the old CA',
    source: 'step 2',
    after: [1],
    risk: 'restarts',
  },
  'await-published': {
    title: 'wait until both CAs are published to every namespace',
    source: 'step 3',
    after: [2],
    risk: 'reads',
  },
  'restart-pods': {
    title: 'restart pods that trust only the old CA',
    source: 'step 4',
    after: [3],
    risk: 'restarts',
  },
  // No signer may read ca.crt any more: it is going to hold two certificates.
  'trust-both': {
    title: 'make API servers, kubelets and joining nodes trust both CAs',
    source: 'step 5, and clientCAFile of step 9.2',
    after: [2],
    risk: 'writes',
  },
  'scheduler-trusts-both': {
    title: 'make schedulers and controller-managers accept clients of both CAs',
    source: 'step 6',
    after: [2],
    risk: 'writes',
  },
  kubeconfigs: {
    title: 'put both CAs and new client certificates into kubeconfigs, and sign with the new CA',
    source: 'step 7, and the signing files of step 9',
    after: [5, 6],
    risk: 'restarts',
    changesSigner: true,
  },
  'cloud-controller-manager': {
    title: 'make cloud-controller-managers publish both CAs',
    source: 'step 8',
    after: [1],
    risk: 'restarts',
  },
  'present-new': {
    title: 'reissue every certificate from the new CA',
    source: 'step 9',
    after: [4, 5, 6, 7, 8],
    risk: 'restarts',
  },
  'cluster-info': {
    title: 'put the new CA first in cluster-info for joining nodes',
    source: 'step 10',
    after: [9],
    risk: 'writes',
    reorders: true,
  },
  verify: {
    title: 'verify that nothing presents the old CA and no client gets TLS errors',
    source: 'step 11',
    after: [9, 10],
    risk: 'reads',
    waitsForOwners: true,
  },
  'drop-old': {
    title: "remove the old CA and restore kubeadm's defaults",
    source: 'step 12',
    after: [11],
    risk: 'no-return',
    dropsOld: true,
  },
} as const satisfies Readonly<Record<string, Omit<PhaseRow, 'id' | 'number'>>>

export type PhaseId = keyof typeof rows
export const phaseTable: readonly PhaseRow[] = Object.entries(rows).map(([id, row], index) => ({
  id,
  number: index + 1,
  ...row,
}))

/** Returns the row of that id. */
export function phaseRow(id: PhaseId): PhaseRow {
  return { id, number: Object.keys(rows).indexOf(id) + 1, ...rows[id] }
}

/** Returns the row of that number; undefined for 0, a recovery, which is no phase. */
export function rowNumbered(number: number): PhaseRow | undefined {
  return phaseTable[number - 1]
}
