import { runbookExits, runbookFlags } from '../../app/rotate-ca/flags.ts'
import { KeyRotationCommand } from '../../app/rotate-sa-key/command.ts'
import { keyPlaceFlags, keySettingsFlags } from '../../app/rotate-sa-key/flags.ts'
import * as Flag from '../../cli/flags.ts'
import { keyRotation } from '../../rotation/service-account-key/phase-table.ts'

export default class RotateSaKeyRunbook extends KeyRotationCommand {
  static override summary = 'Write the node changes of a phase as shell scripts, to run them by hand.'

  static override description =
    `kcert writes one short POSIX shell script for each node, the files that it needs, and the order in README.txt. The scripts make the same
changes as kcert, with the same checks as those of kcert rotate-ca runbook. You can stop a script and run it again: it skips completed work.

kcert reads the nodes and does not change them. Run kcert with --by-runbook for the other steps of a phase: changes on the API server, waits
and checks. A phase alternates between both:

  kcert rotate-sa-key --phase 2 --by-runbook      exits with code 3 when scripts come next
  kcert rotate-sa-key runbook DIR --phase 2       writes the scripts; run them on their nodes
  kcert rotate-sa-key --phase 2 --by-runbook      continues, until the phase is complete

Run the scripts of phases 2, 4 and 7 one after the other: each one restarts an API server or a controller manager. To restart a static pod,
a script ends its process, as kcert does. It stops if several processes of the same program run on the node. Then restart the container of
the static pod yourself, and run the script again.

--undo writes scripts that roll back a phase, the last one first. Use them with rotate-sa-key rollback --by-runbook.

kcert creates DIR for its owner only. After phase 1, it contains the new key (mode 0600) until you copy it to the nodes. A script deletes the
key beside it once it is in place.`

  static override exitCodes = KeyRotationCommand.exitsOf(runbookExits)

  static override examples = KeyRotationCommand.examplesOf({
    'Write the scripts of phase 1': 'kcert rotate-sa-key runbook phase-1 --phase 1',
    'Write the scripts of phase 2 and read the order':
      '<%= config.bin %> rotate-sa-key runbook phase-2 --phase 2 && less phase-2/README.txt',
    'Write the scripts that roll back phase 4': 'kcert rotate-sa-key runbook phase-4-back --phase 4 --undo',
  })

  static override args = { DIR: Flag.operand('folder to create, or an empty folder') }

  static override flags = {
    ...runbookFlags(keyRotation.rows.length),
    ...keyPlaceFlags,
    ...keySettingsFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags, args } = await this.parse(RotateSaKeyRunbook)
    return this.writeRunbook(flags, args.DIR)
  }
}
