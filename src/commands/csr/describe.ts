import { describeRequests } from '../../app/csr/describe.ts'
import { namesOf } from '../../app/csr/request-names.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags, operands, reportFormatFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderDescriptions } from '../../output/csr-describe.ts'

export default class CsrDescribe extends KcertCommand {
  static override summary =
    'Show everything about CertificateSigningRequests, with the certificates that were issued.'

  static override description =
    `What is in the request, who made it, who decided and with which words, when kube-controller-manager will remove it, and the
issued certificate as kcert inspect shows it.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'all are shown',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: 'there is no such object',
  }

  static override examples = KcertCommand.examplesOf({
    'One request': 'kcert csr describe ann',
    'All that wait': 'kcert csr list --pending -o name | xargs kcert csr describe',
    'When the issued certificate expires': `kcert csr describe ann -o json | jq -r '.requests[].certificates[].notAfter'`,
  })

  static override args = { name: operands('name of the object; csr/NAME as well') }

  static override flags = { ...clusterFlags, output: reportFormatFlag() }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands } = await this.parse(CsrDescribe)
    const names = namesOf(operands, 'csr describe NAME')
    const { context } = this
    const report = await this.onCluster(flags, (cluster) =>
      describeRequests(cluster.requests, names, context.clock()),
    )
    await this.show(flags.output, report, ({ requests, missing, generatedAt }, view) =>
      renderDescriptions(requests, missing, generatedAt, view),
    )
    return report.missing.length === 0 ? exitCodes.done : exitCodes.no
  }
}
