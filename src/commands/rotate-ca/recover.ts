import { rotationConsentFlags, rotationPlaceFlags } from '../../app/rotate-ca/flags.ts'
import { recoverCluster } from '../../app/rotate-ca/recover.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { reportFormatFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'

const { inventory } = rotationPlaceFlags
const { yes, 'dry-run': dryRun } = rotationConsentFlags

export default class RotateCaRecover extends KcertCommand {
  static override summary = 'Bring a cluster back whose CA has expired, from the files on its nodes alone.'

  static override description =
    `When the cluster's CA has ended nobody believes anybody, the API server no more than its clients: nothing can be rotated. This goes by
the nodes of kcert.yaml and asks no API server. Each CA that has expired and whose key lies on a control-plane node (the cluster's,
the front proxy's, etcd's) keeps its name and key and gets a new certificate; every leaf that has ended is signed anew for its own
names and its own key: kubeadm's, those in kubeconfigs, and those of kubelets. Then static pods and kubelets start anew.

Every file is copied first (/var/lib/kcert/copies on its node) and replaced only when it is what was read. Stopped and run again, it
goes on: what is valid is left alone. Certificates of others that the CA signed are named; their owners re-issue them.

Afterwards the cluster has the CA key that it had. kcert rotate-ca gives it another, without an outage.`

  static override exitCodes = {
    [exitCodes.done]: 'the cluster is back, or nothing has expired',
    [exitCodes.usage]: 'wrong usage, or no inventory',
    [exitCodes.no]: 'declined, or something did not come back in time; run it again',
    [exitCodes.unreachable]: 'a node did not answer',
    [exitCodes.refused]:
      'the key of an expired CA is on no control-plane node, drift, or nobody there to say yes',
  }

  static override examples = KcertCommand.examplesOf({
    'What has expired, and what would be written': 'kcert rotate-ca recover --dry-run',
    'Bring it back': 'kcert rotate-ca recover',
    'From a script, with the files that were written': `kcert rotate-ca recover --yes -o json | jq -r '.files[] | "\\(.node) \\(.path)"'`,
  })

  static override flags = {
    inventory,
    yes,
    'dry-run': dryRun,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(RotateCaRecover)
    const { renderRecovery } = await import('../../output/rotation/recovery.ts')
    const { report, exit } = await recoverCluster(this.context, flags)
    await this.show(flags.output, report, renderRecovery)
    return exit
  }
}
