import { RotationCommand } from '../../app/rotate-ca/command.ts'
import { rotationPlaceFlags, rotationSettingsFlags } from '../../app/rotate-ca/flags.ts'
import { booleanFlag, clusterExits, numberFlag, operand, reportFormatFlag } from '../../cli/flags.ts'
import { stdoutView } from '../../cli/view.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { noPaint } from '../../output/paint.ts'
import { renderRunbook } from '../../output/rotation/runbook.ts'
import { phaseTable } from '../../rotation/phase-table.ts'
import { newFolder, writeInto } from '../../system/new-folder.ts'

export default class RotateCaRunbook extends RotationCommand {
  static override summary =
    'Write what a phase does on nodes as shell scripts, for sites where people run it there by hand.'

  static override description =
    `For each node one short script for a POSIX shell, with the prepared files beside it and the order in README.txt. A script compares
the digest of every file with what was planned before it writes the first one, copies what it replaces as kcert does, writes by a
rename, and restarts what must be restarted. It may be stopped and run again, and what is done is not done twice. The acts are those
of the plan, prepared by what carries them out elsewhere: there is no second set of rules.

The nodes are read and not changed. Through the API server one thing is done: in phase 9 the certificates of kubelets are asked for.
What a phase does through the API server, its waits and its proofs stay with kcert: --by-runbook. So a phase goes to and fro:

  kcert rotate-ca --phase 2 --by-runbook      says when scripts come next (exit code 3)
  kcert rotate-ca runbook DIR --phase 2       writes them; they are run on their nodes
  kcert rotate-ca --phase 2 --by-runbook      goes on, until the phase holds

--undo writes what takes a phase back, the last one first: every file as its copy on the node says that it was. It goes to and fro with
rotate-ca rollback --by-runbook, and is refused where rollback would be.

DIR is made for its owner alone: new CA keys, and kubeconfigs with theirs, lie in it as files (0600) until they are carried to their
node, and never on a command line. A script removes them beside itself once they are in place.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'the scripts are written, or nothing is to be done on nodes now',
    [exitCodes.usage]: 'wrong usage, or no inventory',
    [exitCodes.unreachable]: 'the cluster or a node did not answer',
    [exitCodes.refused]: 'out of order, something else comes first, or DIR is there and not empty',
  }

  static override examples = RotationCommand.examplesOf({
    'What phase 1 does on nodes': 'kcert rotate-ca runbook phase-1 --phase 1',
    'On the node, in the folder that was carried there':
      '<%= config.bin %> rotate-ca runbook phase-2 --phase 2 && less phase-2/README.txt',
    'What takes phase 5 back': 'kcert rotate-ca runbook phase-5-back --phase 5 --undo',
    'Which nodes have a script, for whoever hands them out': `kcert rotate-ca runbook phase-5 --phase 5 -o json | jq -r '.scripts[] | "\\(.order) \\(.node) \\(.path)"'`,
  })

  static override args = { DIR: operand('the folder to make, or an empty one') }

  static override flags = {
    phase: numberFlag('N', 'the phase', { min: 1, max: phaseTable.length, required: true }),
    undo: booleanFlag('scripts that take the phase back'),
    ...rotationPlaceFlags,
    ...rotationSettingsFlags,
    output: reportFormatFlag('how to show what was written'),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, args } = await this.parse(RotateCaRunbook)
    const folder = args.DIR
    newFolder(folder)
    const { report, files } = await this.withSession(flags, 'reads', (session) =>
      flags.undo ? session.runbookBack(flags.phase, folder) : session.runbook(flags.phase, folder),
    )
    if (files.length > 0) {
      const view = { ...(await stdoutView(this.context)), paint: noPaint }
      writeInto(folder, [...files, { path: 'README.txt', content: renderRunbook(report, view) }])
    }
    await this.show(flags.output, report, renderRunbook)
    return exitCodes.done
  }
}
