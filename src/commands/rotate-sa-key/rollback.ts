import { byRunbook, keptPhases, rollbackExits, rotationConsentFlags } from '../../app/rotate-ca/flags.ts'
import { KeyRotationCommand } from '../../app/rotate-sa-key/command.ts'
import { keyPlaceFlags, keySettingsFlags } from '../../app/rotate-sa-key/flags.ts'
import * as Flag from '../../cli/flags.ts'

const { waive, proof, soak, 'max-unavailable': maxUnavailable } = keySettingsFlags

export default class RotateSaKeyRollback extends KeyRotationCommand {
  static override summary = 'Roll back phases of a rotation of the service account key, the last one first.'

  static override description =
    `Before a phase changes a file, kcert copies it on its node and adds it to an index. The copies are enough for a rollback, even
without the journal. Without --to, kcert rolls back only the last phase. --to 2 restores the state after phase 2. --to 0 rolls back the
whole rotation and deletes the new key.

The rollback of phase 4 makes API servers sign with the old key again, and renews mounted tokens of the new key. Until phase 2 is rolled back,
they verify both keys. kcert does not roll back phase 2 while a token of the new key is mounted or stored, because no API server would
accept it. Clients may also have one in memory. So the rollback of phase 2 first needs the same proof as phase 6, for the new key:
--proof counters waits for an hour, then watches for --soak. The counters also count stale and legacy tokens of the old key: if clients use
them, choose --proof audit. The IDs of confirmations begin with "rollback:". If phase 4 has not changed a key, no proof is needed.

Phase 8 cannot be rolled back. After a leak of the key, phases 4 and 7 cannot be rolled back either.`

  static override exitCodes = KeyRotationCommand.exitsOf({
    ...rollbackExits,
    refused: 'refused: phase 8, tokens in use, drift, or no terminal to confirm on (use --yes)',
  })

  static override examples = KeyRotationCommand.examplesOf({
    'Roll back the last phase': 'kcert rotate-sa-key rollback',
    'Show what that would do': 'kcert rotate-sa-key rollback --dry-run',
    'Roll back the whole rotation, from a script': 'kcert rotate-sa-key rollback --to 0 --yes',
  })

  static override flags = {
    to: keptPhases(7),
    ...rotationConsentFlags,
    'by-runbook': byRunbook('rotate-sa-key runbook --undo'),
    'max-unavailable': maxUnavailable,
    proof,
    soak,
    waive,
    ...keyPlaceFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateSaKeyRollback)
    return this.rollBack(flags)
  }
}
