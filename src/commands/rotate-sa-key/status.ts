import { KeyRotationCommand } from '../../app/rotate-sa-key/command.ts'
import { keyPlaceFlags, keySettingsFlags } from '../../app/rotate-sa-key/flags.ts'
import * as Flag from '../../cli/flags.ts'

const { waive, proof, reason } = keySettingsFlags

export default class RotateSaKeyStatus extends KeyRotationCommand {
  static override summary = 'Show the state of a rotation of the service account key.'

  static override description =
    `kcert reads the state from the cluster and its nodes: the keys in files, those that each API server serves at /openid/v1/jwks, and the
key IDs of mounted and stored tokens. The journal adds the last run of each phase and the results of its checks, with their age. This
command writes nothing and does not repeat checks.`

  static override exitCodes = KeyRotationCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the state was shown',
    usage: 'wrong usage, or no inventory',
    unreachable: 'the cluster did not answer',
    refused: 'other users can change the inventory or the journal',
  })

  static override examples = KeyRotationCommand.examplesOf({
    'Show the state': 'kcert rotate-sa-key status',
    'List the incomplete phases, for a script':
      'kcert rotate-sa-key status -o json | jq \'.phases[] | select(.state != "complete") | .number\'',
    'Show the state of a rotation after a leak of the key': 'kcert rotate-sa-key status --reason compromise',
  })

  static override flags = {
    waive,
    proof,
    reason,
    ...keyPlaceFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateSaKeyStatus)
    const { renderStatus } = await import('../../output/rotation/status.ts')
    const status = await this.withSession(flags, 'read', (session) => session.status())
    return this.show(flags.output, status, renderStatus)
  }
}
