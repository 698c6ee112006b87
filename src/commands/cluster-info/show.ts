import { clusterInfoReport } from '../../bootstrap/cluster-info-report.ts'
import { signatureFacts } from '../../bootstrap/signature-facts.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags } from '../../cli/cluster-flags.ts'
import { renderReport, reportFormatFlag } from '../../cli/report-format.ts'
import { stdoutView } from '../../cli/view.ts'
import { withCluster } from '../../cli/with-cluster.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'

export default class ClusterInfoShow extends KcertCommand {
  static override summary = 'Show whom a cluster tells newcomers to trust: server, CAs, pins, signatures.'

  static override description =
    `The ConfigMap kube-public/cluster-info is what \`kubeadm join\` believes: anybody may read it, and it is signed for each bootstrap token
(JWS, HS256) by kube-controller-manager. Whether a signature stands can be said only by who may list Secrets in kube-system.`

  static override exitCodes = {
    [exitCodes.done]: 'it is shown, also when something is wrong with it',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: 'there is no cluster-info',
    [exitCodes.unreachable]: 'the API server could not be reached',
    ...clusterExits,
  }

  static override examples = [
    { description: 'What newcomers are told', command: '<%= config.bin %> cluster-info show' },
    {
      description: 'Of another cluster',
      command: '<%= config.bin %> cluster-info show --context staging',
    },
    {
      description: 'The server, for a script',
      command: "<%= config.bin %> cluster-info show -o json | jq -r '.server'",
    },
  ]

  static override flags = { ...clusterFlags, output: reportFormatFlag() }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(ClusterInfoShow)
    const [{ clusterInfoOf, tokensOf }, { renderClusterInfo }] = await Promise.all([
      import('../../cli/bootstrap-objects.ts'),
      import('../../output/cluster-info.ts'),
    ])
    const report = await withCluster(this.context, flags, async (cluster) => {
      const { info, version } = await clusterInfoOf(cluster)
      const tokens = await tokensOf(cluster, this.context.clock())
      return clusterInfoReport(info, version, signatureFacts(info, tokens?.signing))
    })
    const view = await stdoutView(this.context)
    await this.answer(renderReport(flags.output, report, () => renderClusterInfo(report, view)))
    return exitCodes.done
  }
}
