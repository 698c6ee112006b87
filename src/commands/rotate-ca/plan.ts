import { RotationCommand } from '../../app/rotate-ca/command.ts'
import { rotationPlaceFlags, rotationSettingsFlags } from '../../app/rotate-ca/flags.ts'
import { clusterExits, reportFormatFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'

export default class RotateCaPlan extends RotationCommand {
  static override summary =
    'Show the whole rotation before it is begun: who is concerned, what changes, what stands in the way.'

  static override description =
    `Reads the cluster and its nodes and writes nothing. Shown are all verifiers and presenters with the certificates that they hold and
show now; for each phase what is written, line by line where it is no secret, what restarts and which workloads roll; webhooks,
APIServices and conversions that verify by the old CA, kubeconfigs, join tokens, certificates of others that the old CA signed; what
blocks it, with what to do; and how long it takes by what was measured.

Each phase is foreseen on what the phases before it will leave, checked on a model for connections that it would break, and plans
anew when its turn comes. For one phase exactly as it would run: kcert rotate-ca --phase N --dry-run.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'nothing stands in the way',
    [exitCodes.usage]: 'wrong usage, or no inventory',
    [exitCodes.no]: 'something stands in the way; it is named with what to do',
    [exitCodes.unreachable]: 'the cluster did not answer',
    [exitCodes.refused]: 'other users can change the inventory or the journal',
  }

  static override examples = RotationCommand.examplesOf({
    'Before a rotation': 'kcert rotate-ca plan',
    'For a review, as a document': 'kcert rotate-ca plan -o json > plan.json',
    'What a leaked key would need': 'kcert rotate-ca plan --reason compromise',
  })

  static override flags = {
    ...rotationPlaceFlags,
    ...rotationSettingsFlags,
    output: reportFormatFlag('how to show the plan'),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(RotateCaPlan)
    const { renderPlan } = await import('../../output/rotation/plan.ts')
    const plan = await this.withSession(flags, 'reads', (session) => session.plan())
    await this.show(flags.output, plan, renderPlan)
    return plan.blockers.length === 0 ? exitCodes.done : exitCodes.no
  }
}
