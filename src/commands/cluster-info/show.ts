import { clusterInfoOf, tokensOf } from '../../app/bootstrap/objects.ts'
import { clusterInfoReport } from '../../bootstrap/cluster-info-report.ts'
import { signatureFacts } from '../../bootstrap/signature-facts.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { renderClusterInfo } from '../../output/cluster-info.ts'

export default class ClusterInfoShow extends KcertCommand {
  static override summary = 'Show the cluster-info ConfigMap: server, CAs, public key pins and signatures.'

  static override description =
    `kubeadm join trusts the server and CAs in the ConfigMap kube-public/cluster-info. Everyone can read it. kube-controller-manager signs it
with each bootstrap token (JWS, HS256). To verify the signatures, you need permission to list Secrets in kube-system.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'cluster-info was printed, even if there are problems with it',
    usage: 'wrong usage, or no kubeconfig',
    no: 'there is no cluster-info',
  })

  static override examples = KcertCommand.examplesOf({
    'Show what joining nodes trust': 'kcert cluster-info show',
    'Show it for another cluster': 'kcert cluster-info show --context staging',
    'Print the server, for a script': "kcert cluster-info show -o json | jq -r '.server'",
  })

  static override flags = { ...Flag.clusterFlags, ...Flag.listFlags([]) }

  protected override async perform() {
    const { flags } = await this.parse(ClusterInfoShow)
    const report = await this.onCluster(flags, async (cluster) => {
      const { info, version } = await clusterInfoOf(cluster)
      const tokens = await tokensOf(cluster, this.context.clock())
      return clusterInfoReport(info, version, signatureFacts(info, tokens?.signing))
    })
    return this.show(flags.output, report, renderClusterInfo)
  }
}
