import { RotationCommand } from '../../app/rotate-ca/command.ts'
import { rotationPlaceFlags, rotationSettingsFlags } from '../../app/rotate-ca/flags.ts'
import * as Flag from '../../cli/flags.ts'
import { exitCodes } from '../../errors/codes.ts'

export default class RotateCaPlan extends RotationCommand {
  static override summary = 'Plan a whole rotation: what is affected, what changes and what blocks it.'

  static override description =
    `kcert reads the cluster and its nodes and writes nothing. A trust holder is a process, kubeconfig or object with CA certificates. A
credential holder is one with a client or serving certificate. The plan shows all of them with their configured certificates and the
certificates in use.

For each phase, the plan shows the changed files line by line (without secrets), the restarts and the workloads to roll out. It lists
webhooks, APIServices and CRD conversions that trust the old CA, kubeconfigs, join tokens, and certificates of other applications that
the old CA signed. It shows what blocks the rotation, what to do about it, and an estimate of the time.

kcert plans each phase on the expected result of the previous phase, and checks it on a model for connections that would break. It plans
a phase again before it runs it. To see exactly what one phase would do now, run kcert rotate-ca --phase N --dry-run.`

  static override exitCodes = RotationCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'nothing blocks the rotation',
    usage: 'wrong usage, or no inventory',
    no: 'something blocks the rotation; the plan says what to do',
    unreachable: 'the cluster did not answer',
    refused: 'other users can change the inventory or the journal',
  })

  static override examples = RotationCommand.examplesOf({
    'Plan a rotation': 'kcert rotate-ca plan',
    'Save the plan for a review': 'kcert rotate-ca plan -o json > plan.json',
    'Plan a rotation after a key leaked': 'kcert rotate-ca plan --reason compromise',
  })

  static override flags = {
    ...rotationPlaceFlags,
    ...rotationSettingsFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateCaPlan)
    const { renderPlan } = await import('../../output/rotation/plan.ts')
    const plan = await this.withSession(flags, 'read', (session) => session.plan())
    await this.show(flags.output, plan, renderPlan)
    return plan.blockers.length === 0 ? exitCodes.done : exitCodes.no
  }
}
