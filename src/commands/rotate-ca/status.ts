import { RotationCommand } from '../../app/rotate-ca/command.ts'
import { rotationPlaceFlags, rotationSettingsFlags } from '../../app/rotate-ca/flags.ts'
import { clusterExits, formatFlag, reportFormats } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'

const { waive, ca } = rotationSettingsFlags

export default class RotateCaStatus extends RotationCommand {
  static override summary =
    'Show a rotation phase by phase and node by node, with what is open and what was proven when.'

  static override description =
    `Read from the cluster and its nodes; the journal adds when a phase ran last and what its probes said, with their age. Nothing is
written and nothing is probed anew: kcert rotate-ca verify does that.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'it was shown',
    [exitCodes.usage]: 'wrong usage, or no inventory',
    [exitCodes.unreachable]: 'the cluster did not answer',
    [exitCodes.refused]: 'other users can change the inventory or the journal',
  }

  static override examples = RotationCommand.examplesOf({
    Everything: 'kcert rotate-ca status',
    'The phases with something open, for a script':
      'kcert rotate-ca status -o json | jq \'.phases[] | select(.state != "holds") | .number\'',
    'A page for the change ticket': 'kcert rotate-ca status -o html > rotation.html',
    'Of a rotation whose files are elsewhere':
      'kcert rotate-ca status --inventory lab/kcert.yaml --journal lab/kcert-rotation.jsonl',
  })

  static override flags = {
    ca,
    waive,
    ...rotationPlaceFlags,
    output: formatFlag(
      [...reportFormats, 'html'],
      'how to show it; html: a page in one file, without network or script',
    ),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(RotateCaStatus)
    const { renderStatus } = await import('../../output/rotation/status.ts')
    const status = await this.withSession(flags, 'reads', (session) => session.status())
    if (flags.output === 'html') {
      const { renderStatusHtml } = await import('../../output/rotation/html.ts')
      await this.answer(renderStatusHtml(status))
      return exitCodes.done
    }
    const { output } = flags
    await this.show(output, status, renderStatus)
    return exitCodes.done
  }
}
