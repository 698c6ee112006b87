import { RotationCommand } from '../../app/rotate-ca/command.ts'
import { rotationPlaceFlags, rotationSettingsFlags } from '../../app/rotate-ca/flags.ts'
import { isEtcd } from '../../app/rotate-ca/settings.ts'
import { checkFiles, flagFiles } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderJson } from '../../output/json.ts'
import { writePublicFile } from '../../system/output-file.ts'

const { waive, ca, soak } = rotationSettingsFlags

export default class RotateCaVerify extends RotationCommand {
  static override summary = 'Check what still uses, trusts or stores the old CA (phase 11), at any time.'

  static override description =
    `kcert connects to API servers, kubelets, webhooks and aggregated API servers. It reads the files on every node, the CAs in every
namespace and pod, and cluster-info with its signatures. It watches the TLS handshake errors at each API server for --soak, and compares
them with the rate before phase 1. It changes no file and no object. If the log of an API server does not show its errors, kcert sets the
log verbosity to 5 during the watch, to find the clients.

After phase 12, kcert also checks that nothing trusts the old CA. It lists what you accepted with --waive.`

  static override exitCodes = RotationCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'every check passed',
    usage: 'wrong usage, or no inventory',
    no: 'a check failed',
    unreachable: 'the cluster did not answer',
    refused: 'the evidence file already exists',
  })

  static override examples = RotationCommand.examplesOf({
    'Verify before phase 12': 'kcert rotate-ca verify',
    'Save the evidence in a file': 'kcert rotate-ca verify --soak 5m --evidence evidence.json',
    'Accept the risk for one webhook': 'kcert rotate-ca verify --waive service/default/legacy-hook',
  })

  static override flags = {
    evidence: Flag.value('FILE', 'write the report with every handshake and check to this file too, as JSON'),
    force: Flag.boolean('overwrite an existing evidence file', { dependsOn: ['evidence'] }),
    soak,
    ca,
    waive,
    ...rotationPlaceFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateCaVerify)
    const { renderVerification } = await import('../../output/rotation/verification.ts')
    const { evidence, force, output } = flags
    if (isEtcd(flags.ca)) {
      throw new KcertError('KCERT_USAGE', 'verify does not check the etcd CA', {
        why: 'each phase of that rotation checks its own result; status shows these checks and their age',
        next: 'kcert rotate-ca status --ca etcd',
      })
    }
    checkFiles({
      inputs: flagFiles(flags, 'inventory', 'journal'),
      outputs: [{ by: '--evidence', path: evidence, holds: 'public' }],
      replace: force,
    })
    const report = await this.withSession(flags, 'read', (session) => session.verify())
    if (evidence !== undefined) writePublicFile(evidence, renderJson(report), { replace: force })
    await this.show(output, report, renderVerification)
    return report.ok ? exitCodes.done : exitCodes.no
  }
}
