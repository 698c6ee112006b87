import { RotationCommand } from '../../app/rotate-ca/command.ts'
import { rotationPlaceFlags, rotationSettingsFlags } from '../../app/rotate-ca/flags.ts'
import { checkFiles, flagFiles } from '../../cli/command-files.ts'
import { booleanFlag, clusterExits, reportFormatFlag, valueFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderJson } from '../../output/json.ts'
import { writePublicFile } from '../../system/output-file.ts'

const { waive, ca, soak } = rotationSettingsFlags

export default class RotateCaVerify extends RotationCommand {
  static override summary =
    'Ask the questions of phase 11 at any time: who presents, trusts or stores the old CA.'

  static override description =
    `Live handshakes with API servers, kubelets, webhooks and aggregated API servers; the files on every node; what every namespace and
pod has; cluster-info and its signatures; and the TLS handshakes that fail at each API server, watched for --soak and compared with those
before phase 1. No file and no object is changed. Where an API server counts errors that its log does not show, its log verbosity is
5 during the watch, so that clients are named. After phase 12 it also checks that nothing trusts the old CA; what was waived
for phase 12 is accepted, and named.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'nothing speaks against it',
    [exitCodes.usage]: 'wrong usage, or no inventory',
    [exitCodes.no]: 'something does; it is named',
    [exitCodes.unreachable]: 'the cluster did not answer',
    [exitCodes.refused]: 'the evidence file exists and is not overwritten',
  }

  static override examples = RotationCommand.examplesOf({
    'Before phase 12': 'kcert rotate-ca verify',
    'With a file for whoever asks how you know': 'kcert rotate-ca verify --soak 5m --evidence evidence.json',
    'A handler whose owner answers for it': 'kcert rotate-ca verify --waive service/default/legacy-hook',
  })

  static override flags = {
    evidence: valueFlag('FILE', 'write the report with every handshake and proof to this file too, as JSON'),
    force: booleanFlag('replace the evidence file', { dependsOn: ['evidence'] }),
    soak,
    ca,
    waive,
    ...rotationPlaceFlags,
    output: reportFormatFlag('how to show it'),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(RotateCaVerify)
    const { renderVerification } = await import('../../output/rotation/verification.ts')
    const { evidence, force, output } = flags
    checkFiles({
      inputs: flagFiles(flags, 'inventory', 'journal'),
      outputs: [{ by: '--evidence', path: evidence, holds: 'public' }],
      replace: force,
    })
    const report = await this.withSession(flags, 'reads', (session) => session.verify())
    if (evidence !== undefined) writePublicFile(evidence, renderJson(report), { replace: force })
    await this.show(output, report, renderVerification)
    return report.holds ? exitCodes.done : exitCodes.no
  }
}
