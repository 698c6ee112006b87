import { clusterInfoOf, tokensOf } from '../../app/bootstrap/objects.ts'
import { clusterInfoReport } from '../../bootstrap/cluster-info-report.ts'
import { signatureFacts } from '../../bootstrap/signature-facts.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags, reportFormatFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderClusterInfo } from '../../output/cluster-info.ts'

export default class ClusterInfoShow extends KcertCommand {
  static override summary = 'Show whom a cluster tells newcomers to trust: server, CAs, pins, signatures.'

  static override description =
    `The ConfigMap kube-public/cluster-info is what \`kubeadm join\` believes: anybody may read it, and it is signed for each bootstrap token
(JWS, HS256) by kube-controller-manager. Whether a signature stands can be said only by who may list Secrets in kube-system.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'it is shown, also when something is wrong with it',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: 'there is no cluster-info',
  }

  static override examples = KcertCommand.examplesOf({
    'What newcomers are told': 'kcert cluster-info show',
    'Of another cluster': 'kcert cluster-info show --context staging',
    'The server, for a script': "kcert cluster-info show -o json | jq -r '.server'",
  })

  static override flags = { ...clusterFlags, output: reportFormatFlag() }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(ClusterInfoShow)
    const report = await this.onCluster(flags, async (cluster) => {
      const { info, version } = await clusterInfoOf(cluster)
      const tokens = await tokensOf(cluster, this.context.clock())
      return clusterInfoReport(info, version, signatureFacts(info, tokens?.signing))
    })
    await this.show(flags.output, report, renderClusterInfo)
    return exitCodes.done
  }
}
