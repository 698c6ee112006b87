import { renderReport, reportFormatFlag } from '../../cli/report-format.ts'
import { RotationCommand } from '../../cli/rotation-command.ts'
import { rotationPlaceFlags, rotationWishFlags } from '../../cli/rotation-flags.ts'
import { stdoutView } from '../../cli/view.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'

const { waive, ca } = rotationWishFlags

export default class RotateCaStatus extends RotationCommand {
  static override summary =
    'Show a rotation phase by phase and node by node, with what is open and what was proven when.'

  static override description =
    `Read from the cluster and its nodes; the journal adds when a phase ran last and what its probes said, with their age. Nothing is
written and nothing is probed anew: kcert rotate-ca verify does that.`

  static override exitCodes = {
    [exitCodes.done]: 'it was shown',
    [exitCodes.usage]: 'wrong usage, or no inventory',
    [exitCodes.unreachable]: 'the cluster did not answer',
  }

  static override examples = [
    { description: 'Everything', command: '<%= config.bin %> rotate-ca status' },
    {
      description: 'The phases with something open, for a script',
      command:
        '<%= config.bin %> rotate-ca status -o json | jq \'.phases[] | select(.state != "holds") | .number\'',
    },
    {
      description: 'Of a rotation whose files are elsewhere',
      command:
        '<%= config.bin %> rotate-ca status --inventory lab/kcert.yaml --journal lab/kcert-rotation.jsonl',
    },
  ]

  static override flags = {
    ca,
    waive,
    ...rotationPlaceFlags,
    output: reportFormatFlag({ description: 'how to show it' }),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(RotateCaStatus)
    const { renderStatus } = await import('../../output/rotation/status.ts')
    const status = await this.withSession(flags, 'reads', (session) => session.status())
    const view = await stdoutView(this.context)
    await this.answer(renderReport(flags.output, status, () => renderStatus(status, view)))
    return exitCodes.done
  }
}
