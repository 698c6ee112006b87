import { verifyClusterInfoOn } from '../../app/cluster-info/verify.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { readCertificateFiles } from '../../cli/certificate-files.ts'
import { checkStandardInput } from '../../cli/command-files.ts'
import { clusterExits, clusterFlags, repeatedFlag, reportFormatFlag, valueFlag } from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderVerification } from '../../output/cluster-info.ts'

export default class ClusterInfoVerify extends KcertCommand {
  static override summary =
    'Say whether cluster-info leads newcomers to this cluster: signatures, CAs, servers.'

  static override description =
    `Held against each other: the signature of every token that signs; the CAs against what the server of cluster-info, that of the kubeconfig
and every API server serve now, against kube-root-ca.crt, and against --ca; that there is one cluster and no credential in it; and
that anybody may read it. What cannot be looked at from here, such as an API server behind a load balancer, is said to be unknown
and is no reason to fail.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'nothing is wrong, as far as could be looked',
    [exitCodes.usage]: 'wrong usage, a file that cannot be read, or no kubeconfig',
    [exitCodes.no]: 'something is wrong, or there is no cluster-info',
  }

  static override examples = KcertCommand.examplesOf({
    'With what the cluster itself says': 'kcert cluster-info verify',
    'On a control-plane node, against its own file':
      'kcert cluster-info verify --ca /etc/kubernetes/pki/ca.crt',
    'What is wrong, for a script':
      'kcert cluster-info verify -o json | jq -r \'.checks[] | select(.outcome == "no") | .detail\'',
  })

  static override flags = {
    ca: repeatedFlag('FILE', 'CA certificates that it must hold, no more and no fewer; may be repeated'),
    timeout: valueFlag('DURATION', 'wait so long for each server to show its certificate', { default: '5s' }),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(ClusterInfoVerify)
    const { context } = this
    const timeoutMs = parseDuration(flags.timeout, '--timeout')
    const files = flags.ca ?? []
    checkStandardInput(files.map((path) => ({ by: '--ca', path })))
    const certificates = await readCertificateFiles(files, context)
    const published = files.length === 0 ? [] : [{ place: files.join(', '), certificates }]
    const report = await this.onCluster(flags, (cluster) =>
      verifyClusterInfoOn(cluster, { published, timeoutMs }, context.clock),
    )
    await this.show(flags.output, report, renderVerification)
    return report.verdict === 'no' ? exitCodes.no : exitCodes.done
  }
}
