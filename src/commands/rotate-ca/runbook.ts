import { RotationCommand } from '../../app/rotate-ca/command.ts'
import {
  rotationPlaceFlags,
  rotationSettingsFlags,
  runbookExits,
  runbookFlags,
} from '../../app/rotate-ca/flags.ts'
import * as Flag from '../../cli/flags.ts'
import { phaseTable } from '../../rotation/phase-table.ts'

export default class RotateCaRunbook extends RotationCommand {
  static override summary = 'Write the node changes of a phase as shell scripts, to run them by hand.'

  static override description =
    `kcert writes one short POSIX shell script for each node, the files that it needs, and the order in README.txt. Before a script
writes anything, it compares the digest of every file with the plan. It copies each file that it replaces, writes with an atomic rename,
and restarts components. You can stop a script and run it again: it skips completed work. The scripts make the same changes as kcert.

kcert reads the nodes and does not change them. On the API server it does one thing: in phase 9 it requests the kubelets' certificates.
Run kcert with --by-runbook for the other steps of a phase: changes on the API server, waits and checks. A phase alternates between both:

  kcert rotate-ca --phase 2 --by-runbook      exits with code 3 when scripts come next
  kcert rotate-ca runbook DIR --phase 2       writes the scripts; run them on their nodes
  kcert rotate-ca --phase 2 --by-runbook      continues, until the phase is complete

--undo writes scripts that roll back a phase, the last one first. They restore each file from its copy on the node. Use them with
rotate-ca rollback --by-runbook. kcert refuses them where it would refuse the rollback.

kcert creates DIR for its owner only. It contains new CA keys and kubeconfigs with keys (mode 0600) until you copy them to their nodes.
Keys are never on a command line. A script deletes the keys beside it once they are in place.`

  static override exitCodes = RotationCommand.exitsOf(runbookExits)

  static override examples = RotationCommand.examplesOf({
    'Write the scripts of phase 1': 'kcert rotate-ca runbook phase-1 --phase 1',
    'Write the scripts of phase 2 and read the order':
      '<%= config.bin %> rotate-ca runbook phase-2 --phase 2 && less phase-2/README.txt',
    'Write the scripts that roll back phase 5': 'kcert rotate-ca runbook phase-5-back --phase 5 --undo',
    'List the nodes and their scripts': `kcert rotate-ca runbook phase-5 --phase 5 -o json | jq -r '.scripts[] | "\\(.order) \\(.node) \\(.path)"'`,
  })

  static override args = { DIR: Flag.operand('folder to create, or an empty folder') }

  static override flags = {
    ...runbookFlags(phaseTable.length),
    ...rotationPlaceFlags,
    ...rotationSettingsFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags, args } = await this.parse(RotateCaRunbook)
    return this.writeRunbook(flags, args.DIR)
  }
}
