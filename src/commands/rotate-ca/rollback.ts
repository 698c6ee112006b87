import { RotationCommand } from '../../app/rotate-ca/command.ts'
import { rotationConsentFlags, rotationPlaceFlags, rotationSettingsFlags } from '../../app/rotate-ca/flags.ts'
import { booleanFlag, clusterExits, numberFlag, reportFormatFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'

const { waive, 'max-unavailable': maxUnavailable, pace } = rotationSettingsFlags

export default class RotateCaRollback extends RotationCommand {
  static override summary =
    'Take phases of a rotation back, the last one first: files and objects become what they were.'

  static override description =
    `Every file that a phase changes is copied on its node first, with an index, so that its bytes can come back whatever became of the
journal. Without --to the last phase alone is taken back; --to 4 leaves the rotation as it was after phase 4; --to 0 takes all of it
back, the new CA too. Pods that were restarted stay as they are: who knows both CAs is at home with the old one.

Phase 5 is not taken back while certificates of the new CA are in use, for nobody would accept them. Phase 12 has no way back: run it
to its end, and rotate anew to whichever CA you want, with --ca-cert and --ca-key.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'the phases are taken back, or there was nothing to take back',
    [exitCodes.usage]: 'wrong usage, or no inventory',
    [exitCodes.no]: 'declined, stopped by Ctrl-C, or something did not come to be in time',
    [exitCodes.unreachable]:
      'the cluster or a node did not answer, or another kcert is at work; run it again',
    [exitCodes.refused]:
      'refused for safety: phase 12, certificates in use, drift, or nobody there to say yes',
  }

  static override examples = RotationCommand.examplesOf({
    'The last phase': 'kcert rotate-ca rollback',
    'What that would do': 'kcert rotate-ca rollback --dry-run',
    'All of it, from a script': 'kcert rotate-ca rollback --to 0 --yes',
  })

  static override flags = {
    to: numberFlag('N', 'the last phase that stays; 0: none', { min: 0, max: 11 }),
    ...rotationConsentFlags,
    'by-runbook': booleanFlag(
      'do nothing on nodes: say which scripts of `rotate-ca runbook --undo` come next, and do the rest',
    ),
    'max-unavailable': maxUnavailable,
    pace,
    waive,
    ...rotationPlaceFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(RotateCaRollback)
    const { to, output } = flags
    if (flags['dry-run']) {
      const { renderPlan } = await import('../../output/rotation/plan.ts')
      const plan = await this.withSession(flags, 'reads', (session) => session.dryRollback(to))
      await this.show(output, plan, (shown, view) => renderPlan(shown, view, true))
      return exitCodes.done
    }
    const { renderRun } = await import('../../output/rotation/run.ts')
    const { report, exit } = await this.withSession(flags, 'acts', (session) => session.rollback(to))
    await this.show(output, report, renderRun)
    return exit
  }
}
