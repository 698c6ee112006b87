import { RotationCommand } from '../app/rotate-ca/command.ts'
import {
  byRunbook,
  oldKeyFlags,
  rotationConsentFlags,
  rotationPlaceFlags,
  rotationSettingsFlags,
} from '../app/rotate-ca/flags.ts'
import * as Flag from '../cli/flags.ts'
import { phaseTable } from '../rotation/phase-table.ts'

// soak and trust-reloading-clients have defaults, so oclif would report a conflict every time. --ca etcd selects another journal.
const phaseFlags = [
  ...['phase', 'through', 'all', 'by-runbook', 'pause-between'],
  ...Object.keys(rotationSettingsFlags).filter(
    (name) => name !== 'soak' && name !== 'trust-reloading-clients' && name !== 'ca',
  ),
]

export default class RotateCa extends RotationCommand {
  static override summary = "Rotate a cluster's CAs in the twelve steps of the Kubernetes documentation."

  static override description =
    `Without --phase, show the state of the rotation and the next command, and write nothing. To continue after Ctrl-C, a crash or a lost
node, run the phase again: kcert skips completed work.

Phase 3 is step 3 of "Manual Rotation of CA Certificates" in the Kubernetes documentation. kcert plans a phase, checks the plan on a model
for connections that would break, asks for confirmation and runs it. The phase is complete when kcert observes its result. kcert refuses
a phase while an earlier phase that it needs is incomplete. You can roll back phases 1 to 11 with kcert rotate-ca rollback. Phase 12,
which removes the old CA, cannot be rolled back.

--ca etcd rotates the CA of etcd on control-plane nodes in six phases. kcert creates the new CA, cross-signed by the old CA. It reissues
certificates, and adds the cross-signed CA certificate to their files. It restarts one member at a time, the leader last. Before each restart,
all members must be healthy and in sync. Then it restarts each API server, removes the cross-signed CA certificate, and deletes its own files.
Use --ca etcd with every command of this rotation. To restart a static pod of etcd, kcert ends the process and does not change the manifest.
It restarts a systemd unit of etcd with systemctl, or with the command in restart of kcert.yaml.

In phase 1, kcert watches the connections to etcd and stops if it finds clients outside of the control-plane nodes. Such clients need
certificates with the cross-signed CA certificate before phase 3. So do clients on control-plane nodes with certificates of their own. The
watch does not show them. If you do not know all clients, or if a client cannot present a chain, use --etcd-clients unknown. In phase 2,
each member then restarts once more, with both CAs in its CA file, before kcert reissues certificates. From then on, members accept
certificates of both CAs. Give every client a certificate of the new CA, and both CAs to verify etcd. Both CAs are in kcert/ca-bundle.crt
beside ca.crt of etcd on each control-plane node, and the new CA with its key is in kcert/new. Phase 2 stops and names the clients outside
of the control-plane nodes. Accept each one with --waive ADDRESS when it has its new certificate, and run phase 2 again. At the end, confirm
that every client has a new certificate. In a script, use --waive etcd-clients with phase 2 and with phase 3. Phase 3 then makes members
trust only the new CA.

After a rollback of phase 2, members trust only the old CA. They reject a certificate of the new CA, unless the client also presents the
cross-signed CA certificate (kcert/ca-bridge.crt beside ca.crt of etcd). Before the rollback, give the other clients certificates of the old
CA again.

--algorithm gives the new CAs, and all certificates that kcert reissues, keys of another type, such as ECDSA-P256. In phase 7, it also
changes encryptionAlgorithm in kubeadm-config. kcert rotate-ca plan shows what changes and which clients to check. Kubelets request their
own certificates with ECDSA-P256 keys, and the service account key does not change. With --ca etcd, only the CA gets the type.

The choices of phase 1 (--ca, --no-bridge, --reason, --new-keys, --algorithm, --etcd-clients) are stored in the journal and apply to later
commands. kcert refuses another --algorithm or --etcd-clients until you have rolled back all phases. Without its journal, kcert reads from
the nodes whether the rotation began with --etcd-clients unknown. The journal contains digests, paths and public keys of CAs, but no private
keys. A lock on this machine and a Lease in the cluster prevent a second rotation at the same time.

After phase 12, the old CA's key stays on control-plane nodes until you run --archive-old-key or --destroy-old-key. It is in kcert's
copies, readable only by root. kcert lists encrypted keys and skips them. It overwrites a file in place and then deletes it. SSDs and
copy-on-write disks may still keep the bytes. Delete backups of nodes, snapshots of disks and etcd, and folders of rotate-ca runbook
yourself.`

  static override exitCodes = RotationCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the phases are complete, or the state was shown',
    usage: 'wrong usage, or no inventory',
    no: 'a phase is incomplete, declined or stopped by Ctrl-C, or an encrypted key may be the old one',
    unreachable: 'the cluster or a node did not answer, or another kcert is running; run the command again',
    refused:
      'refused: out of order, drift, a connection would break, or no terminal to confirm on (use --yes)',
  })

  static override examples = RotationCommand.examplesOf({
    'Show the state and the next command': 'kcert rotate-ca',
    'Show what phase 2 would do': 'kcert rotate-ca --phase 2 --dry-run',
    'Run one phase, after confirmation': 'kcert rotate-ca --phase 2',
    'Run all phases that can be rolled back, from a script': 'kcert rotate-ca --through 11 --yes',
    'Run phases 5 to 9 and ask before each node':
      'kcert rotate-ca --phase 5-9 --max-unavailable 1 --pause-between nodes',
    'Show the state of a rotation of the etcd CA': 'kcert rotate-ca --ca etcd',
    'Rotate the CA of etcd, whose clients you do not all know':
      'kcert rotate-ca --ca etcd --etcd-clients unknown --phase 1',
    'Show what a rotation from RSA to ECDSA changes and which clients to check':
      'kcert rotate-ca plan --algorithm ECDSA-P256',
    'Rotate only the cluster CA, to your own CA':
      'kcert rotate-ca --phase 1 --ca cluster --ca-cert new-ca.crt --ca-key new-ca.key',
    "List the nodes that still have the old CA's key after phase 12":
      'kcert rotate-ca --destroy-old-key --dry-run',
    'Move the key from the nodes to a folder of this machine after phase 12':
      'kcert rotate-ca --archive-old-key /media/vault/old-ca',
  })

  static override flags = {
    phase: Flag.value('N|N-M', 'phase or range of phases to run, for example 3 or 2-6', {
      exclusive: ['through', 'all'],
    }),
    through: Flag.number('N', 'run all phases up to this one', {
      min: 1,
      max: phaseTable.length,
      exclusive: ['phase', 'all'],
    }),
    all: Flag.boolean('run all twelve phases', { exclusive: ['phase', 'through'] }),
    ...oldKeyFlags("the old CA's key and certificate", phaseFlags),
    ...rotationConsentFlags,
    'by-runbook': byRunbook('rotate-ca runbook'),
    ...rotationPlaceFlags,
    ...rotationSettingsFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateCa)
    const { phasesOf } = await import('../app/rotate-ca/settings.ts')
    if (flags['archive-old-key'] !== undefined || flags['destroy-old-key']) return this.retireOldKeys(flags)
    return this.runAsked(flags, phasesOf(flags))
  }
}
