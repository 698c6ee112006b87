import { RotationCommand } from '../../app/rotate-ca/command.ts'
import { rotationPlaceFlags, rotationSettingsFlags } from '../../app/rotate-ca/flags.ts'
import * as Flag from '../../cli/flags.ts'

const { waive, ca } = rotationSettingsFlags

export default class RotateCaStatus extends RotationCommand {
  static override summary = 'Show the state of a rotation: phases, pending items, nodes and past checks.'

  static override description =
    `kcert reads the state from the cluster and its nodes. The journal adds the last run of each phase and the results of its checks, with
their age. This command writes nothing and does not repeat checks. To repeat them, run kcert rotate-ca verify.`

  static override exitCodes = RotationCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the state was shown',
    usage: 'wrong usage, or no inventory',
    unreachable: 'the cluster did not answer',
    refused: 'other users can change the inventory or the journal',
  })

  static override examples = RotationCommand.examplesOf({
    'Show the state': 'kcert rotate-ca status',
    'List the incomplete phases, for a script':
      'kcert rotate-ca status -o json | jq \'.phases[] | select(.state != "complete") | .number\'',
    'Write an HTML page for the change ticket': 'kcert rotate-ca status -o html > rotation.html',
    'Use an inventory and a journal in another folder':
      'kcert rotate-ca status --inventory lab/kcert.yaml --journal lab/kcert-rotation.jsonl',
  })

  static override flags = {
    ca,
    waive,
    ...rotationPlaceFlags,
    ...Flag.listFlags(['html'], 'html: one file without scripts or network access'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateCaStatus)
    const { renderStatus } = await import('../../output/rotation/status.ts')
    const status = await this.withSession(flags, 'read', (session) => session.status())
    if (flags.output === 'html') {
      const { renderStatusHtml } = await import('../../output/rotation/html.ts')
      return this.answer(renderStatusHtml(status))
    }
    const { output } = flags
    return this.show(output, status, renderStatus)
  }
}
