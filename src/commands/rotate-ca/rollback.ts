import { RotationCommand } from '../../app/rotate-ca/command.ts'
import {
  byRunbook,
  keptPhases,
  rollbackExits,
  rotationConsentFlags,
  rotationPlaceFlags,
  rotationSettingsFlags,
} from '../../app/rotate-ca/flags.ts'
import * as Flag from '../../cli/flags.ts'

const { waive, ca, 'max-unavailable': maxUnavailable, pace } = rotationSettingsFlags

export default class RotateCaRollback extends RotationCommand {
  static override summary = 'Roll back phases of a rotation, the last one first: restore files and objects.'

  static override description =
    `Before a phase changes a file, kcert copies it on its node and adds it to an index. The copies are enough for a rollback, even
without the journal. Without --to, kcert rolls back only the last phase. --to 4 restores the state after phase 4. --to 0 rolls back the
whole rotation and deletes the new CA. Restarted pods are not restarted again: they trust both CAs.

kcert does not roll back phase 5 while certificates of the new CA are in use, because nothing would trust them. Phase 12 cannot be rolled
back: finish it, then rotate to any CA with --ca-cert and --ca-key.

With --ca etcd, members trust only the old CA after the rollback of phase 2. They reject clients that present a certificate of the new CA
without the cross-signed CA certificate. Before the rollback, give such clients certificates of the old CA again.`

  static override exitCodes = RotationCommand.exitsOf({
    ...rollbackExits,
    refused: 'refused: phase 12, certificates in use, drift, or no terminal to confirm on (use --yes)',
  })

  static override examples = RotationCommand.examplesOf({
    'Roll back the last phase': 'kcert rotate-ca rollback',
    'Show what that would do': 'kcert rotate-ca rollback --dry-run',
    'Roll back the whole rotation, from a script': 'kcert rotate-ca rollback --to 0 --yes',
  })

  static override flags = {
    to: keptPhases(11),
    ...rotationConsentFlags,
    'by-runbook': byRunbook('rotate-ca runbook --undo'),
    'max-unavailable': maxUnavailable,
    pace,
    waive,
    ca,
    ...rotationPlaceFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateCaRollback)
    return this.rollBack(flags)
  }
}
