import * as Flags from '@oclif/core/flags'
import * as Flag from '../../cli/flags.ts'
import { etcdClientChoices } from '../../rotation/target.ts'
import { kubeadmKeyTypes } from '../../x509/new-key.ts'
import { pauses } from './pauses.ts'

/** Select a rotation's cluster, nodes and journal. */
export const rotationPlaceFlags = {
  inventory: Flag.requiredInventoryFlag,
  journal: Flag.value(
    'FILE',
    'journal of this rotation (default kcert-rotation.jsonl beside the inventory; kcert-etcd-rotation.jsonl with --ca etcd); use a new file for the next rotation',
  ),
  ...Flag.clusterFlags,
}

/** Choices of a rotation. The journal keeps them for later commands without these flags. */
export const rotationSettingsFlags = Flag.inGroup('ROTATION', {
  ca: Flag.value(
    'CAS',
    'CAs to rotate: cluster, front-proxy or cluster,front-proxy (default those in the inventory, or both); or etcd, alone, with six phases and a journal of its own',
  ),
  'no-bridge': Flag.boolean(
    'do not issue the bridge certificate (the new CA, cross-signed by the old CA): clients that trust only the old CA fail from phase 9 on',
  ),
  reason: Flags.option({
    description:
      'why you rotate (default routine); compromise (the old key leaked) means no bridge certificate, new leaf keys, and immediate pod restarts in phase 12',
    options: ['routine', 'compromise'] as const,
  })(),
  'new-keys': Flag.boolean(
    'generate new keys for leaf certificates; without it the keys stay and only certificate files change',
  ),
  algorithm: Flag.value(
    'TYPE',
    `type of the new keys, chosen in phase 1 for the CAs and all certificates that kcert reissues: ${kubeadmKeyTypes.join(', ')} (default that of each replaced key)`,
  ),
  'etcd-clients': Flags.option({
    description:
      'with --ca etcd (default known); unknown: members trust both CAs, with one more restart each in phase 2, until you confirm that every client has a certificate of the new CA',
    options: etcdClientChoices,
  })(),
  'ca-cert': Flag.value(
    'FILE',
    'use this certificate as the new cluster CA instead of one created in phase 1',
    { dependsOn: ['ca-key'] },
  ),
  'ca-key': Flag.value('FILE', 'private key of --ca-cert; copied only to control-plane nodes', {
    dependsOn: ['ca-cert'],
  }),
  'front-proxy-ca-cert': Flag.value('FILE', 'use this certificate as the new front-proxy CA', {
    dependsOn: ['front-proxy-ca-key'],
  }),
  'front-proxy-ca-key': Flag.value('FILE', 'private key of --front-proxy-ca-cert', {
    dependsOn: ['front-proxy-ca-cert'],
  }),
  'max-unavailable': Flag.number(
    'N',
    'how many nodes, and how many workloads, change at the same time; the first node always changes alone (default as in the inventory, or 4)',
    { min: 1, max: 100 },
  ),
  pace: Flag.value(
    'DURATION',
    'time between the starts of two workload restarts, such as 30s (default as in the inventory, or 0s)',
  ),
  'trust-reloading-clients': Flag.boolean(
    'skip the restart of pods whose programs have client-go 0.36 or later, or that reloadingCa in the inventory lists (default); --no-trust-reloading-clients restarts them too',
    { allowNo: true, default: true },
  ),
  'accept-outage': Flag.boolean('allow a restart of the only API server, if one of its flags must change'),
  'accept-untested-version': Flag.repeated(
    'MINOR',
    'write to a cluster with components of this untested minor version, such as 1.38, or of an "unknown" one',
  ),
  waive: Flag.repeated(
    'ID',
    'accept the risk for this pod, workload, kubeconfig, server, file, client address or mix of versions; use the ID that kcert prints',
  ),
  soak: Flag.value(
    'DURATION',
    'watch the TLS handshake errors of each API server for this long, in phases 1, 11 and 12',
    { default: '20s' },
  ),
})

/** The flags that remove old keys after a rotation. `conflicts`: the flags of phases. */
export const oldKeyFlags = (what: string, conflicts: readonly string[]) => ({
  'archive-old-key': Flag.value(
    'DIR',
    `after the last phase: save ${what} in this folder (key mode 0600), read the key back, and delete it from the nodes`,
    { exclusive: [...conflicts, 'destroy-old-key'] },
  ),
  'destroy-old-key': Flag.boolean('after the last phase: overwrite and delete the old key on every node', {
    exclusive: [...conflicts, 'archive-old-key'],
  }),
})

/** The flag of a rollback that says which phases to keep. `last`: the last phase that can be rolled back. */
export const keptPhases = (last: number) =>
  Flag.number('N', 'last phase to keep; 0 keeps none (default the phase before the last)', {
    min: 0,
    max: last,
  })

/** The flags that select the scripts of a phase. `last`: the last phase. */
export const runbookFlags = (last: number) => ({
  phase: Flag.number('N', 'phase to write scripts for', { min: 1, max: last, required: true }),
  undo: Flag.boolean('write scripts that roll back the phase'),
})

/** The flag with which people change the nodes by scripts. `scripts`: the command that writes them. */
export const byRunbook = (scripts: string) =>
  Flag.boolean(`do not change nodes; print which scripts of \`${scripts}\` to run next, and do the rest`)

/** The exit codes of the commands that write scripts. */
export const runbookExits = {
  ...Flag.clusterExits,
  done: 'the scripts are written, or there is nothing to do on nodes now',
  usage: 'wrong usage, or no inventory',
  unreachable: 'the cluster or a node did not answer',
  refused: 'out of order, a step on the API server comes first, or DIR is not empty',
}

/** The exit codes of a rollback, but for what it refuses. */
export const rollbackExits = {
  ...Flag.clusterExits,
  done: 'the phases are rolled back, or there was nothing to roll back',
  usage: 'wrong usage, or no inventory',
  no: 'declined, stopped by Ctrl-C, or a step timed out',
  unreachable: 'the cluster or a node did not answer, or another kcert is running; run the command again',
}

/** How a command that changes the cluster asks for confirmation. */
export const rotationConsentFlags = {
  yes: Flag.boolean('do not ask for confirmation; required without a terminal', { char: 'y' }),
  'dry-run': Flag.boolean('show the plan and write nothing'),
  'pause-between': Flag.word(pauses, 'ask before each node or phase after the first, even with --yes'),
}
