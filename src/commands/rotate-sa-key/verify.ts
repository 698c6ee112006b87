import { KeyRotationCommand } from '../../app/rotate-sa-key/command.ts'
import { keyPlaceFlags, keySettingsFlags } from '../../app/rotate-sa-key/flags.ts'
import * as Flag from '../../cli/flags.ts'
import { exitCodes } from '../../errors/codes.ts'

const { waive } = keySettingsFlags

export default class RotateSaKeyVerify extends KeyRotationCommand {
  static override summary = 'Check what still signs, verifies or has tokens of the old key, at any time.'

  static override description =
    `kcert reads the key files of API servers and controller managers, and /openid/v1/jwks of every API server. It searches the tokens that
are mounted into pods, and those in Secrets, ConfigMaps and files of nodes, by key ID. It changes no file and no object.

You can run it in each phase, and again after phase 8 with the same journal: a restored backup may bring back an old token or key. A node
or an object that kcert cannot read fails the check. To see which clients use a token of the old key, run kcert audit.`

  static override exitCodes = KeyRotationCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'every check passed',
    usage: 'wrong usage, or no inventory',
    no: 'a check failed',
    unreachable: 'the cluster did not answer',
    refused: 'other users can change the inventory or the journal',
  })

  static override examples = KeyRotationCommand.examplesOf({
    'Verify after phase 7': 'kcert rotate-sa-key verify',
    'Accept the risk for one token':
      "kcert rotate-sa-key verify --waive 'Secret monitoring/legacy data[token]'",
    'List what still uses the old key': `kcert rotate-sa-key verify -o json | jq -r '.checks[].findings[] | [.at, .what] | @tsv'`,
  })

  static override flags = { waive, ...keyPlaceFlags, output: Flag.reportFormat('output format') }

  protected override async perform() {
    const { flags } = await this.parse(RotateSaKeyVerify)
    const { renderVerification } = await import('../../output/rotation/verification.ts')
    const report = await this.withSession(flags, 'read', (session) => session.verify())
    await this.show(flags.output, report, renderVerification)
    return report.ok ? exitCodes.done : exitCodes.no
  }
}
