import { describeRequests } from '../../app/csr/describe.ts'
import { namesOf } from '../../app/csr/request-names.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { exitCodes } from '../../errors/codes.ts'
import { renderDescriptions } from '../../output/csr-describe.ts'

export default class CsrDescribe extends KcertCommand {
  static override summary = 'Show CertificateSigningRequests in detail, with the issued certificates.'

  static override description =
    `Shows the request, who created it, and which program approved or denied it, with reason and message. It also shows when
kube-controller-manager will delete the object, and the issued certificate as kcert inspect does.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'all objects are shown',
    usage: 'wrong usage, or no kubeconfig',
    no: 'an object does not exist',
  })

  static override examples = KcertCommand.examplesOf({
    'Describe one request': 'kcert csr describe ann',
    'Describe all pending requests': 'kcert csr list --pending -o name | xargs kcert csr describe',
    'Print when the issued certificate expires': `kcert csr describe ann -o json | jq -r '.requests[].certificates[].notAfter'`,
  })

  static override args = { name: Flag.operands('names of objects, as NAME or csr/NAME') }

  static override flags = { ...Flag.clusterFlags, output: Flag.reportFormat() }

  protected override async perform() {
    const { flags, operands } = await this.parse(CsrDescribe)
    const names = namesOf(operands)
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
