import { rotationConsentFlags, rotationPlaceFlags } from '../../app/rotate-ca/flags.ts'
import { recoverCluster } from '../../app/rotate-ca/recover.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'

const { inventory } = rotationPlaceFlags
const { yes, 'dry-run': dryRun } = rotationConsentFlags

export default class RotateCaRecover extends KcertCommand {
  static override summary = 'Recover a cluster whose CA has expired, using only the files on its nodes.'

  static override description =
    `After the cluster's CA expires, clients and API servers no longer trust each other, and kcert cannot rotate the CA. This command
uses the nodes in kcert.yaml and does not connect to an API server.

kcert renews each expired CA (cluster, front proxy, etcd) whose key is on a control-plane node, with the same name and key. It reissues
every expired leaf certificate with the same names and key: those of kubeadm, in kubeconfigs and of kubelets. Then it restarts the static
pods and kubelets.

kcert copies every file first, to /var/lib/kcert/copies on its node, and replaces it only if it did not change since it was read. After
an interruption, run the command again: kcert skips valid certificates. It lists the CA's other expired certificates; their owners must
reissue them.

The cluster keeps its CA key. To replace the key without an outage, run kcert rotate-ca afterwards.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the cluster is recovered, or nothing has expired',
    usage: 'wrong usage, or no inventory',
    no: 'declined, or a component did not restart in time; run the command again',
    unreachable: 'a node did not answer',
    refused:
      'no key of an expired CA on any control-plane node, drift, or no terminal to confirm on (use --yes)',
  })

  static override examples = KcertCommand.examplesOf({
    'Show what has expired and what kcert would write': 'kcert rotate-ca recover --dry-run',
    'Recover the cluster': 'kcert rotate-ca recover',
    'Recover from a script and list the written files': `kcert rotate-ca recover --yes -o json | jq -r '.files[] | "\\(.node) \\(.path)"'`,
  })

  static override flags = {
    inventory,
    yes,
    'dry-run': dryRun,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateCaRecover)
    const { renderRecovery } = await import('../../output/rotation/recovery.ts')
    const { report, exit } = await recoverCluster(this.context, flags)
    return this.show(flags.output, report, renderRecovery, { exit })
  }
}
