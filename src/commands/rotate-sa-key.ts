import { byRunbook, oldKeyFlags, rotationConsentFlags } from '../app/rotate-ca/flags.ts'
import { KeyRotationCommand } from '../app/rotate-sa-key/command.ts'
import { keyPlaceFlags, keySettingsFlags } from '../app/rotate-sa-key/flags.ts'
import * as Flag from '../cli/flags.ts'
import type { ExitCode } from '../errors/codes.ts'
import { keyRotation } from '../rotation/service-account-key/phase-table.ts'

// soak has a default, so oclif would report a conflict every time.
const phaseFlags = [
  ...['phase', 'through', 'all', 'by-runbook', 'pause-between'],
  ...Object.keys(keySettingsFlags).filter((name) => name !== 'soak'),
]

export default class RotateSaKey extends KeyRotationCommand {
  static override summary = 'Rotate the service account key in eight phases, without rejecting a valid token.'

  static override description =
    `Without --phase, show the state of the rotation and the next command, and write nothing. To continue after Ctrl-C, a crash or a lost
node, run the phase again: kcert skips completed work.

API servers and controller managers read the key only when they start. So kcert restarts every API server three times: to verify tokens of
both keys (phase 2), to sign with the new key (phase 4), and to drop the old key (phase 7). For these restarts, it sets
--shutdown-delay-duration=15s where there is none, and removes it in phase 7. kcert changes the files in an order that is safe even if an API
server restarts at any moment.

Phase 3 waits for other programs that verify tokens. They may keep a copy of /openid/v1/jwks for an hour. A hook of the inventory with
"when: upload-jwks" uploads it, and again without the old key in phase 7.

Phase 5 restarts the kubelets whose pods have tokens of the old key, in batches, which renews these tokens. kcert verifies this by the key ID
of each mounted token. For a legacy token, which is in a Secret and does not expire, kcert creates a second Secret and names the owner. kcert
deletes no token.

Phase 6 proves that no client uses the old key. By default, kcert waits 3,607 s. After this time, API servers count a token that a client
still has in memory as stale. Then kcert watches the counters of stale and legacy tokens for --soak. --proof audit asks for the result of
kcert audit. --proof pods compares the start time of each pod.

With --reason compromise, phase 4 drops the old key at once. The plan says which clients the API servers then reject, and for how long.

You can roll back phases 1 to 7 with kcert rotate-sa-key rollback. A lock on this machine and a Lease in the cluster prevent a second
rotation at the same time. The journal contains key IDs and paths, but no keys and no tokens.

After phase 8, the old key stays on control-plane nodes until you run --archive-old-key or --destroy-old-key. It is in kcert's copies,
readable only by root. kcert overwrites a file in place and then deletes it. SSDs and copy-on-write disks may still keep the bytes. Delete
backups of nodes, snapshots of disks and etcd, and folders of rotate-sa-key runbook yourself.`

  static override exitCodes = KeyRotationCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the phases are complete, or the state was shown',
    usage: 'wrong usage, or no inventory',
    no: 'a phase is incomplete, declined or stopped by Ctrl-C, or an old key was found after its removal',
    unreachable: 'the cluster or a node did not answer, or another kcert is running; run the command again',
    refused:
      'refused: out of order, drift, a token would be rejected, or no terminal to confirm on (use --yes)',
  })

  static override examples = KeyRotationCommand.examplesOf({
    'Show the state and the next command': 'kcert rotate-sa-key',
    'Show what phase 2 would do': 'kcert rotate-sa-key --phase 2 --dry-run',
    'Run one phase, after confirmation': 'kcert rotate-sa-key --phase 2',
    'Run all phases that can be rolled back, from a script': 'kcert rotate-sa-key --through 7 --yes',
    'Drop a leaked key at once': 'kcert rotate-sa-key --all --reason compromise',
    'List the nodes that still have the old key after phase 8':
      'kcert rotate-sa-key --destroy-old-key --dry-run',
    'Move the old key from the nodes to a folder of this machine after phase 8':
      'kcert rotate-sa-key --archive-old-key /media/vault/old-sa-key',
  })

  static override flags = {
    phase: Flag.value('N|N-M', 'phase or range of phases to run, for example 3 or 2-6', {
      exclusive: ['through', 'all'],
    }),
    through: Flag.number('N', 'run all phases up to this one', {
      min: 1,
      max: keyRotation.rows.length,
      exclusive: ['phase', 'all'],
    }),
    all: Flag.boolean('run all eight phases', { exclusive: ['phase', 'through'] }),
    ...oldKeyFlags('the old key', phaseFlags),
    ...rotationConsentFlags,
    'by-runbook': byRunbook('rotate-sa-key runbook'),
    ...keyPlaceFlags,
    ...keySettingsFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(RotateSaKey)
    if (flags['archive-old-key'] !== undefined || flags['destroy-old-key']) return this.retireOldKeys(flags)
    const { phasesOf } = await import('../app/rotate-ca/settings.ts')
    return this.runAsked(flags, phasesOf(flags, keyRotation))
  }
}
