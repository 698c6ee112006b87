import { verifyClusterInfoOn } from '../../app/cluster-info/verify.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { readCertificateFiles } from '../../cli/certificate-files.ts'
import { checkStandardInput } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { exitCodes } from '../../errors/codes.ts'
import { renderVerification } from '../../output/cluster-info.ts'

export default class ClusterInfoVerify extends KcertCommand {
  static override summary = 'Verify the CAs and signatures of cluster-info against the cluster.'

  static override description = `Checks that joining nodes reach and trust this cluster:

  signatures   the signature of every signing token is valid
  CAs          they verify the served certificates of the server in cluster-info, the server in your kubeconfig and every API
               server. They are the same as in kube-root-ca.crt, and in the files of --ca
  content      one cluster and no credentials
  access       anonymous clients may read it

What cannot be checked from this machine, such as an API server behind a load balancer, is unknown and does not fail the check.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'no check failed',
    usage: 'wrong usage, an unreadable file, or no kubeconfig',
    no: 'a check failed, or there is no cluster-info',
  })

  static override examples = KcertCommand.examplesOf({
    'Verify it against the cluster': 'kcert cluster-info verify',
    'Verify it on a control-plane node, against the CA file':
      'kcert cluster-info verify --ca /etc/kubernetes/pki/ca.crt',
    'List the failed checks, for a script':
      'kcert cluster-info verify -o json | jq -r \'.checks[] | select(.outcome == "failed") | .detail\'',
  })

  static override flags = {
    ca: Flag.repeated(
      'FILE',
      'file with the CA certificates that it must contain, no more and no fewer; may be repeated',
    ),
    timeout: Flag.value('DURATION', 'time limit for the TLS handshake with one server', { default: '5s' }),
    ...Flag.clusterFlags,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
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
    return report.verdict === 'failed' ? exitCodes.no : exitCodes.done
  }
}
